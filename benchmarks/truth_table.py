"""Truth against estimates, window by window, as Markdown. Knows rows of `consumer_latency`, no Kafka and no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.truth_log import Truth, quantile
from kafka_sla.model.entities import Interval, epoch_ms
from kafka_sla.model.tables import LATENCY_BUCKET_GAMMA

_ROUNDING_MS = 0.01
_P99_SHARE, _P99_MS = 0.05, 250.0
"""How far off the 99th percentile of a whole flow may be: the larger of the two."""
_LOOK_UP_MS = 250
"""As finely as times are looked at: a record this close to its commit may be told to lie after it."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """p50, p99 and largest latency, ms; None without records."""

    p50: float | None
    p99: float | None
    max: float | None

    def __str__(self) -> str:
        return " / ".join(_ms(value) for value in (self.p50, self.p99, self.max))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One flow: figures of the whole interval, and mean absolute errors of the windows' max, mean and p99 (ms)."""

    name: str
    windows: int
    outside: tuple[str, ...]
    """Figures that the truth left the bounds of."""
    records: int
    true: Figures
    ours: Figures
    exporter: Figures
    our_errors: tuple[float | None, ...]
    exporter_errors: tuple[float | None, ...]
    offset_lookups: int

    @property
    def p99_holds(self) -> bool:
        if self.true.p99 is None or self.ours.p99 is None:
            return self.true.p99 == self.ours.p99
        return abs(self.ours.p99 - self.true.p99) <= max(_P99_MS, _P99_SHARE * self.true.p99)


def compare(
    name: str,
    interval: Interval,
    window_ms: int,
    truth: Truth,
    rows: Sequence[Row],
    samples: Sequence[tuple[float, float]],
    offset_lookups: int,
) -> Comparison:
    """Compare one flow; `rows`: its published windows, `samples`: time and lag that Kafka Lag Exporter told."""
    by_start = {epoch_ms(row["window_start"]): row for row in rows}
    windows = [epoch_ms(window.start) for window in interval.windows(window_ms)]
    outside: list[str] = []
    latencies: list[int] = []
    errors: dict[str, list[tuple[float, ...]]] = {"ours": [], "exporter": []}
    for start in windows:
        found, row = truth.latencies(start, start + window_ms), by_start[start]
        outside += [f"{row['window_start']:%H:%M:%S} {text}" for text in left_bounds(found, truth, row)]
        possible = sorted(found)[row["negative_latency_records"] :]
        latencies += possible
        told = [lag for at, lag in samples if start <= at < start + window_ms]
        if possible:
            true = _spread(possible)
            if row["records_latency_max_ms"] is not None:
                p99 = _histogram_quantile([row], 0.99)
                ours = (row["records_latency_max_ms"], row["records_latency_avg_ms"], p99)
                errors["ours"].append(tuple(abs(a - b) for a, b in zip(ours, true, strict=True) if a is not None))
            if told:
                errors["exporter"].append(tuple(abs(a - b) for a, b in zip(_spread(told), true, strict=True)))
    inside = [row for start, row in by_start.items() if start in set(windows)]
    whole = [lag for at, lag in samples if windows[0] <= at < windows[-1] + window_ms]
    largest = max(
        (r["records_latency_max_ms"] for r in inside if r["records_latency_max_ms"] is not None), default=None
    )
    ours_whole = Figures(_histogram_quantile(inside, 0.5), _histogram_quantile(inside, 0.99), largest)
    figures = _figures(_possible(latencies)), ours_whole, _figures(whole)
    means = _means(errors["ours"]), _means(errors["exporter"])
    return Comparison(name, len(windows), tuple(outside), len(latencies), *figures, *means, offset_lookups)


def left_bounds(found: list[int], truth: Truth, row: Row) -> list[str]:
    """Which bounds of a window the truth left. Impossible (negative) latencies count as 0, as far as they are told.

    The mean is that of all offsets: it is checked where each of them is a record.
    """
    end = epoch_ms(row["window_end"])
    checks = {"backlog_age": float(truth.backlog_age(end))}
    told = len(found) - row["negative_latency_records"]
    if found and row["records_latency_max_ms"] is not None:
        checks["records_latency_max"] = float(max(0, *found, 0))
        if row["records_consumed"] == len(found) and not row["unknown_latency_records"]:
            checks["records_latency_avg"] = sum(_possible(found)) / max(1, told)
    left = [
        f"{name}: true {value:.0f}, bounds {_ms(row[f'{name}_low_ms'])} .. {_ms(row[f'{name}_high_ms'])}"
        for name, value in checks.items()
        if not (row[f"{name}_low_ms"] or 0) - _ROUNDING_MS <= value <= _bound(row[f"{name}_high_ms"]) + _ROUNDING_MS
    ]
    if (
        any(value >= 0 for value in found)
        and row["records_latency_max_ms"] is None
        and not row["unknown_latency_records"]
    ):
        left.append("records were read, and no latency is told")
    if row["negative_latency_records"] > sum(value < _LOOK_UP_MS for value in found):
        left.append(f"{row['negative_latency_records']} records are said to be negative")
    return left


def _bound(value: float | None) -> float:
    return float("inf") if value is None else value


def _possible(latencies: Iterable[int]) -> list[float]:
    return [max(0.0, float(value)) for value in latencies]


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    ranked = [max(0.0, float(value)) for value in values]
    return max(ranked), fmean(ranked), quantile(ranked, 0.99) or 0.0


def _figures(values: Sequence[float]) -> Figures:
    return Figures(quantile(values, 0.5), quantile(values, 0.99), max(values, default=None))


def _histogram_quantile(rows: Iterable[Row], share: float) -> float | None:
    """A quantile of merged histograms: the middle of the bucket that it falls into."""
    merged: Counter[int] = Counter()
    for row in rows:
        merged.update(dict(row["latency_histogram"] or ()))
    rank, seen = share * merged.total(), 0
    for bucket in sorted(merged):
        seen += merged[bucket]
        if seen >= rank:
            return 2 * LATENCY_BUCKET_GAMMA**bucket / (LATENCY_BUCKET_GAMMA + 1)
    return None


def _means(errors: Sequence[tuple[float, ...]]) -> tuple[float | None, ...]:
    return tuple(fmean(column) for column in zip(*errors, strict=True)) if errors else (None, None, None)


def markdown(found: Sequence[Comparison]) -> str:
    """Both tables: the whole interval of each flow, then the errors of its windows."""
    whole: dict[str, Callable[[Comparison], object]] = {
        "flow": lambda c: c.name,
        "windows": lambda c: c.windows,
        "records": lambda c: c.records,
        "truth inside bounds": lambda c: f"{1 - len({o[:8] for o in c.outside}) / c.windows:.0%}",
        "true p50 / p99 / max, ms": lambda c: c.true,
        "ours": lambda c: c.ours,
        "Lag Exporter": lambda c: c.exporter,
        "p99 off: ours": lambda c: _off(c.ours, c.true),
        "Lag Exporter's": lambda c: _off(c.exporter, c.true),
        "look-ups": lambda c: c.offset_lookups,
    }
    each: dict[str, Callable[[Comparison], object]] = {
        "flow": lambda c: c.name,
        "ours: max / mean / p99 off by, ms": lambda c: " / ".join(map(_ms, c.our_errors)),
        "Lag Exporter: max / mean / p99 off by, ms": lambda c: " / ".join(map(_ms, c.exporter_errors)),
    }
    return f"{_table(whole, found)}\n\nMean error of the windows' figures:\n\n{_table(each, found)}"


def _table(columns: Mapping[str, Callable[[Comparison], object]], found: Sequence[Comparison]) -> str:
    lines = [list(columns), ["---"] * len(columns), *([str(tell(one)) for tell in columns.values()] for one in found)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _off(told: Figures, true: Figures) -> str:
    if told.p99 is None or not true.p99:
        return "–"
    return f"{told.p99 - true.p99:+,.0f} ms ({(told.p99 - true.p99) / true.p99:+.1%})"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
