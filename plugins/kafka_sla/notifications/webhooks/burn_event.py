"""What a webhook reports of error budgets that are spent too fast, as data. Knows no receiver and no HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from kafka_sla.ledger.notices.burn_notices import BurnMessage, BurnNotice
from kafka_sla.model.entities import Severity, Sla
from kafka_sla.notifications import burns_email
from kafka_sla.notifications.miss_context import overview_url, sla_url
from kafka_sla.sla.wording import burning
from kafka_sla.text.formatting import burn as rate_text

_DESCRIBED = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class ReportedBurn:
    """One burn of the event."""

    __pydantic_config__ = _DESCRIBED
    id: str
    """The same when it begins and when it is over."""
    sla: str
    team: str
    cluster: str
    start: datetime
    end: datetime | None
    """Null while it burns."""
    burn_rate: float
    """How many times as fast as the budget lasts, over the longer time, when it began."""
    sentence: str
    """The rate, and above which one it is alerted."""
    url: str
    """The page of the SLA; empty where no base_url is known."""
    runbook: str


@dataclass(frozen=True, slots=True)
class BurnEvent:
    """Error budgets of one severity burn, or that is over: those of one run that share a cause."""

    __pydantic_config__ = _DESCRIBED
    id: str
    """The same when the event is sent again: receivers may drop what they have."""
    kind: Literal["burn_began", "burn_over"]
    incident: str
    """Shared by the beginnings and ends of one cause; of a burn that is alone: its id."""
    title: str
    cause: str
    """What they have in common: `slow brokers of cluster prod`."""
    sentence: str
    """Why the fastest of them began; empty where that is not known."""
    severity: Severity
    burns: tuple[ReportedBurn, ...]
    still_burning: tuple[ReportedBurn, ...]
    """Other burns of the incident that are not over."""
    url: str
    """The page of the SLA, or of all where they are several; empty where no base_url is known."""
    version: Literal[1] = 1


def burn_event_of(slas: Mapping[str, Sla], message: BurnMessage) -> BurnEvent:
    """The event of a message; `slas` by name."""
    first, over = message.notices[0], message.kind == "over"
    burns = tuple(_reported(slas, notice) for notice in message.notices)
    url = burns[0].url if len(burns) == 1 else overview_url(first.run_url)
    return BurnEvent(
        id=f"{first.thread or first.burn.id}.burn_{message.kind}",
        kind="burn_over" if over else "burn_began",
        incident=message.incident,
        title=_title(first, over) if message.is_single else burns_email.subject(message),
        cause=burns_email.cause(message),
        sentence=burns_email.sentence(message),
        severity=first.burn.severity,
        burns=burns,
        still_burning=tuple(_reported(slas, notice) for notice in message.still_open),
        url=url,
    )


def _title(notice: BurnNotice, over: bool) -> str:
    what = "Burn over" if over else f"Error budget burns {rate_text(notice.burn.burn_rate)}x"
    return f"{what} ({notice.burn.severity}): {notice.burn.sla}"


def _reported(slas: Mapping[str, Sla], notice: BurnNotice) -> ReportedBurn:
    """Under the id by which the burn was first reported; late facts may have moved its start since."""
    burn, sla = notice.burn, slas.get(notice.burn.sla)
    return ReportedBurn(
        id=notice.thread or burn.id,
        sla=burn.sla,
        team=notice.team if notice.team is not None else sla.team if sla else "",
        cluster=burn.cluster,
        start=burn.start,
        end=burn.end,
        burn_rate=burn.burn_rate,
        sentence=burning(burn, sla.objective_of if sla else "time"),
        url=sla_url(notice.run_url, burn.sla),
        runbook=sla.runbook if sla else "",
    )
