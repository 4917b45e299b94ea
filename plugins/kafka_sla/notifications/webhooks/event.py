"""What a webhook reports, as data: docs/reference/webhook.schema.json is its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from kafka_sla.model.entities import Severity, Sla
from kafka_sla.notifications import burn_email
from kafka_sla.notifications.incident_email import subject
from kafka_sla.notifications.miss_context import miss_url, misses_url, overview_url, sla_url
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, IncidentNotice, Notice
from kafka_sla.sla.alerts import AlertKind, EndReason
from kafka_sla.sla.root_cause.shared_cause import common_words
from kafka_sla.sla.wording import burning, end_reason, miss_outcome, violation
from kafka_sla.text.formatting import burn as rate_text

_DESCRIBED = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class ReportedAlert:
    """One miss, or one burn of an error budget."""

    __pydantic_config__ = _DESCRIBED
    id: str
    """The same when it opens and when it ends."""
    kind: AlertKind
    sla: str
    team: str
    cluster: str
    start: datetime
    end: datetime | None
    """Null while it is open."""
    end_reason: EndReason
    """Why it ended; empty while it is open. `removed`: late facts or an edited configuration took it away."""
    summary: str
    """`worst latency 17 min, threshold 30 s`; of a burn the rate, and above which one it is alerted."""
    cause: str
    """Word of the evidence, `slow_broker` for example."""
    sentence: str
    """Why; empty if that is not known."""
    url: str
    """The page of the miss, or of a burn's SLA; empty if no base_url is known."""
    runbook: str
    worst_latency_ms: float | None = None
    """Of a miss."""
    max_latency_ms: int | None = None
    """Of a miss: the threshold."""
    group: str = ""
    topic: str = ""
    partition: int | None = None
    """Of a miss: where the latency was worst."""
    burn_rate: float | None = None
    """Of a burn: how many times as fast as the budget lasts, over the longer time, when it began."""


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """Alerts of one kind that opened, or ended, in one run and share a cause."""

    __pydantic_config__ = _DESCRIBED
    id: str
    """The same when the event is sent again: receivers may drop what they have."""
    kind: Literal["opened", "recovered", "burn_began", "burn_over"]
    incident: str
    """Shared by the openings and ends of one cause; of an alert that is alone: its id."""
    title: str
    cause: str
    """What they have in common: `slow brokers of cluster prod`."""
    sentence: str
    """Why the first miss, or the fastest burn; empty if that is not known."""
    severity: Severity
    alerts: tuple[ReportedAlert, ...]
    still_open: tuple[ReportedAlert, ...]
    """Other alerts of the incident that have not ended, as they were when they opened."""
    url: str
    """The page of all misses, of the burn's SLA, or of all SLAs; empty if no base_url is known."""
    version: Literal[1] = 1

    @property
    def has_ended(self) -> bool:
        """Whether the alerts of the event have ended."""
        return self.kind in ("recovered", "burn_over")


_CODEC = TypeAdapter(AlertEvent)


def event_of(slas: Mapping[str, Sla], message: IncidentNotice) -> AlertEvent:
    """The event of a message about misses; `slas` by name."""
    first, ended = message.notices[0], message.kind == "recovered"
    misses = [notice.miss for notice in message.notices]
    title = f"SLA {miss_outcome(misses[0]) if ended else 'missed'}: {misses[0].sla}, {violation(misses[0])}"
    alerts = tuple(_report_miss(slas, notice, first.run_url) for notice in message.notices)
    return AlertEvent(
        id=f"{first.thread or first.miss.id}.{message.kind}",
        kind="recovered" if ended else "opened",
        incident=message.incident,
        title=title if message.is_single else subject(message),
        cause=common_words(misses),
        sentence=alerts[0].sentence,
        severity="page",
        alerts=alerts,
        still_open=tuple(_report_miss(slas, notice, first.run_url) for notice in message.still_open),
        url=misses_url(first.run_url, min(miss.start for miss in misses)),
    )


def burn_event_of(slas: Mapping[str, Sla], message: BurnMessage) -> AlertEvent:
    """The event of a message about burns; `slas` by name."""
    first, over = message.notices[0], message.kind == "over"
    sentence = burn_email.sentence(message)
    alerts = tuple(_report_burn(slas, notice, sentence) for notice in message.notices)
    return AlertEvent(
        id=f"{first.thread or first.burn.id}.burn_{message.kind}",
        kind="burn_over" if over else "burn_began",
        incident=message.incident,
        title=_burn_title(first, over=over) if message.is_single else burn_email.subject(message),
        cause=burn_email.cause(message),
        sentence=sentence,
        severity=first.burn.severity,
        alerts=alerts,
        still_open=tuple(_report_burn(slas, notice, sentence) for notice in message.still_open),
        url=alerts[0].url if len(alerts) == 1 else overview_url(first.run_url),
    )


def as_json(event: AlertEvent) -> dict[str, Any]:
    """The body of the format `json`."""
    body: dict[str, Any] = _CODEC.dump_python(event, mode="json")
    return body


def schema() -> dict[str, Any]:
    """JSON Schema of that body."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | _CODEC.json_schema(mode="serialization")


def _burn_title(notice: BurnNotice, *, over: bool) -> str:
    if reason := end_reason(notice.end_reason):
        return f"Burn ended ({notice.burn.severity}): {notice.burn.sla}, {reason}"
    what = "Burn over" if over else f"Error budget burns {rate_text(notice.burn.burn_rate)}x"
    return f"{what} ({notice.burn.severity}): {notice.burn.sla}"


def _report_miss(slas: Mapping[str, Sla], notice: Notice, run_url: str | None) -> ReportedAlert:
    """Under the id by which the miss was first reported; late facts may have moved its start since."""
    miss, sla = notice.miss, slas.get(notice.miss.sla)
    return ReportedAlert(
        id=notice.thread or miss.id,
        kind="miss",
        sla=miss.sla,
        team=_team(notice.team, sla),
        cluster=miss.cluster,
        start=miss.start,
        end=miss.end,
        end_reason=notice.end_reason,
        summary=violation(miss),
        cause=miss.evidence.get("cause", "unclear"),
        sentence=miss.evidence.get("sentence", ""),
        url=miss_url(run_url, miss.id),
        runbook=sla.runbook if sla else "",
        worst_latency_ms=miss.worst_latency_ms,
        max_latency_ms=miss.max_latency_ms,
        group=miss.worst_group,
        topic=miss.worst_topic,
        partition=miss.worst_partition,
    )


def _report_burn(slas: Mapping[str, Sla], notice: BurnNotice, sentence: str) -> ReportedAlert:
    """Under the id by which the burn was first reported; late facts may have moved its start since."""
    burn, sla = notice.burn, slas.get(notice.burn.sla)
    return ReportedAlert(
        id=notice.thread or burn.id,
        kind="burn",
        sla=burn.sla,
        team=_team(notice.team, sla),
        cluster=burn.cluster,
        start=burn.start,
        end=burn.end,
        end_reason=notice.end_reason,
        summary=burning(burn, sla.objective_of if sla else "time"),
        cause="burn_rate",
        sentence=sentence,
        url=sla_url(notice.run_url, burn.sla),
        runbook=sla.runbook if sla else "",
        burn_rate=burn.burn_rate,
    )


def _team(reported: str | None, sla: Sla | None) -> str:
    return reported if reported is not None else sla.team if sla else ""


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
