"""Steady states that group-partitions would have by rules of no configured SLA: replayed from stored facts once, kept
as runs of windows, given as rows of `steady_state`. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_sla.lake.queries.latency_rows import Pair
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.tables import STEADY_STATE
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.numeric.scans import last_until
from kafka_sla.spark_jobs.steady_state import REASONS, STATE_NAMES, SteadyRules, WindowStates
from kafka_sla.spark_jobs.supposed_states import StateRuns, supposed_states

Ints = NDArray[np.int64]
_STAMP = pa.timestamp("us", "UTC")
_Key = tuple[str, str, int, bool]
"""Group, topic, partition, and whether it is the state of an assumed position."""


@dataclass(frozen=True, slots=True)
class RowStates:
    """The state of each row of a group and topic by one of the rules."""

    known: NDArray[np.bool_]
    """Facts say what it was."""
    states: WindowStates

    @property
    def whole_window(self) -> NDArray[np.bool_]:
        """Steady during the whole window."""
        return self.known & self.states.steady_whole_window

    @property
    def contradictory(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.known & (self.states.state == STATE_NAMES.index("contradictory"))
        return found


class SteadySpans:
    """The states of all group-partitions of a job, by each of the rules."""

    def __init__(self, job: Job, every: Sequence[SteadyRules]) -> None:
        self._rules = {rules: number for number, rules in enumerate(every)}
        self._number: dict[_Key, int] = {}
        parts = [[_no_run()] for _ in every]
        for some in supposed_states(job, every):
            columns = (some.keys[name].to_pylist() for name in ("group", "topic", "partition"))
            keys = [(*key, some.assumed) for key in zip(*columns, strict=True)]
            numbers = np.array([self._number.setdefault(key, len(self._number)) for key in keys], dtype=np.int64)
            for of_rules, runs in zip(parts, some.runs, strict=True):
                of_rules.append(StateRuns(numbers[runs.gp], runs.start, runs.states))
        self._runs = [_joined(of_rules) for of_rules in parts]

    def of(self, rules: SteadyRules, pair: Pair, rows: pa.Table) -> RowStates:
        """The state of each of these rows of `consumer_latency`."""
        runs = self._runs[self._rules[rules]]
        index = last_until(runs.gp, runs.start, self._numbers(pair, rows), micros(rows["window_start"]))
        return RowStates(index >= 0, runs.states.take(np.maximum(index, 0)))

    def _numbers(self, pair: Pair, rows: pa.Table) -> Ints:
        """The group-partition of each row; -2 where no fact names it."""
        encoded = rows["partition"].combine_chunks().dictionary_encode()
        partitions = encoded.dictionary.to_pylist()
        numbers = np.array(
            [[self._number.get((*pair, one, assumed), -2) for assumed in (False, True)] for one in partitions],
            dtype=np.int64,
        ).reshape(-1, 2)
        is_assumed = pc.is_valid(rows["assumed_offset"]).to_numpy().astype(np.int64)
        found: Ints = numbers[encoded.indices.to_numpy(), is_assumed]
        return found


def micros(times: pa.ChunkedArray) -> Ints:
    """Times as whole microseconds since 1970."""
    found: Ints = times.cast(pa.int64()).to_numpy()
    return found


def steady_rows(sla: str, rows: pa.Table, found: RowStates) -> pa.Table:
    """Rows of `steady_state` beside those of `consumer_latency`. Their counts of due and late records are null."""
    columns: dict[str, Any] = {name: rows[name] for name in STEADY_STATE.names if name in rows.column_names}
    columns |= {
        "sla": pa.array([sla]).take(pa.array(np.zeros(len(rows), dtype=np.int64))),
        "state": pa.array(STATE_NAMES).take(pa.array(found.states.state)),
        "since": pa.array(found.states.since, _STAMP),
        "reason": pa.array(REASONS).take(pa.array(found.states.reason)),
        "steady_whole_window": pa.array(found.whole_window),
    }
    nothing = pa.nulls(len(rows), pa.int64())
    made = pa.table(
        {name: columns.get(name, nothing) for name in STEADY_STATE.names},
        schema=pa.schema([field.with_nullable(True) for field in arrow_schema(STEADY_STATE)]),
    )
    return made if found.known.all() else made.filter(pa.array(found.known))


def of_pair(rows: pa.Table, pair: Pair) -> pa.Table:
    """Those of the rows that are of this group and topic."""
    return rows.filter(pc.and_(pc.equal(rows["group"], pair[0]), pc.equal(rows["topic"], pair[1])))


def _no_run() -> StateRuns:
    """A run of no group-partition, in the place of states that are not known."""
    zero = np.zeros(1, dtype=np.int64)
    return StateRuns(zero - 1, zero, WindowStates(zero, zero, zero, zero > 0))


def _joined(parts: Sequence[StateRuns]) -> StateRuns:
    """All runs, sorted by (group-partition, start)."""
    gp, start = (np.concatenate([getattr(part, name) for part in parts]) for name in ("gp", "start"))
    order = np.lexsort((start, gp))
    columns = (np.concatenate([getattr(part.states, name) for part in parts]) for name in WindowStates.__slots__)
    return StateRuns(gp[order], start[order], WindowStates(*columns).take(order))
