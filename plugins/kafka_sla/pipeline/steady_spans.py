"""Steady states that group-partitions would have by rules of no configured SLA: replayed from stored facts once, kept
as spans, given as rows of `steady_state`. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_sla.lake.queries.latency_rows import Pair
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import SteadyState
from kafka_sla.model.tables import STEADY_STATE
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.numeric.scans import last_until
from kafka_sla.spark_jobs.steady_state import StateSpans
from kafka_sla.spark_jobs.supposed_states import supposed_states

Ints = NDArray[np.int64]
_STAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class RowStates:
    """The state of each row of a group and topic by one of the rules; µs."""

    known: NDArray[np.bool_]
    """Facts say what it was."""
    whole_window: NDArray[np.bool_]
    """Steady during the whole window."""
    began: Ints
    steady_at: Ints
    steady: NDArray[np.bool_]
    """At the window's end."""
    first_commit: NDArray[np.bool_]


class SteadySpans:
    """The spans of all group-partitions of a job, by each of the rules."""

    def __init__(self, job: Job, rules: Sequence[SteadyState]) -> None:
        self._rules = {one: number for number, one in enumerate(rules)}
        self._number: dict[tuple[str, str, int], int] = {}
        found: list[list[StateSpans]] = [[] for _ in rules]
        for keys, spans in supposed_states(job, rules):
            first = len(self._number)
            columns = (keys[name].to_pylist() for name in ("group", "topic", "partition"))
            self._number |= {key: first + n for n, key in enumerate(zip(*columns, strict=True))}
            for kept, one in zip(found, spans, strict=True):
                kept.append(_moved(one, first))
        self._spans = [_joined(parts) for parts in found]

    def of(self, rule: SteadyState, pair: Pair, rows: pa.Table) -> RowStates:
        """The state of each of these rows of `consumer_latency`."""
        spans = self._spans[self._rules[rule]]
        start, end = micros(rows["window_start"]), micros(rows["window_end"])
        index = last_until(spans.gp, spans.since, self._numbers(pair, rows), end, before=True)
        known, at = index >= 0, np.maximum(index, 0)
        began, steady_at, within, first = (
            _at(values, at) for values in (spans.began, spans.steady_at, spans.steady_within, spans.first_commit)
        )
        return RowStates(
            known, known & (steady_at <= start), began, steady_at, known & (within < end), first.astype(np.bool_)
        )

    def _numbers(self, pair: Pair, rows: pa.Table) -> Ints:
        """The group-partition of each row; -2 where no fact names it."""
        encoded = rows["partition"].combine_chunks().dictionary_encode()
        numbers = [self._number.get((*pair, partition), -2) for partition in encoded.dictionary.to_pylist()]
        found: Ints = np.array(numbers, dtype=np.int64)[encoded.indices.to_numpy()]
        return found


def micros(times: pa.ChunkedArray) -> Ints:
    """Times as whole microseconds since 1970."""
    found: Ints = times.cast(pa.int64()).to_numpy()
    return found


def steady_rows(sla: str, rows: pa.Table, states: RowStates) -> pa.Table:
    """Rows of `steady_state` beside those of `consumer_latency`. Their counts of due and late records are null."""
    steady = states.steady
    reasons = np.where(steady, 0, np.where(states.first_commit, 1, 2))
    columns: dict[str, Any] = {name: rows[name] for name in STEADY_STATE.names if name in rows.column_names}
    columns |= {
        "sla": pa.array([sla]).take(pa.array(np.zeros(len(rows), dtype=np.int64))),
        "state": pa.array(["bootstrapping", "steady"]).take(pa.array(steady.astype(np.int64))),
        "since": pa.array(np.where(steady, states.steady_at, states.began), _STAMP),
        "reason": pa.array(["caught_up", "first_commit", "returned"]).take(pa.array(reasons)),
        "steady_whole_window": pa.array(states.whole_window),
    }
    nothing = pa.nulls(len(rows), pa.int64())
    found = pa.table(
        {name: columns.get(name, nothing) for name in STEADY_STATE.names},
        schema=pa.schema([field.with_nullable(True) for field in arrow_schema(STEADY_STATE)]),
    )
    return found if states.known.all() else found.filter(pa.array(states.known))


def of_pair(rows: pa.Table, pair: Pair) -> pa.Table:
    """Those of the rows that are of this group and topic."""
    return rows.filter(pc.and_(pc.equal(rows["group"], pair[0]), pc.equal(rows["topic"], pair[1])))


def _moved(spans: StateSpans, first: int) -> StateSpans:
    return replace(spans, gp=spans.gp + first)


def _joined(parts: Sequence[StateSpans]) -> StateSpans:
    nothing = np.zeros(0, dtype=np.int64)
    names = StateSpans.__slots__
    return StateSpans(*(np.concatenate([nothing, *(getattr(part, name) for part in parts)]) for name in names))


def _at(values: NDArray[Any], index: Ints) -> Ints:
    return values[index] if len(values) else np.zeros(len(index), dtype=np.int64)
