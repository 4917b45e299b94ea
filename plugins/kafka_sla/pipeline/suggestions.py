"""SLAs that fit what was published: proposed for each group and topic, and judged as if they were configured. Reads the
lake; neither an SLA nor a verdict of it is written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_sla.config.settings import Settings
from kafka_sla.config.suggested_slas import entry, sla_name
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.commit_spacing import newest_commit_spacings
from kafka_sla.lake.queries.latency_rows import Pair, compacted_commits, latency_by_pair
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.entities import (
    EVERYTHING,
    Interval,
    Miss,
    Patterns,
    Sla,
    SlaWindow,
    ceil_time,
    epoch_ms,
    floor_time,
)
from kafka_sla.pipeline.expiry import unread_rows
from kafka_sla.pipeline.planning.load_plan import replay_of
from kafka_sla.pipeline.steady_spans import RowStates, SteadySpans, micros, of_pair, steady_rows
from kafka_sla.sla.attainment import Attainment, attainment_in
from kafka_sla.sla.compacted_history import doubted, first_commits
from kafka_sla.sla.evaluate import judge_together
from kafka_sla.sla.miss_rule import judge_misses
from kafka_sla.sla.suggestion import BAD, GOOD, OTHER, THRESHOLDS_MS, Codes, Proposal, proposals
from kafka_sla.spark_jobs.steady_state import SteadyRules

Supposing = Callable[[Sequence[Mapping[str, Any]]], list[Sla]]
"""Entries of `slas` as the configuration would have them."""
Floats = NDArray[np.float64]
_ROWS_AT_ONCE = 50_000
"""Rows of latency from which on those read so far are judged: their proposals' verdicts are held in memory."""
_FROM_SEVERITY = np.array([OTHER, OTHER, GOOD, OTHER, BAD], dtype=np.int8)
"""What a window is by its worst partition: absent, bootstrapping, good, unknown, bad."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be suggested for; `interval` may reach beyond what is published."""

    interval: Interval
    cluster: str
    groups: Patterns
    topics: Patterns


@dataclass(frozen=True, slots=True)
class JudgedProposal:
    """One proposal, and what the SLA made of it would have got."""

    proposal: Proposal
    entry: Mapping[str, Any]
    """As `slas` of the configuration have it."""
    sla: Sla
    attainment: Attainment
    """The whole span as one period."""
    misses: tuple[Miss, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What fits one group and topic."""

    cluster: str
    group: str
    topic: str
    span: Interval
    partitions: int
    judged: tuple[JudgedProposal, ...]
    """From the strict one to the relaxed one; empty: none is proposed."""
    reason: str
    """Why none is; else empty."""
    windows: Sequence[SlaWindow]
    """As the relaxed one was judged; empty without one."""
    commit_spacing_ms: float | None = None
    """Usual time between two commits; None where only polls are known."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What one cluster's suggestions are made from."""

    cluster: str
    prefix: str
    """Of the names of its SLAs."""
    span: Interval
    settings: Settings
    lake: Lake
    suppose: Supposing
    defaults: Mapping[str, Any]
    rules: Mapping[int, Sla]
    """An SLA of each threshold, for its steady state."""
    states: SteadySpans
    compacted: pa.Table
    taken: set[str]
    """Names of SLAs."""
    spacings: Mapping[Pair, float]
    """Usual time between two commits of each group on a topic, in ms."""


def suggestions(
    settings: Settings,
    lake: Lake,
    ledger: Ledger,
    wanted: Wanted,
    suppose: Supposing,
    defaults: Mapping[str, Any],
    taken: set[str],
) -> Iterator[Suggestion]:
    """One per group and topic of the cluster that has rows in the interval, by name. `taken`: names of SLAs; those of
    the proposals are added."""
    slices = ledger.publications.slices([wanted.cluster], wanted.interval)
    if not slices:
        return
    span, names = _span(wanted.interval, slices, settings.window_ms), {one.name for one in settings.clusters}
    of_thresholds = [
        entry(str(ms), wanted.cluster, "group", "topic", ms, settings.window_ms, 0.5, defaults) for ms in THRESHOLDS_MS
    ]
    rules = dict(zip(THRESHOLDS_MS, suppose(of_thresholds), strict=True))
    job = replay_of(settings, lake, span, wanted.cluster, wanted.topics)
    states = SteadySpans(job, list(dict.fromkeys(map(SteadyRules.of, rules.values()))))
    stored = Interval(EVERYTHING.start, max(s.interval.end for s in slices))
    prefix, compacted = wanted.cluster if len(names) > 1 else "", compacted_commits(lake, wanted.cluster, stored)
    spacings = newest_commit_spacings(lake, ledger, wanted.cluster, wanted.interval)
    place = _Place(
        wanted.cluster,
        prefix,
        span,
        settings,
        lake.remembering(),
        suppose,
        defaults,
        rules,
        states,
        compacted,
        taken,
        spacings,
    )
    waiting: list[_Proposed] = []
    every_partition = all(sla.partitions == "all" for sla in rules.values())
    for pair, rows in latency_by_pair(lake, slices, wanted.groups, wanted.topics):
        judged = rows if every_partition else rows.filter(pc.is_null(rows["assumed_offset"]))
        if not len(judged):
            continue
        waiting.append(_proposed(place, pair, judged))
        if sum(len(one.rows) for one in waiting) >= _ROWS_AT_ONCE:
            yield from _judged(place, waiting)
            waiting = []
    yield from _judged(place, waiting)


def _span(interval: Interval, slices: Sequence[Slice], window_ms: int) -> Interval:
    """Whole windows of the interval; where it has no beginning or no end, of what is published."""
    start = interval.start if interval.start > EVERYTHING.start else min(s.interval.start for s in slices)
    end = interval.end if interval.end < EVERYTHING.end else max(s.interval.end for s in slices)
    return Interval(floor_time(start, window_ms), ceil_time(end, window_ms))


@dataclass(frozen=True, slots=True)
class _Proposed:
    """What is proposed for one group and topic, not yet judged."""

    pair: Pair
    rows: pa.Table
    proposals: tuple[Proposal, ...]
    entries: list[dict[str, Any]]
    slas: list[Sla]
    reason: str


def _proposed(place: _Place, pair: Pair, rows: pa.Table) -> _Proposed:
    found = proposals(_Grid(place, pair, rows).codes, _active(rows), place.settings.window_ms)
    if isinstance(found, str):
        return _Proposed(pair, rows, (), [], [], found)
    entries = []
    for one in found:
        name = sla_name(place.prefix, *pair, one.max_latency_ms, place.taken)
        place.taken.add(name)
        entries.append(entry(name, place.cluster, *pair, one.max_latency_ms, one.for_ms, one.objective, place.defaults))
    return _Proposed(pair, rows, found, entries, place.suppose(entries), "")


def _judged(place: _Place, proposed: Sequence[_Proposed]) -> Iterator[Suggestion]:
    """Together, because a query for each takes longer than all of their rows."""
    slas = [sla for one in proposed for sla in one.slas]
    windows = _windows(place, proposed, slas) if slas else {}
    for one in proposed:
        judged = tuple(
            _judged_proposal(place, *of_level, windows[of_level[-1].name])
            for of_level in zip(one.proposals, one.entries, one.slas, strict=True)
        )
        last = windows[one.slas[-1].name] if one.slas else ()
        partitions = len(one.rows["partition"].unique())
        spacing_ms = place.spacings.get(one.pair)
        yield Suggestion(place.cluster, *one.pair, place.span, partitions, judged, one.reason, last, spacing_ms)


def _windows(place: _Place, proposed: Sequence[_Proposed], slas: Sequence[Sla]) -> dict[str, tuple[SlaWindow, ...]]:
    """The verdicts that evaluating these SLAs gives."""
    latency = pa.concat_tables([one.rows for one in proposed])
    steady = pa.concat_tables([_steady(place, one, sla) for one in proposed for sla in one.slas])
    unread = unread_rows(slas, place.lake, place.span)
    return judge_together(slas, place.span, place.settings.window_ms, latency, steady, unread=unread)


def _steady(place: _Place, one: _Proposed, sla: Sla) -> pa.Table:
    steady = steady_rows(sla.name, one.rows, place.states.of(SteadyRules.of(sla), one.pair, one.rows))
    lost = of_pair(place.compacted, one.pair)
    return doubted(steady, lost) if lost.num_rows and first_commits(steady) else steady


def _judged_proposal(
    place: _Place, proposal: Proposal, made: Mapping[str, Any], sla: Sla, windows: Sequence[SlaWindow]
) -> JudgedProposal:
    attainment = attainment_in(sla, windows, place.span)
    return JudgedProposal(proposal, made, sla, attainment, judge_misses(sla, windows))


def _active(rows: pa.Table) -> int:
    """Windows in which records were consumed or waited."""
    moved = pc.or_(pc.greater(rows["records_consumed"], 0), pc.greater(pc.fill_null(rows["backlog_age_max_ms"], 0), 0))
    return len(rows.filter(moved)["window_start"].unique())


class _Grid:
    """One row per partition, one column per window: what is compared with thresholds to choose them."""

    def __init__(self, place: _Place, pair: Pair, rows: pa.Table) -> None:
        self._place, self._pair, self._rows = place, pair, rows
        width = timedelta(milliseconds=place.settings.window_ms)
        self._windows = (place.span.end - place.span.start) // width
        start = micros(rows["window_start"]) // 1_000 - epoch_ms(place.span.start)
        self._column = start // place.settings.window_ms
        partitions = rows["partition"].combine_chunks().dictionary_encode()
        self._row = partitions.indices.to_numpy()
        self._partitions = len(partitions.dictionary)
        self._low, high, self._unknown = _bounds(rows)
        self._high = np.where(np.isnan(high), np.inf, high)
        self._states: dict[int, RowStates] = {}

    def codes(self, threshold_ms: int, limit_ms: float) -> Codes:
        """What each window would be, roughly: one whose bounds lie on both sides of the limit counts as bad, and where
        the high one is infinite as unknown."""
        states = self._of(threshold_ms)
        late = np.where(
            self._low > limit_ms,
            4,
            np.where(self._unknown | np.isinf(self._high), 3, np.where(self._high > limit_ms, 4, 2)),
        )
        is_unknown = self._unknown | ~states.known | states.contradictory
        severity = np.where(states.whole_window, late, np.where(is_unknown, 3, 1))
        grid = np.zeros((self._partitions, self._windows), dtype=np.int8)
        grid[self._row, self._column] = severity
        codes: Codes = _FROM_SEVERITY[grid.max(axis=0)]
        return codes

    def _of(self, threshold_ms: int) -> RowStates:
        if threshold_ms not in self._states:
            rules = SteadyRules.of(self._place.rules[threshold_ms])
            self._states[threshold_ms] = self._place.states.of(rules, self._pair, self._rows)
        return self._states[threshold_ms]


def _bounds(rows: pa.Table) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Low and high bound of each row's latency, and where it is not known; a high bound that is missing is infinite."""
    lows, highs, there = [], [], []
    for name in ("records_latency_max", "backlog_age_max"):
        there.append(~np.isnan(_floats(rows, f"{name}_ms")))
        lows.append(_floats(rows, f"{name}_low_ms"))
        high = _floats(rows, f"{name}_high_ms")
        highs.append(np.where(there[-1] & np.isnan(high), np.inf, high))
    unknown = ~there[1] | pc.is_valid(rows["unknown_reason"]).to_numpy()
    unknown |= pc.greater(rows["unknown_latency_records"], 0).to_numpy()
    return np.fmax(*lows), np.fmax(*highs), unknown


def _floats(rows: pa.Table, name: str) -> Floats:
    found: Floats = rows[name].to_numpy().astype(np.float64)
    return found
