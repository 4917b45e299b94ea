"""The table `steady_state`: is a group-partition bootstrapping or steady under each SLA, since when and why.

A group-partition bootstraps from its first commit (also after its offset was deleted), a rewind, a return after
`expire_group` or a topic created again, until the first commit that leaves it caught up (or `grace_period` is over).
Then it is steady, whatever happens next except another of those events (KIP-489, "Using Latency Metric for SLAs").
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.entities import MeasuredSla, SteadyState
from kafka_sla.model.tables import STEADY_STATE
from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.metrics import Metric
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.histogram import count_over
from kafka_sla.spark_jobs.numeric.rewinds import Commits, Rewinds, told_apart
from kafka_sla.spark_jobs.numeric.scans import begins, last_until
from kafka_sla.spark_jobs.windows.segments import Segments, Steps
from kafka_sla.spark_jobs.windows.window_grid import GridRows, backlog_age

REASONS = (
    "",
    "first_commit",
    "rewind",
    "offset_reset",
    "returned",
    "topic_recreated",
    "caught_up",
    "grace_period_over",
    "rewound_again",
)
_CODE = {name: code for code, name in enumerate(REASONS)}
STATES = (
    "ARRAY<STRUCT<sla: STRING, state: STRING, since: TIMESTAMP, reason: STRING, steady_whole_window: BOOLEAN, "
    "records_over_threshold: BIGINT, records_over_threshold_low: BIGINT, records_over_threshold_high: BIGINT, "
    "rewound_from: BIGINT>>"
)
"""How the states of one row travel beside its latency, one entry per SLA that covers the group-partition."""


class _State(TypedDict):
    """A carried state; `since` in µs."""

    state: str
    since: int
    reason: str
    rewound_from: int | None


@dataclass(frozen=True, slots=True)
class _BootstrapSpans:
    """One entry per commit: the bootstrapping that it belongs to; µs."""

    began: Ints
    why: Ints
    steady_at: Ints
    steady_why: Ints
    rewound_from: Ints
    """-1: none."""


@dataclass(frozen=True, slots=True)
class StateSpans:
    """Bootstrappings by rules, one entry each, sorted by (group-partition, time); µs."""

    gp: Ints
    """Index into the keys of the chunk."""
    since: Ints
    """An instant of the window that its first commit belongs to: it holds from that window on."""
    began: Ints
    steady_at: Ints
    """FAR: it does not end."""
    steady_within: Ints
    """An instant of the window in which it ends: what polls see at the end of one belongs to it."""
    first_commit: Bools
    """It began with the first known commit."""


def states(chunk: Chunk, step: Steps, parts: Segments, grid: GridRows, slas: tuple[MeasuredSla, ...]) -> pa.Array:
    """Per row the list of its states (type STATES), in the order of `slas`."""
    caught_age = _age_at_commits(chunk, step)
    every = {
        int(at): json.loads(chunk.carry[int(chunk.gp[at])].as_py() or "{}") for at in np.flatnonzero(chunk.carried)
    }
    found = [_of_sla(sla, chunk, step, parts, grid, caught_age, _carried(sla, every)) for sla in slas]
    rows = np.concatenate([f[0] for f in found]) if found else np.zeros(0, dtype=np.int64)
    structs = pa.concat_arrays([f[1] for f in found]) if found else pa.array([], _struct())
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(len(grid.gp) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), structs.take(pa.array(order)))


def supposed(chunk: Chunk, step: Steps, rules: Sequence[SteadyState]) -> list[StateSpans]:
    """When each group-partition would have been what, by rules that no SLA of the configuration may have. The facts
    must begin with those of each group: nothing is carried over."""
    age = _age_at_commits(chunk, step)
    return [_changes(chunk, _bootstrap_spans(one, chunk, step, age, {})) for one in rules]


def _changes(chunk: Chunk, spans: _BootstrapSpans) -> StateSpans:
    """The commits with which another bootstrapping begins, or a group-partition."""
    first = np.flatnonzero(begins(chunk.gp, spans.began, spans.why, spans.steady_at))
    gp, ends = chunk.gp[first], spans.steady_at[first]
    last = last_until(chunk.gp, chunk.at, gp, np.minimum(ends, chunk.at.max(initial=0)))
    polled = chunk.polled[last] & (chunk.at[last] == ends)
    return StateSpans(
        gp, chunk.within[first], spans.began[first], ends, ends - polled, spans.why[first] == _CODE["first_commit"]
    )


def _age_at_commits(chunk: Chunk, step: Steps) -> Floats:
    """How old the backlog was that each commit left."""
    position = np.where(step.void, 0, chunk.offset)
    return backlog_age(chunk, step.epoch, position, chunk.at, step.horizon)[0]


def rows(measured: pa.Table) -> pa.Table:
    """Rows of `tables.STEADY_STATE` from rows with `states`: one per row and SLA."""
    states = measured.column("states").combine_chunks()
    of_row = measured.select([n for n in STEADY_STATE.names if n in measured.column_names])
    of_row = of_row.take(pc.list_parent_indices(states))
    own = dict(zip([field.name for field in _struct()], states.flatten().flatten(), strict=True))
    return pa.table({n: own[n] if n in own else of_row.column(n) for n in STEADY_STATE.names})


def _struct() -> pa.DataType:
    stamp = pa.timestamp("us", "UTC")
    return pa.struct(
        [
            ("sla", pa.string()),
            ("state", pa.string()),
            ("since", stamp),
            ("reason", pa.string()),
            ("steady_whole_window", pa.bool_()),
            ("records_over_threshold", pa.int64()),
            ("records_over_threshold_low", pa.int64()),
            ("records_over_threshold_high", pa.int64()),
            ("rewound_from", pa.int64()),
        ]
    )


def _of_sla(
    sla: MeasuredSla,
    chunk: Chunk,
    step: Steps,
    parts: Segments,
    grid: GridRows,
    caught_age: Floats,
    carried: dict[int, _State],
) -> tuple[Ints, pa.Array]:
    """The rows that an SLA covers, and their states."""
    covered = np.array([_covers(sla, key) for key in chunk.keys.to_pylist()], dtype=np.bool_)
    rows = np.flatnonzero(covered[grid.gp]) if len(covered) else np.zeros(0, dtype=np.int64)
    spans = _bootstrap_spans(sla.steady_state, chunk, step, caught_age, carried)
    last, start, end = grid.last[rows], grid.start[rows], grid.end[rows]
    steady = spans.steady_at[last] < np.maximum(end, chunk.at[last] + 1)  # a poll at the end belongs to the window
    since = np.where(steady, spans.steady_at[last], spans.began[last])
    why = np.where(steady, spans.steady_why[last], spans.why[last])
    over, over_low, over_high = _records_over(sla.max_latency_ms, parts, grid)
    throughout = spans.steady_at[last] <= start
    return rows, pa.StructArray.from_arrays(
        [
            pa.array([sla.name] * len(rows), pa.string()),
            pa.array(np.where(steady, "steady", "bootstrapping"), pa.string()),
            pa.array(since, pa.timestamp("us", "UTC")),
            pa.array(REASONS).take(pa.array(why)),
            pa.array(throughout),
            pa.array(over[rows]),
            pa.array(over_low[rows]),
            pa.array(over_high[rows]),
            pa.array(spans.rewound_from[last], mask=spans.rewound_from[last] == NONE),
        ],
        fields=list(_struct()),
    )


def _covers(sla: MeasuredSla, key: dict[str, str]) -> bool:
    return sla.cluster == key["cluster"] and sla.groups.matches(key["group"]) and sla.topics.matches(key["topic"])


def _records_over(threshold_ms: int, parts: Segments, grid: GridRows) -> tuple[Ints, Ints, Ints]:
    """Records above the threshold per row: estimated, surely, and at most. One whose time is unknown may be above."""
    good = ~parts.negative & ~np.isnan(parts.first_ms)
    n = len(parts.records[good])
    counts = count_over(np.full(n, float(threshold_ms)), parts.first_ms[good], parts.last_ms[good], parts.records[good])
    surely, perhaps = good & (parts.low_ms > threshold_ms), ~(parts.high_ms <= threshold_ms)
    return (
        _per_row(grid, parts.commit[good], counts),
        _per_row(grid, parts.commit[surely], parts.records[surely]),
        _per_row(grid, parts.commit[perhaps], parts.records[perhaps]),
    )


def _per_row(grid: GridRows, commit: Ints, counts: Ints) -> Ints:
    total = np.zeros(len(grid.gp), dtype=np.int64)
    np.add.at(total, grid.of_commit[commit], counts)
    return total


def _bootstrap_spans(
    rules: SteadyState, chunk: Chunk, step: Steps, caught_age: Floats, carried: dict[int, _State]
) -> _BootstrapSpans:
    """Which event each commit belongs to, and when that span became steady."""
    event, began = _events(rules, chunk, step, carried)
    caught = (caught_age <= rules.caught_up_within_ms) & (chunk.offset != NONE) & ~chunk.carried & ~step.void
    carried_at, carried_why = _carried_steady(carried, len(event))
    rewinds = _rewinds(rules, chunk, step, carried, event, began, caught)
    event[(event == _CODE["rewind"]) & step.rewound & ~rewinds.begins] = 0
    event[rewinds.again] = _CODE["rewound_again"]
    index = np.arange(len(event))
    span = np.maximum.accumulate(np.where(event > 0, index, 0)) if len(event) else index
    ends_span = np.append(event[1:] > 0, True) if len(event) else caught
    first = _first_true_from(caught, ends_span)
    caught_at = np.where(first[span] >= 0, chunk.at[np.maximum(first[span], 0)], FAR)
    steady_at, steady_why = np.minimum(caught_at, FAR), np.full(len(event), _CODE["caught_up"])
    if rules.grace_period_ms is not None:
        over = began[span] + rules.grace_period_ms * 1_000
        steady_why = np.where(over < steady_at, _CODE["grace_period_over"], steady_why)
        steady_at = np.minimum(steady_at, over)
    carried_at[rewinds.again], carried_why[rewinds.again] = chunk.at[rewinds.again], _CODE["rewound_again"]
    steady_at = np.where(carried_at[span] != NONE, carried_at[span], steady_at)
    steady_why = np.where(carried_at[span] != NONE, carried_why[span], steady_why)
    return _BootstrapSpans(began[span], event[span], steady_at, steady_why, rewinds.mark)


def _rewinds(
    rules: SteadyState, chunk: Chunk, step: Steps, carried: dict[int, _State], event: Ints, began: Ints, caught: Bools
) -> Rewinds:
    """Which of the rewinds are new beginnings."""
    rewind, count = _CODE["rewind"], len(event)
    steady, mark = np.zeros(count, dtype=np.bool_), np.full(count, NONE)
    for index, state in carried.items():
        steady[index], reached = state["state"] == "steady", state["rewound_from"]
        mark[index] = NONE if reached is None else reached
    of_rewind = event == rewind
    commits = Commits(
        chunk.gp,
        chunk.at,
        np.where(step.void, NONE, chunk.offset),
        (event > 0) & ~(of_rewind & step.rewound),
        step.rewound,
        caught,
        began,
        steady,
        of_rewind & ~step.rewound,
        mark,
    )
    grace_period = rules.grace_period_ms
    return told_apart(commits, None if grace_period is None else grace_period * 1_000)


def _events(rules: SteadyState, chunk: Chunk, step: Steps, carried: dict[int, _State]) -> tuple[Ints, Ints]:
    """Code of the event at each commit (0: none) and when it began."""
    event = np.zeros(len(chunk.gp), dtype=np.int64)
    event[step.rewound] = _CODE["rewind"]
    gap = ~step.first & (chunk.at - step.before > rules.expire_group_ms * 1_000)
    event[gap] = _CODE["returned"]
    event[step.recreated & ~step.void] = _CODE["topic_recreated"]
    event[step.first] = _CODE["first_commit"]
    began = chunk.at.copy()
    for index, state in carried.items():
        began[index] = state["since"]
        if state["state"] == "bootstrapping":
            event[index] = _CODE[state["reason"]]
    return event, began


def _carried(sla: MeasuredSla, every: dict[int, dict[str, _State]]) -> dict[int, _State]:
    """The state of this SLA at the commits that are carried positions."""
    return {at: states[sla.name] for at, states in every.items() if sla.name in states}


def _carried_steady(carried: dict[int, _State], commits: int) -> tuple[Ints, Ints]:
    """Per commit the instant and reason of a carried steady state, NONE elsewhere."""
    at, why = np.full(commits, NONE), np.zeros(commits, dtype=np.int64)
    for index, state in carried.items():
        if state["state"] == "steady":
            at[index], why[index] = state["since"], _CODE[state["reason"]]
    return at, why


def _first_true_from(flag: Bools, ends_span: Bools) -> Ints:
    """Index of the first True at or after each position within its span; -1 where none."""
    n = len(flag)
    found = np.where(flag, np.arange(n), n)
    following = np.minimum.accumulate(found[::-1])[::-1] if n else found
    span_end = np.where(ends_span, np.arange(n), n)
    span_end = np.minimum.accumulate(span_end[::-1])[::-1] if n else span_end
    return np.where(following <= span_end, following, NONE)


METRIC = Metric(STEADY_STATE)
