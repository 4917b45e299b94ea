"""What the metrics say about why a promise was missed: figures, and one sentence from them. Pure; knows no store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from kafka_sla.model.entities import Interval, Miss, Sla
from kafka_sla.sla.root_cause.classify import Evidence
from kafka_sla.sla.root_cause.context import Around, surroundings
from kafka_sla.sla.root_cause.stats import (
    WindowSum,
    late_partitions,
    longest_stall,
    phase_rates,
    rewinds,
    window_sums,
    worst_partitions,
)
from kafka_sla.sla.root_cause.summary import sentence
from kafka_sla.text.formatting import count, moment, plural, rate, share, span
from kafka_sla.text.timestamps import instant_text, parse_instant

LOOK_BACK = timedelta(minutes=30)
"""How much of the time before a miss shows what was usual."""
YOUNG = 0.25
"""Share of the threshold up to which a backlog is no sign of trouble."""
_NOTHING = Around()


def evidence(
    sla: Sla, miss: Miss, latency: pa.Table, steady: pa.Table, around: Around = _NOTHING
) -> dict[str, Any]:  # fmt: skip
    """JSON-able figures, the `cause` that they show and a `sentence` for people.

    `latency`, `steady` and `around` are published rows of `evidence_interval`. Rates `during` are those of the
    build-up: from the time when the backlog was last young until the worst window. What was before that is usual.
    """
    late = late_partitions(sla, miss, latency, steady)
    partitions = worst_partitions(miss, latency, late)
    sums = window_sums(miss, latency, partitions)
    inside = [w for w in sums if w.start >= miss.start]
    rates = phase_rates(miss, latency, partitions, _built_from(sla, miss, sums))
    stall, back = longest_stall(sums, miss.start), rewinds(miss, latency, partitions)
    found = Evidence(
        group=miss.worst_group, topic=miss.worst_topic,
        late_partitions=len(late), partitions=tuple(f"{p.group} {p.topic}-{p.partition}" for p in late[:10]),
        produce_rate_before=rates.produce_before, produce_rate_during=rates.produce_during,
        consume_rate_before=rates.consume_before, consume_rate_during=rates.consume_during,
        records_consumed=sum(w.consumed for w in inside),
        lag_at_start=next((w.lag for w in reversed(sums) if w.start < miss.start), inside[0].lag if inside else None),
        lag_worst=max((w.lag for w in inside if w.lag is not None), default=None),
        last_commit_at=inside[-1].last_commit_at if inside else None,
        stalled_share=sum(w.stalled for w in inside) / len(inside) if inside else 0.0,
        stalled_ms=sum((w.end - w.start).total_seconds() * 1000 for w in inside if w.stalled),
        stalled_from=stall.since if stall else None, stalled_until=stall.until if stall else None,
        commits_without_progress=bool(stall and stall.committed),
        rewound_records=back.records if back else None, rewound_at=back.at if back else None,
        max_latency_ms=sla.max_latency_ms, around=surroundings(miss, partitions, around),
    )  # fmt: skip
    return {"cause": found.cause, "sentence": sentence(found), **_jsonable(found)}


def evidence_interval(sla: Sla, miss: Miss, until: datetime) -> Interval:
    """The time whose rows `evidence` wants; `until`: end of the newest judged window, for a miss that is still open."""
    return Interval(miss.start - looks_back(sla), miss.end or until)


def looks_back(sla: Sla) -> timedelta:
    """How much of the time before a miss its evidence tells of: late rows of that time change it."""
    return timedelta(milliseconds=sla.max_latency_ms) + LOOK_BACK


def evidence_rows(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The figures in words: what, before the trouble, during it. Nothing for a miss without evidence."""
    if not found:
        return []
    return [
        ("Produced", rate(found["produce_rate_before"]), rate(found["produce_rate_during"])),
        ("Consumed", rate(found["consume_rate_before"]), rate(found["consume_rate_during"])),
        ("Records waiting", count(found["lag_at_start"]), count(found["lag_worst"])),
        ("Last commit", "", _moment(found["last_commit_at"])),
        ("Late partitions", "", count(found["late_partitions"])),
        *_rows_around({key: value for key, value in found.items() if value is not None}),
    ]


def _rows_around(known: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What was measured besides; at the end, what was not."""
    if "rewound_records" in known:
        yield "Went back", "", f"{count(known['rewound_records'])} records, {_moment(known.get('rewound_at'))}"
    if "status" in known:
        yield "Consumer status", "", f"{known['status']} ({share(known['status_share'])} of the windows)"
    if "members_least" in known:
        yield "Members of the group", count(known.get("members_before")), count(known["members_least"])
    if "expired_unread_low" in known:
        yield "Expired unread", "", _records(known["expired_unread_low"], known["expired_unread_high"])
    if "unread_expires_at" in known:
        yield "Next unread expire", "", _moment(known["unread_expires_at"])
    if "broker_verdict" in known:
        yield "Broker pairs", _verdict(known.get("broker_verdict_before")), known.get("broker_reason", "unknown")
    if "replication_flow" in known:
        late = span(known.get("replication_latency_worst_ms"))
        yield f"Replication {known['replication_flow']}", "", f"up to {late} late"
    if missing := known.get("not_measured"):
        yield "Not measured", "", ", ".join(missing)


def _records(low: int, high: int) -> str:
    if low == high:
        return plural(low, "record") if low else "none"
    return f"{count(low)} to {count(high)} records"


def _verdict(verdict: str | None) -> str:
    return (verdict or "unknown").replace("_", " ")


def _moment(text: str | None) -> str:
    return moment(parse_instant(text) if text else None)


def _built_from(sla: Sla, miss: Miss, sums: Sequence[WindowSum]) -> datetime:
    """When trouble began: records that are late at the start of a miss were produced `max_latency` earlier at least."""
    young = [
        w.end for w in sums if w.end <= miss.start and w.age_ms is not None and w.age_ms <= YOUNG * sla.max_latency_ms
    ]
    return min(miss.start - timedelta(milliseconds=sla.max_latency_ms), max(young, default=miss.start))


def _jsonable(found: Evidence) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return instant_text(value)
        return list(value) if isinstance(value, tuple) else round(value, 3) if isinstance(value, float) else value

    figures = asdict(found)
    figures |= figures.pop("around")
    return {key: plain(value) for key, value in figures.items()}
