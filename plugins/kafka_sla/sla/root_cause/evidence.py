"""What the metrics say about why an SLA was missed: figures, and one sentence from them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.entities import Interval, Miss, Sla, floor_time
from kafka_sla.sla.rollups import HOUR_MS
from kafka_sla.sla.root_cause.classify import Evidence
from kafka_sla.sla.root_cause.context import Around, surroundings
from kafka_sla.sla.root_cause.open_transactions import find_open_transaction
from kafka_sla.sla.root_cause.remediation import remediation
from kafka_sla.sla.root_cause.stats import (
    Stall,
    WindowSum,
    late_partitions,
    longest_stall,
    phase_rates,
    rewinds,
    waiting_records,
    window_sums,
    worst_partitions,
)
from kafka_sla.sla.root_cause.summary import sentence
from kafka_sla.text.formatting import count, moment, plural, rate, share, span
from kafka_sla.text.timestamps import instant_text, parse_instant

LOOK_BACK = timedelta(minutes=30)
"""How much of the time before a miss shows what was usual."""
COVERED = timedelta(hours=6)
"""How much of a miss its evidence covers: one that goes on for weeks would have all of them read at every run."""
BEGINNING = timedelta(hours=2)
"""How much of that is the beginning of a longer miss; the rest is what led to its worst window."""
YOUNG = 0.25
"""Share of the threshold up to which a backlog is no sign of trouble."""
_NOTHING = Around()


def evidence(
    miss: Miss,
    latency: pa.Table,
    judged: Iterable[tuple[pa.Table, pa.Table]],
    around: Around = _NOTHING,
    *,
    counts_append_delay: bool = False,
) -> dict[str, Any]:
    """JSON-able figures, the `cause` that they show and a `sentence` for people.

    `latency` and `around` are published rows of `evidence_times`, at least those of the worst group. `judged`: the
    rows of all partitions in the time of the miss, latency and steady states, in pieces. Rates `during` are those of
    the build-up: from the time when the backlog was last young until the worst window. What was before that is usual.
    `counts_append_delay`: the latency of the SLA includes the time before records reached Kafka.
    """
    late = late_partitions(miss, judged)
    partitions = worst_partitions(miss, latency, late)
    sums = window_sums(miss, latency, partitions)
    inside = [w for w in sums if w.start >= miss.start]
    telling = [w for w in inside if w.known]
    rates = phase_rates(miss, latency, partitions, _built_from(miss, sums))
    stall, back = longest_stall(sums, miss.start), rewinds(miss, latency, partitions)
    waiting, worst = waiting_records(miss, latency, partitions), _worst_late(miss, late)
    found = Evidence(
        group=miss.worst_group,
        topic=miss.worst_topic,
        late_partitions=late.num_rows,
        partitions=tuple("{group} {topic}-{partition}".format(**row) for row in late.slice(0, 10).to_pylist()),
        produce_rate_before=rates.produce_before,
        produce_rate_during=rates.produce_during,
        consume_rate_before=rates.consume_before,
        consume_rate_during=rates.consume_during,
        records_consumed=sum(w.consumed for w in inside),
        lag_at_start=next((w.lag for w in reversed(sums) if w.start < miss.start), inside[0].lag if inside else None),
        lag_worst=max((w.lag for w in inside if w.lag is not None), default=None),
        last_commit_at=inside[-1].last_commit_at if inside else None,
        stalled_share=sum(w.stalled for w in telling) / len(telling) if telling else None,
        stalled_ms=sum((w.end - w.start).total_seconds() * 1000 for w in inside if w.stalled),
        stalled_from=stall.since if stall else None,
        stalled_until=stall.until if stall else None,
        commits_without_progress=bool(stall and stall.committed),
        rewound_records=back.records if back else None,
        rewound_at=back.at if back else None,
        max_latency_ms=miss.max_latency_ms,
        around=surroundings(miss, partitions, around),
        longest_stall_ms=_length(stall, sums),
        open_transaction=find_open_transaction(miss, partitions, latency, around.transactions),
        steady_reason=worst.get("reason"),
        steady_since=worst.get("since"),
        unread_since=waiting.unread_since,
        unread_partition=waiting.unread_partition,
        one_record_waits=waiting.one_record,
        append_delay_ms=largest_append_delay(miss, latency) if counts_append_delay else None,
    )
    words = {"cause": found.cause, "sentence": sentence(found), "remediation": remediation(found)}
    return words | _jsonable(found)


def largest_append_delay(miss: Miss, latency: pa.Table) -> float | None:
    """How old records of the worst group and topic were when they reached Kafka, at most, in the miss; ms."""
    same = pc.and_(pc.equal(latency["group"], miss.worst_group), pc.equal(latency["topic"], miss.worst_topic))
    inside = pc.greater_equal(latency["window_start"], pa.scalar(miss.start, latency.schema.field("window_start").type))
    delay: float | None = pc.max(latency.filter(pc.and_(same, inside))["append_delay_ms"]).as_py()
    return delay


def _worst_late(miss: Miss, late: pa.Table) -> dict[str, Any]:
    """The worst late partition of the worst group and topic, with its steady state; empty where none was late."""
    same = pc.and_(pc.equal(late["group"], miss.worst_group), pc.equal(late["topic"], miss.worst_topic))
    rows = late.filter(same).slice(0, 1).to_pylist()
    return {**rows[0], "since": rows[0]["since"].astimezone(UTC)} if rows else {}


def _length(stall: Stall | None, sums: Sequence[WindowSum]) -> float:
    """How long a stall has been, in ms; up to the last window while it goes on."""
    if stall is None:
        return 0.0
    return ((stall.until or sums[-1].end) - stall.since) / timedelta(milliseconds=1)


def evidence_times(miss: Miss, until: datetime, window_ms: int) -> list[Interval]:
    """The times whose rows `evidence` wants, in order; `until`: end of the newest judged window, for a miss that is
    still open. Of one that is longer than `COVERED` how it began, and how it came to its worst window; while it is open
    to the hour before that, so that one which grows worse with every window is not explained anew with each."""
    start, end = miss.start - looks_back(miss), miss.end or until
    if end <= miss.start + COVERED:
        return [Interval(start, end)]
    worst = miss.worst_at + timedelta(milliseconds=window_ms)
    worst = worst if miss.end else floor_time(worst, HOUR_MS)
    if worst <= miss.start + COVERED:
        return [Interval(start, miss.start + COVERED)]
    return [Interval(start, miss.start + BEGINNING), Interval(worst - (COVERED - BEGINNING), worst)]


def covered(miss: Miss, until: datetime, times: Sequence[Interval]) -> dict[str, Any]:
    """Which times of a long miss its evidence covers; nothing where that is all of it."""
    if times[-1].end == (miss.end or until) and len(times) == 1:
        return {}
    inside = [Interval(max(time.start, miss.start), time.end) for time in times]
    return {"covers": [[instant_text(time.start), instant_text(time.end)] for time in inside]}


def is_explained(miss: Miss, before: Miss, covers: Mapping[str, Any]) -> bool:
    """Does the evidence that a long miss had `before` some more windows say what these times would say again?"""
    told = before.evidence
    same_place = (miss.worst_group, miss.worst_topic) == (before.worst_group, before.worst_topic)
    same_time = bool(covers) and told.get("covers") == covers["covers"]
    up_to_worst = miss.worst_at == before.worst_at or len(covers.get("covers", ())) == 2
    return same_place and same_time and up_to_worst and not {"damaged_files", "unread_expiry", "chain"} & told.keys()


def looks_back(of: Sla | Miss) -> timedelta:
    """How much of the time before a miss its evidence tells of: late rows of that time change it."""
    return timedelta(milliseconds=of.max_latency_ms) + LOOK_BACK


def evidence_rows(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The figures that are known, in words: what, before the miss, during it."""
    known = {key: value for key, value in found.items() if value is not None}
    return [row for row in _rows(known) if row[1] or row[2]]


def _rows(known: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    def figure(key: str, words: Callable[[Any], str]) -> str:
        return words(known[key]) if key in known else ""

    yield "Produced", figure("produce_rate_before", rate), figure("produce_rate_during", rate)
    yield "Consumed", figure("consume_rate_before", rate), figure("consume_rate_during", rate)
    yield "Records waiting", figure("lag_at_start", count), figure("lag_worst", lambda n: f"up to {count(n)}")
    yield "Last commit", "", figure("last_commit_at", _moment)
    yield "Late partitions", "", count(known["late_partitions"]) if known.get("late_partitions") else ""
    if "rewound_records" in known:
        yield "Rewound", "", f"{plural(known['rewound_records'], 'record')}{figure('rewound_at', _after)}"
    yield "Consumer status", "", figure("status", lambda word: f"{word} ({share(known['status_share'])} of windows)")
    yield "Group members", figure("members_before", count), figure("members_least", count)
    if "expired_unread_low" in known:
        yield "Expired unread", "", _records(known["expired_unread_low"], known["expired_unread_high"])
    yield "Next unread expiry", "", figure("unread_expires_at", _moment)
    if "broker_verdict" in known:
        during = known.get("broker_reason") or known["broker_verdict"].replace("_", " ")
        yield "Broker pairs", figure("broker_verdict_before", lambda word: str(word).replace("_", " ")), during
    late = figure("replication_latency_worst_ms", lambda ms: f"up to {span(ms)} late")
    yield f"Replication {known.get('replication_flow', '')}", "", late
    yield "What to do", "", known.get("remediation") or ""
    yield "Not measured", "", ", ".join(known.get("not_measured", ()))
    first, *worst = [span(_length_ms(*time)) for time in known.get("covers", ())] or [""]
    yield "Looked at", "", first and f"its first {first}{''.join(f' and worst {one}' for one in worst)}"


def _length_ms(start: str, end: str) -> float:
    return (parse_instant(end) - parse_instant(start)) / timedelta(milliseconds=1)


def _records(low: int, high: int) -> str:
    if low == high:
        return plural(low, "record") if low else "none"
    return f"{count(low)} to {count(high)} records"


def _after(text: str) -> str:
    return f" after {_moment(text)}"


def _moment(text: str) -> str:
    return moment(parse_instant(text))


def _built_from(miss: Miss, sums: Sequence[WindowSum]) -> datetime:
    """When trouble began: records that are late at the start of a miss were produced `max_latency` earlier at least."""
    within = YOUNG * miss.max_latency_ms
    young = [w.end for w in sums if w.end <= miss.start and w.age_ms is not None and w.age_ms <= within]
    return min(miss.start - timedelta(milliseconds=miss.max_latency_ms), max(young, default=miss.start))


def _jsonable(found: Evidence) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, datetime):
            return instant_text(value)
        return list(value) if isinstance(value, tuple) else round(value, 3) if isinstance(value, float) else value

    figures = asdict(found)
    figures |= figures.pop("around")
    return {key: plain(value) for key, value in figures.items()}
