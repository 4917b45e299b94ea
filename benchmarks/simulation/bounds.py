"""Is the truth inside the bounds of every figure, window by window? Knows rows of `consumer_latency`, and no facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.simulation.truth import WindowTruth
from benchmarks.simulation.visibility import Visibility
from kafka_sla.model.entities import epoch_ms

_ROUNDING_MS = 0.01
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """One figure that is not as it must be."""

    invariant: str
    figure: str
    reader: str
    window: int
    """Its start, epoch ms."""
    true: str
    made: str

    def __str__(self) -> str:
        minutes, ms = divmod(self.window % 86_400_000, 60_000)
        place = f"{minutes // 60:02}:{minutes % 60:02}:{ms // 1000:02}"
        return f"{self.invariant}: {self.figure} of {self.reader} in {place}: true {self.true}, made {self.made}"


def outside(visible: Visibility, truth: WindowTruth, start: int, row: Row) -> Iterator[Failure]:
    """Which bounds of a row exclude the truth."""
    reader = visible.reader
    hidden = visible.voids or visible.hidden(start, epoch_ms(row["window_end"]))
    for figure, low, high in () if hidden else _figures(truth, row):
        room = (visible.skew_ms if figure.startswith("backlog") else visible.room_ms) + _ROUNDING_MS
        if low > _of(row, figure, "high") + room or high < _of(row, figure, "low") - room:
            bounds = f"{row[f'{figure}_low_ms']} to {row[f'{figure}_high_ms']} (about {row[f'{figure}_ms']})"
            yield Failure("truth in bounds", figure, reader.name, start, f"{low:g} to {high:g}", bounds)
    for figure in ("records_latency", "records_latency_max", "records_latency_avg", "backlog_age", "backlog_age_max"):
        value, low, high = row[f"{figure}_ms"], _of(row, figure, "low"), _of(row, figure, "high")
        if value is not None and not low - _ROUNDING_MS <= value <= high + _ROUNDING_MS:
            yield Failure("estimate in bounds", figure, reader.name, start, str(value), f"{low} to {high}")
    counted = sum(count for _, count in row["latency_histogram"] or ())
    left_out = row["negative_latency_records"] + row["unknown_latency_records"]
    if counted + left_out != row["records_consumed"]:
        yield Failure(
            "histogram adds up",
            "latency_histogram",
            reader.name,
            start,
            str(row["records_consumed"]),
            f"{counted} + {left_out}",
        )


def _figures(truth: WindowTruth, row: Row) -> Iterator[tuple[str, float, float]]:
    """Figures that are made, and what each may truly be called at least and at most, ms."""
    if row["backlog_age_ms"] is not None and truth.age is not None:
        yield "backlog_age", truth.age, truth.age
        if row["backlog_age_max_ms"] is not None:
            worst = max(truth.age, int(truth.possible.max(initial=0)))
            yield "backlog_age_max", worst, max(worst, truth.oldest)
    negative = bool((truth.latencies < 0).any()) or bool(row["negative_latency_records"])
    if row["records_latency_max_ms"] is not None and len(truth.latencies):
        largest = int(truth.possible.max())
        yield "records_latency_max", largest, largest
        if not negative and not row["unknown_latency_records"]:
            mean = float(truth.possible.mean())
            yield "records_latency_avg", mean, mean
            yield "records_latency", int(truth.latencies[-1]), int(truth.latencies[-1])


def _of(row: Row, figure: str, side: str) -> float:
    value = row[f"{figure}_{side}_ms"]
    if value is None:
        return np.inf if side == "high" else 0.0
    return float(value)
