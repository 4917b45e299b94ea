"""What a webhook reports, as data: docs/reference/webhook.schema.json is its schema. Knows no receiver and no HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import MissState, Sla
from kafka_sla.notifications.incident_email import subject
from kafka_sla.notifications.miss_context import miss_url, misses_url
from kafka_sla.notifications.webhooks.burn_event import BurnEvent
from kafka_sla.sla.root_cause.shared_cause import common_words
from kafka_sla.sla.wording import miss_outcome, violation

_DESCRIBED = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class ReportedMiss:
    """One miss of the event."""

    __pydantic_config__ = _DESCRIBED
    id: str
    """The same when it opens and when it recovers."""
    sla: str
    team: str
    cluster: str
    start: datetime
    end: datetime | None
    """Null while it is open."""
    state: MissState
    """`open`; or over: `recovered`, `excluded` (no longer judged), `removed` (its SLA left the configuration)."""
    end_reason: str
    """Why it is no longer judged; empty while it is open, or when it has recovered."""
    violation: str
    """`worst latency 17 min, threshold 30 s`."""
    worst_latency_ms: float
    max_latency_ms: int
    """The threshold."""
    group: str
    topic: str
    partition: int
    cause: str
    """Word of the evidence, `slow_broker` for example."""
    sentence: str
    """Why it was missed."""
    url: str
    """Its page; empty where no base_url is known."""
    runbook: str


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """Misses of one run that opened, or recovered, and share a cause."""

    __pydantic_config__ = _DESCRIBED
    id: str
    """The same when the event is sent again: receivers may drop what they have."""
    kind: Literal["opened", "recovered"]
    incident: str
    """Shared by the openings and recoveries of one cause; of a miss that is alone: its id."""
    title: str
    cause: str
    """What they have in common: `slow brokers of cluster prod`."""
    misses: tuple[ReportedMiss, ...]
    still_open: tuple[ReportedMiss, ...]
    """Other misses of the incident that have not recovered, as they were when they opened."""
    url: str
    """The page of all misses; empty where no base_url is known."""
    version: Literal[1] = 1


_CODEC: TypeAdapter[WebhookEvent | BurnEvent] = TypeAdapter(WebhookEvent | BurnEvent)


def event_of(slas: Mapping[str, Sla], notice: IncidentNotice) -> WebhookEvent:
    """The event of a notice; `slas` by name."""
    first, ended = notice.notices[0], notice.kind == "recovered"
    misses = [one.miss for one in notice.notices]
    title = f"SLA {miss_outcome(misses[0]) if ended else 'missed'}: {misses[0].sla}, {violation(misses[0])}"
    return WebhookEvent(
        id=f"{first.thread or first.miss.id}.{notice.kind}",
        kind="recovered" if ended else "opened",
        incident=notice.incident,
        title=title if notice.is_single else subject(notice),
        cause=common_words(misses),
        misses=tuple(_reported(slas, one, first.run_url) for one in notice.notices),
        still_open=tuple(_reported(slas, one, first.run_url) for one in notice.still_open),
        url=misses_url(first.run_url, min(miss.start for miss in misses)),
    )


def as_json(event: WebhookEvent | BurnEvent) -> dict[str, Any]:
    """The body of the format `json`."""
    found: dict[str, Any] = _CODEC.dump_python(event, mode="json")
    return found


def schema() -> dict[str, Any]:
    """JSON Schema of that body."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | _CODEC.json_schema(mode="serialization")


def _reported(slas: Mapping[str, Sla], notice: Notice, run_url: str | None) -> ReportedMiss:
    """Under the id by which the miss was first reported; late facts may have moved its start since."""
    miss, sla = notice.miss, slas.get(notice.miss.sla)
    return ReportedMiss(
        id=notice.thread or miss.id,
        sla=miss.sla,
        team=notice.team if notice.team is not None else sla.team if sla else "",
        cluster=miss.cluster,
        start=miss.start,
        end=miss.end,
        state=miss.state,
        end_reason=miss.end_reason,
        violation=violation(miss),
        worst_latency_ms=miss.worst_latency_ms,
        max_latency_ms=miss.max_latency_ms,
        group=miss.worst_group,
        topic=miss.worst_topic,
        partition=miss.worst_partition,
        cause=miss.evidence.get("cause", "unclear"),
        sentence=miss.evidence.get("sentence", ""),
        url=miss_url(run_url, miss.id),
        runbook=sla.runbook if sla else "",
    )


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
