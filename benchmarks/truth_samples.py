"""Samples of all flows while they run, and what can be judged from them beside what the commit log says."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType

from benchmarks.truth_log import Truth
from benchmarks.truth_table import Row, left_bounds
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Cluster, Connection, Interval, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS
from kafka_sla.pipeline.sampling import Pace, sample

THRESHOLD_MS = 30_000
_CHECKED = ("records_latency_max", "backlog_age_max")


class Samples:
    """Samples every flow into a store inside the `with` block, as `kafka-sla sample` does."""

    def __init__(self, store: Store, client: dict[str, str], clusters: Sequence[Cluster], window_ms: int) -> None:
        self._clusters, self._stop, self._threads = clusters, threading.Event(), ThreadPoolExecutor(len(clusters))
        pace, login = Pace(window_ms=window_ms), Connection("broker", extra={**client})
        self._sample = partial(sample, store, connection=login, pace=pace, stop=self._stop, say=lambda text: None)
        self._running: list[Future[int]] = []

    def __enter__(self) -> Samples:
        self._running = [self._threads.submit(self._sample, cluster) for cluster in self._clusters]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._threads.shutdown()
        for each in self._running if kind is None else ():
            each.result()


@dataclass(frozen=True, slots=True)
class Judged:
    """Windows of one flow, by whether what is known of each decides a threshold."""

    name: str
    windows: int
    outside: tuple[str, ...]
    went_back: int
    """Windows at whose end the group stood behind where it was last polled: no fact can tell."""
    certain_from_commits: int
    certain_from_samples: int
    opposed: int
    exporter_opposed: int


def judged(
    name: str,
    interval: Interval,
    window_ms: int,
    truth: Truth,
    commits: Sequence[Row],
    samples: Sequence[Row],
    polled: Sequence[tuple[int, int]],
    exporter: Sequence[tuple[float, float]],
) -> Judged:
    """Compare one flow, window by window; `polled`: times and positions, `exporter`: times and lags."""
    of_commits, of_samples = ({epoch_ms(row["window_start"]): row for row in rows} for rows in (commits, samples))
    windows = [epoch_ms(window.start) for window in interval.windows(window_ms)]
    pairs = [(_verdict(of_commits.get(at)), _verdict(of_samples.get(at))) for at in windows]
    went_back = {at for at in windows if truth.position(at + window_ms) < _last(polled, at + window_ms)}
    outside = [
        f"{row['window_start']:%H:%M:%S} {text}"
        for at in windows
        if (row := of_samples.get(at)) is not None and at not in went_back
        for text in left_bounds(truth.latencies(at, at + window_ms), truth, row)
        if text.startswith("backlog_age")
    ]
    theirs = [_of_exporter([lag for when, lag in exporter if at <= when < at + window_ms]) for at in windows]
    return Judged(
        name,
        len(windows),
        tuple(outside),
        len(went_back),
        sum(a is not None for a, _ in pairs),
        sum(b is not None for _, b in pairs),
        _opposed(pairs),
        _opposed([(a, b) for (a, _), b in zip(pairs, theirs, strict=True)]),
    )


def _last(polled: Sequence[tuple[int, int]], moment: int) -> int:
    """Where the group was last polled before this moment."""
    return max(((at, position) for at, position in polled if at < moment), default=(0, 0))[1]


def _opposed(pairs: Sequence[tuple[bool | None, bool | None]]) -> int:
    return sum(a is not None and b is not None and a != b for a, b in pairs)


def _of_exporter(lags: Sequence[float]) -> bool | None:
    """Its estimate has no bounds: it calls every window that has a sample."""
    return max(lags) <= THRESHOLD_MS if lags else None


def _verdict(row: Row | None) -> bool | None:
    """Whether the threshold was met for certain (True), missed for certain (False), or neither."""
    if row is None:
        return None
    if any((row[f"{name}_low_ms"] or 0) > THRESHOLD_MS for name in _CHECKED):
        return False
    highs = [row[f"{name}_high_ms"] for name in _CHECKED if row[f"{name}_ms"] is not None]
    return True if highs and all(high is not None and high <= THRESHOLD_MS for high in highs) else None


def verdicts(found: Sequence[Judged]) -> str:
    """The table."""
    lines = [
        "| flow | windows | truth outside bounds | went back unseen | certain at 30 s, from commits | from samples"
        " | opposed | Lag Exporter's opposed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.windows} | {len(one.outside)} | {one.went_back}"
        f" | {one.certain_from_commits / one.windows:.0%} | {one.certain_from_samples / one.windows:.0%}"
        f" | {one.opposed} | {one.exporter_opposed} |"
        for one in found
    ]
    every, total = sum(one.windows for one in found), partial(_total, found)
    lines.append(
        f"| all | {every} | {sum(len(one.outside) for one in found)} | {total('went_back')}"
        f" | {total('certain_from_commits') / every:.1%} | {total('certain_from_samples') / every:.1%}"
        f" | {total('opposed')} | {total('exporter_opposed')} |"
    )
    lines += [f"\n- {one.name}: {text}" for one in found for text in one.outside[:3]]
    return "\n".join(lines)


def _total(found: Sequence[Judged], count: str) -> int:
    return sum(getattr(one, count) for one in found)


def polls(store: Store) -> dict[str, list[tuple[int, int]]]:
    """Times and positions that were landed, by cluster."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row in Lake(store).read_facts(COMMITTED_OFFSETS, EVERYTHING).to_pylist():
        found.setdefault(row["cluster"], []).append((epoch_ms(row["at"]), row["committed_offset"]))
    return found
