"""What a request asks for, checked: a span of time, an SLA, filters. Reads nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends, HTTPException, Query

from kafka_sla.config.settings import Settings
from kafka_sla.model.entities import Interval, Patterns, Sla, ceil_time, floor_time
from kafka_sla.text.name_patterns import written
from kafka_sla.text.timestamps import parse_instant
from kafka_sla.web.queries.context import Context, open_context

DEFAULT = timedelta(hours=24)
LONGEST = timedelta(days=5 * 366)
AHEAD = timedelta(days=366)
_SECOND_MS = 1_000
_LOST_PLUS = re.compile(r"[T ][0-9:.,]+ [0-9]{2}(:?[0-9]{2})?$", re.IGNORECASE)

From = Annotated[str | None, Query(alias="from", description="ISO-8601 time, UTC without an offset; default: a day")]
To = Annotated[str | None, Query(description="ISO-8601 time, exclusive; default: now")]
RequestContext = Annotated[Context, Depends(open_context)]


def interval(context: RequestContext, start: From = None, to: To = None) -> Interval:
    """The span asked for; without one the newest day, until the end of this minute."""
    return asked_span(start, to, context.now, DEFAULT)


def asked_span(start: str | None, to: str | None, now: datetime, default: timedelta) -> Interval:
    """What `from` and `to` ask for in whole seconds, which all addresses can name again, else the newest of that
    length. HTTPException 400 says what is wrong with them."""
    try:
        end = parse_instant(to) if to else _minute(now) + timedelta(minutes=1)
        begin = parse_instant(start) if start else end - default
    except ValueError as error:
        raise HTTPException(400, f"from or to: {error}{_hint(start, to)}") from error
    if not begin < end:
        raise HTTPException(400, "from must be before to; exchange them?")
    begin, end = floor_time(begin, _SECOND_MS), ceil_time(end, _SECOND_MS)
    if end - begin > LONGEST:
        raise HTTPException(400, "from and to are more than five years apart; ask for less")
    if end > now + AHEAD:
        raise HTTPException(
            400, "to is more than a year ahead, where nothing can have been measured; choose an earlier one"
        )
    return Interval(begin, end)


Span = Annotated[Interval, Depends(interval)]


def named_sla(context: RequestContext, sla: str) -> Sla:
    """The SLA that the path names."""
    return named(context.settings, sla)


NamedSla = Annotated[Sla, Depends(named_sla)]


def named(settings: Settings, name: str) -> Sla:
    for sla in settings.slas:
        if sla.name == name:
            return sla
    raise HTTPException(404, f"the configuration has no SLA {name!r}")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which SLAs; an empty field means all."""

    cluster: str = ""
    group: str = ""
    team: str = ""
    sla: str = ""
    topic: str = ""

    def chosen(self, settings: Settings) -> list[Sla]:
        return [sla for sla in settings.slas if self._fits(sla)]

    def _fits(self, sla: Sla) -> bool:
        return (
            self.cluster in ("", sla.cluster)
            and self.team in ("", sla.team)
            and self.sla in ("", sla.name)
            and _selected(self.group, sla.groups)
            and _selected(self.topic, sla.topics)
        )


def _selected(asked: str, patterns: Patterns) -> bool:
    """Whether the patterns select this name, or one of them is written so."""
    return not asked or asked in written(patterns) or patterns.matches(asked)


def chosen(
    cluster: Annotated[str, Query(description="a cluster of the configuration")] = "",
    group: Annotated[str, Query(description="a consumer group, or a pattern of the configuration; its SLAs")] = "",
    team: Annotated[str, Query(description="a team of the configuration")] = "",
    sla: Annotated[str, Query(description="one SLA")] = "",
    topic: Annotated[str, Query(description="a topic, or a pattern of the configuration; its SLAs")] = "",
) -> Filter:
    return Filter(cluster, group, team, sla, topic)


Chosen = Annotated[Filter, Depends(chosen)]


def _hint(*values: str | None) -> str:
    """An address has a blank where its + was meant."""
    cut = any(_LOST_PLUS.search(value) for value in values if value)
    return "; in an address, write the + of an offset as %2B" if cut else ""


def _minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)
