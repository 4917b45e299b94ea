"""The table `steady_state`: is a group-partition bootstrapping or steady under each SLA, since when and why.

A group-partition bootstraps from a beginning: its first commit (also after its offset was deleted), a step back that
makes an on-time group late, a return after `expire_group` or a topic that was created again. Bootstrapping ends with
the first commit that leaves it caught up, when `grace_period` is over, or when a `progress_deadline` has passed without
headway. Then it is steady until its next beginning. See KIP-489, "Using Latency Metric for SLAs".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.entities import MeasuredSla, Sla, SteadyState
from kafka_sla.model.tables import STEADY_STATE
from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.metrics import Metric
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.rewinds import Commits, Rewinds, classify_step_backs
from kafka_sla.spark_jobs.numeric.scans import begins, latest, running
from kafka_sla.spark_jobs.windows.due_records import count_due_records
from kafka_sla.spark_jobs.windows.segments import Steps, log_end_at, log_start_at
from kafka_sla.spark_jobs.windows.window_grid import GridRows, backlog_age

REASONS = (
    "",
    "first_commit",
    "no_position",
    "rewind",
    "offset_reset",
    "returned",
    "topic_recreated",
    "caught_up",
    "grace_period_over",
    "not_catching_up",
    "contradiction_over",
)
STATE_NAMES = ("bootstrapping", "steady", "contradictory")
_BOOTSTRAPPING, _STEADY, _CONTRADICTORY = range(len(STATE_NAMES))
_CODE = {name: code for code, name in enumerate(REASONS)}
_STAMP = pa.timestamp("us", "UTC")
_FIELDS = (
    ("sla", "STRING", pa.string()),
    ("state", "STRING", pa.string()),
    ("since", "TIMESTAMP", _STAMP),
    ("reason", "STRING", pa.string()),
    ("steady_whole_window", "BOOLEAN", pa.bool_()),
    ("records_due", "BIGINT", pa.int64()),
    ("records_late", "BIGINT", pa.int64()),
    ("records_late_low", "BIGINT", pa.int64()),
    ("records_late_high", "BIGINT", pa.int64()),
    ("rewound_from", "BIGINT", pa.int64()),
    ("rewound_at", "TIMESTAMP", _STAMP),
    ("rewinds", "BIGINT", pa.int64()),
    ("progress_at", "TIMESTAMP", _STAMP),
    ("lowest_age_ms", "DOUBLE", pa.float64()),
    ("lowest_lag", "BIGINT", pa.int64()),
)
STATES = f"ARRAY<STRUCT<{', '.join(f'{name}: {kind}' for name, kind, _ in _FIELDS)}>>"
"""How the states of one row travel beside its latency, one entry per SLA that covers the group-partition."""


class _State(TypedDict):
    """A carried state; times in µs."""

    state: str
    since: int
    reason: str
    rewound_from: int | None
    rewound_at: int | None
    rewinds: int | None
    progress_at: int | None
    lowest_age_ms: float | None
    lowest_lag: int | None


class SteadyRules(NamedTuple):
    """The part of an SLA that decides when a group-partition is steady."""

    steady: SteadyState
    max_latency_ms: int
    allowed_lag: int

    @classmethod
    def of(cls, sla: MeasuredSla | Sla) -> SteadyRules:
        return cls(sla.steady_state, sla.max_latency_ms, sla.allowed_lag)


@dataclass(frozen=True, slots=True)
class _Backlog:
    """What each commit left unread, and how old a backlog each step back found; one entry per commit."""

    age_ms: Floats
    lag: Ints
    """-1: no log end offset is known."""
    age_before_ms: Floats
    """NaN where the commit is no step back."""
    lag_before: Ints
    contradicted_age_ms: Floats
    """Age of what waited at a position that this poll contradicts; NaN without."""


@dataclass(frozen=True, slots=True)
class _BootstrapSpans:
    """One entry per commit: the bootstrapping or contradiction that it belongs to, as known until the next commit;
    times in µs."""

    began: Ints
    why: Ints
    steady_at: Ints
    steady_why: Ints
    caught_at: Ints
    """First commit that left the group caught up; FAR: none."""
    contradictory: Bools
    rewinds: Rewinds
    progress_at: Ints
    """Last commit with which the backlog got smaller than ever since the beginning, or the beginning."""
    lowest_age: Ints
    """Smallest backlog age so far; µs."""
    lowest_lag: Ints


@dataclass(frozen=True, slots=True)
class WindowStates:
    """The state of group-partitions by some rules, one entry per row of a grid."""

    state: Ints
    """Index into `STATE_NAMES`."""
    since: Ints
    """µs."""
    reason: Ints
    """Index into `REASONS`."""
    steady_whole_window: Bools

    def take(self, index: Ints) -> WindowStates:
        return WindowStates(*(getattr(self, name)[index] for name in self.__slots__))


def states(chunk: Chunk, step: Steps, grid: GridRows, slas: tuple[MeasuredSla, ...]) -> pa.Array:
    """Per row the list of its states (type STATES), in the order of `slas`."""
    backlog = _backlog(chunk, step)
    every = {
        int(at): json.loads(chunk.carry[int(chunk.gp[at])].as_py() or "{}") for at in np.flatnonzero(chunk.carried)
    }
    found = [_of_sla(sla, chunk, step, grid, backlog, _carried(sla, every)) for sla in slas]
    rows = np.concatenate([f[0] for f in found]) if found else np.zeros(0, dtype=np.int64)
    structs = pa.concat_arrays([f[1] for f in found]) if found else pa.array([], _struct())
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(len(grid.gp) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), structs.take(pa.array(order)))


def supposed(chunk: Chunk, step: Steps, grid: GridRows, every: Sequence[SteadyRules]) -> list[WindowStates]:
    """The states of all rows of the grid by each of these rules, which no configured SLA may have. The facts must begin
    with those of each group: nothing is carried over."""
    backlog, rows = _backlog(chunk, step), np.arange(len(grid.gp))
    return [_window_states(chunk, _bootstrap_spans(rules, chunk, step, backlog, {}), grid, rows) for rules in every]


def _backlog(chunk: Chunk, step: Steps) -> _Backlog:
    """Age and lag of the backlog after each commit, and before each step back."""
    position = np.where(step.void, 0, chunk.offset)
    age, lag = _backlog_at(chunk, step, np.arange(len(chunk.gp)), position, chunk.at)
    back = np.flatnonzero(step.rewound)
    age_before, lag_before = np.full(len(age), np.nan), np.full(len(age), NONE)
    seen = np.where(step.exact, chunk.at, _last_seen(chunk, step))[back]
    age_before[back], lag_before[back] = _backlog_at(chunk, step, back, chunk.offset[back - 1], seen)
    wrong, contradicted = np.flatnonzero(chunk.contradicted != NONE), np.full(len(age), np.nan)
    contradicted[wrong] = _backlog_at(chunk, step, wrong, chunk.contradicted[wrong], chunk.at[wrong])[0]
    return _Backlog(age, lag, age_before, lag_before, contradicted)


def _backlog_at(chunk: Chunk, step: Steps, commit: Ints, position: Ints, at: Ints) -> tuple[Floats, Ints]:
    """(age in ms, lag) of what waited at a position of each of these commits' group-partitions at an instant."""
    epoch, horizon = step.epoch[commit], step.horizon[commit]
    log_end = log_end_at(chunk, chunk.gp[commit], epoch, at)
    waiting = chunk.timeline.ranges.skip(epoch, position, horizon)
    lag = np.where(log_end == NONE, NONE, np.maximum(log_end - waiting, 0))
    return backlog_age(chunk, epoch, position, at, horizon)[0], lag


def _last_seen(chunk: Chunk, step: Steps) -> Ints:
    """Until when the position before each commit was seen to hold, also by polls before the replayed facts."""
    seen = np.full(chunk.keys.num_rows, NONE)
    seen[chunk.status.gp] = chunk.status.rows["seen"].to_numpy()
    after_carried = np.roll(chunk.carried, 1)
    return np.where(after_carried, np.maximum(step.unchanged_until, seen[chunk.gp]), step.unchanged_until)


def rows(measured: pa.Table) -> pa.Table:
    """Rows of `tables.STEADY_STATE` from rows with `states`: one per row and SLA."""
    states = measured.column("states").combine_chunks()
    of_row = measured.select([n for n in STEADY_STATE.names if n in measured.column_names])
    of_row = of_row.take(pc.list_parent_indices(states))
    own = dict(zip([field.name for field in _struct()], states.flatten().flatten(), strict=True))
    return pa.table({n: own[n] if n in own else of_row.column(n) for n in STEADY_STATE.names})


def _struct() -> pa.DataType:
    return pa.struct([(name, kind) for name, _, kind in _FIELDS])


def _of_sla(
    sla: MeasuredSla,
    chunk: Chunk,
    step: Steps,
    grid: GridRows,
    backlog: _Backlog,
    carried: dict[int, _State],
) -> tuple[Ints, pa.Array]:
    """The rows that an SLA covers, and their states."""
    covered = np.array([_covers(sla, key) for key in chunk.keys.to_pylist()], dtype=np.bool_)
    rows = np.flatnonzero(covered[grid.gp]) if len(covered) else np.zeros(0, dtype=np.int64)
    rules = SteadyRules.of(sla)
    spans = _bootstrap_spans(rules, chunk, step, backlog, carried)
    records = count_due_records(chunk, step, grid, rows, sla.max_latency_ms, sla.allowed_lag)
    columns = _columns(rules, chunk, spans, grid, rows) | {
        "sla": pa.array([sla.name] * len(rows), pa.string()),
        "records_due": pa.array(records.due),
        "records_late": pa.array(records.late),
        "records_late_low": pa.array(records.late_low),
        "records_late_high": pa.array(records.late_high),
    }
    return rows, pa.StructArray.from_arrays([columns[field.name] for field in _struct()], fields=list(_struct()))


def _window_states(chunk: Chunk, spans: _BootstrapSpans, grid: GridRows, rows: Ints) -> WindowStates:
    """What is known at the end of each of these rows."""
    last, start, end = grid.last[rows], grid.start[rows], grid.end[rows]
    until = np.maximum(end, chunk.at[last] + 1)  # a poll at the end belongs to the window
    steady_at, steady_why = spans.steady_at[last], spans.steady_why[last]
    is_contradictory = spans.contradictory[last] & (steady_at > start)
    is_steady = (steady_at < until) & ~is_contradictory
    judged_early = np.isin(steady_why, (_CODE["not_catching_up"], _CODE["grace_period_over"]))
    caught_at = spans.caught_at[last]
    was_steady = (steady_at <= start) & (caught_at > start)  # this window keeps the reason with which it began
    caught = is_steady & judged_early & (caught_at < until) & ~was_steady
    since = np.where(caught, caught_at, np.where(is_steady, steady_at, spans.began[last]))
    why = np.where(caught, _CODE["caught_up"], np.where(is_steady, steady_why, spans.why[last]))
    state = np.where(is_contradictory, _CONTRADICTORY, np.where(is_steady, _STEADY, _BOOTSTRAPPING))
    return WindowStates(state, since, why, is_steady & (steady_at <= start))


def _columns(
    rules: SteadyRules, chunk: Chunk, spans: _BootstrapSpans, grid: GridRows, rows: Ints
) -> dict[str, pa.Array]:
    """State, since when, why, and what the next interval continues from, of each of these rows."""
    last, end = grid.last[rows], grid.end[rows]
    found = _window_states(chunk, spans, grid, rows)
    steady, contradictory = found.state == _STEADY, spans.contradictory[last]
    deadline_us = rules.steady.progress_deadline_ms * 1_000
    rewound_at = spans.rewinds.rewound_at[last]
    is_recent = (rewound_at != NONE) & ((rewound_at + deadline_us >= end) | (found.state == _CONTRADICTORY))

    def known(values: Any, mask: Bools, kind: pa.DataType) -> pa.Array:
        return pa.array(values[last], kind, mask=~mask)

    bootstraps = ~steady & ~contradictory
    lowest_age, lowest_lag, mark = spans.lowest_age, spans.lowest_lag, spans.rewinds.mark
    return {
        "state": pa.array(STATE_NAMES).take(pa.array(found.state)),
        "since": pa.array(found.since, _STAMP),
        "reason": pa.array(REASONS).take(pa.array(found.reason)),
        "steady_whole_window": pa.array(found.steady_whole_window),
        "rewound_from": known(mark, mark[last] != NONE, pa.int64()),
        "rewound_at": known(spans.rewinds.rewound_at, is_recent, _STAMP),
        "rewinds": known(spans.rewinds.rewinds, is_recent, pa.int64()),
        "progress_at": known(spans.progress_at, bootstraps, _STAMP),
        "lowest_age_ms": known(lowest_age / 1_000, bootstraps & (lowest_age[last] != NONE), pa.float64()),
        "lowest_lag": known(lowest_lag, bootstraps & (lowest_lag[last] != NONE), pa.int64()),
    }


def _covers(sla: MeasuredSla, key: dict[str, str]) -> bool:
    return sla.cluster == key["cluster"] and sla.groups.matches(key["group"]) and sla.topics.matches(key["topic"])


def _bootstrap_spans(
    rules: SteadyRules, chunk: Chunk, step: Steps, backlog: _Backlog, carried: dict[int, _State]
) -> _BootstrapSpans:
    """Which event each commit belongs to, and when that span became steady."""
    event, began = _events(rules.steady, chunk, step, carried)
    counts = (chunk.offset != NONE) & ~chunk.carried & ~step.void
    if chunk.assumed:  # only an empty partition is known to be read
        counts &= chunk.offset <= np.maximum(log_start_at(chunk, chunk.gp, step.epoch, chunk.at), 0)
    caught = counts & _is_within(rules, rules.steady.caught_up_within_ms, backlog.age_ms, backlog.lag)
    rewinds = _rewinds(rules, chunk, step, backlog, carried, event)
    event[(event == _CODE["rewind"]) & step.rewound & ~rewinds.begins] = 0
    event[rewinds.contradictory] = _CODE["rewind"]
    index = np.arange(len(event))
    begin = np.maximum.accumulate(np.where(event > 0, index, 0)) if len(event) else index
    ends_span = np.append(event[1:] > 0, True) if len(event) else caught
    contradictory = (rewinds.contradictory | _of_carried(carried, len(event), _is_contradictory))[begin]
    first = _first_true_from(caught, ends_span)[begin]
    caught_at = np.where(first >= 0, chunk.at[np.maximum(first, 0)], FAR)
    headway = _headway(rules, chunk, backlog, counts, rewinds, contradictory, event, began, ends_span, carried)
    over = np.where(contradictory, _CODE["contradiction_over"], _CODE["not_catching_up"])
    ends = [(np.where(contradictory, FAR, caught_at), np.full(len(event), _CODE["caught_up"]))]
    if rules.steady.grace_period_ms is not None:
        limit = np.where(contradictory, FAR, began[begin] + rules.steady.grace_period_ms * 1_000)
        ends.append((limit, np.full(len(event), _CODE["grace_period_over"])))
    ends.append((headway.lapses_at, over))
    carried_at, carried_why = _carried_steady(carried, len(event))
    steady_at, steady_why = ends[0]
    for at, why in ends[1:]:
        steady_why = np.where(at < steady_at, why, steady_why)
        steady_at = np.minimum(at, steady_at)
    steady_at = np.where(carried_at[begin] != NONE, carried_at[begin], steady_at)
    steady_why = np.where(carried_at[begin] != NONE, carried_why[begin], steady_why)
    return _BootstrapSpans(
        began[begin],
        event[begin],
        steady_at,
        steady_why,
        caught_at,
        contradictory,
        rewinds,
        headway.progress_at,
        headway.lowest_age,
        headway.lowest_lag,
    )


def _is_within(rules: SteadyRules, limit_ms: int, age_ms: Floats, lag: Ints) -> Bools:
    """Is the backlog not older than this, or not larger than the SLA allows?"""
    return (age_ms <= limit_ms) | ((lag != NONE) & (lag <= rules.allowed_lag) if rules.allowed_lag else False)


@dataclass(frozen=True, slots=True)
class _Headway:
    """One entry per commit, of the bootstrapping or contradiction that it belongs to; µs."""

    progress_at: Ints
    lapses_at: Ints
    """When a progress deadline passes, or passed, without headway, as far as is known until the next commit."""
    lowest_age: Ints
    lowest_lag: Ints


def _headway(
    rules: SteadyRules,
    chunk: Chunk,
    backlog: _Backlog,
    counts: Bools,
    rewinds: Rewinds,
    contradictory: Bools,
    event: Ints,
    began: Ints,
    ends_span: Bools,
    carried: dict[int, _State],
) -> _Headway:
    """When each backlog was last smaller than ever since its beginning, by age or by lag.

    Between two commits no backlog gets smaller, so only commits have to be compared, and the deadline passes at an
    instant that needs no commit.
    """
    starts = (event > 0) | begins(chunk.gp)
    segment = starts | rewinds.restarts
    lowest, smaller = list[Ints](), rewinds.contradicts.copy()
    age = np.round(np.where(np.isfinite(backlog.age_ms), backlog.age_ms, 0) * 1_000).astype(np.int64)
    known_age = counts & np.isfinite(backlog.age_ms)
    for values, known, name in ((age, known_age, "lowest_age_ms"), (backlog.lag, counts, "lowest_lag")):
        scale = 1_000 if name == "lowest_age_ms" else 1
        values = np.where(known, values, NONE)
        for i, state in carried.items():
            value = state[name]  # type: ignore[literal-required]
            values[i] = NONE if value is None else round(value * scale)
        low = running(values, segment)
        before = np.where(segment, NONE, np.roll(low, 1))
        smaller |= ~contradictory & known & (before != NONE) & (values != NONE) & (values < before)
        lowest.append(low)
    base = began.copy()
    for i, state in carried.items():
        base[i] = state["rewound_at" if state["state"] == "contradictory" else "progress_at"] or state["since"]
    progress_at = np.where(starts, base, chunk.at)[latest(starts | smaller)]
    deadline = progress_at + rules.steady.progress_deadline_ms * 1_000
    missed = ~ends_span & (deadline < np.roll(chunk.at, -1))
    index = np.arange(len(event))
    begin = np.maximum.accumulate(np.where(starts, index, 0)) if len(event) else index
    first = _first_true_from(missed, ends_span)[begin]
    return _Headway(progress_at, deadline[np.where(first >= 0, np.minimum(first, index), index)], *lowest)


def _rewinds(
    rules: SteadyRules, chunk: Chunk, step: Steps, backlog: _Backlog, carried: dict[int, _State], event: Ints
) -> Rewinds:
    """What each step back is."""
    limit, count = rules.max_latency_ms, len(event)
    was_on_time = _is_within(rules, limit, backlog.age_before_ms, backlog.lag_before)
    is_on_time = _is_within(rules, limit, backlog.age_ms, backlog.lag)
    falls = step.rewound & was_on_time & ~is_on_time

    def number(name: str) -> Callable[[_State], int]:
        return lambda state: int(NONE) if state[name] is None else int(state[name])  # type: ignore[literal-required]

    commits = Commits(
        chunk.gp,
        chunk.at,
        np.where(step.void, NONE, chunk.offset),
        (event > 0) & ~((event == _CODE["rewind"]) & step.rewound),
        step.rewound,
        falls,
        is_on_time & (backlog.contradicted_age_ms > limit),
        _of_carried(carried, count, number("rewound_from"), NONE),
        np.maximum(_of_carried(carried, count, number("rewinds"), NONE), 0),
        _of_carried(carried, count, number("rewound_at"), NONE),
        _of_carried(carried, count, _is_contradictory),
    )
    return classify_step_backs(commits, rules.steady.progress_deadline_ms * 1_000)


def _is_contradictory(state: _State) -> bool:
    return state["state"] == "contradictory"


def _of_carried(
    carried: dict[int, _State], commits: int, value_of: Callable[[_State], Any], otherwise: Any = False
) -> Any:
    """Per commit a value of the state that is carried there."""
    result = np.full(commits, otherwise)
    for index, state in carried.items():
        result[index] = value_of(state)
    return result


def _events(rules: SteadyState, chunk: Chunk, step: Steps, carried: dict[int, _State]) -> tuple[Ints, Ints]:
    """Code of the event at each commit (0: none) and when it began."""
    event = np.zeros(len(chunk.gp), dtype=np.int64)
    event[step.rewound] = _CODE["rewind"]
    gap = ~step.first & (chunk.at - step.before > rules.expire_group_ms * 1_000)
    event[gap] = _CODE["returned"]
    event[step.recreated & ~step.void] = _CODE["topic_recreated"]
    event[step.first] = _CODE["no_position" if chunk.assumed else "first_commit"]
    began = chunk.at.copy()
    for index, state in carried.items():
        began[index] = state["since"]
        if state["state"] != "steady":
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
