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
from kafka_sla.model.entities import Cluster, Connection, Interval, epoch_ms
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
    certain_from_commits: int
    certain_from_samples: int
    opposed: int


def judged(
    name: str, interval: Interval, window_ms: int, truth: Truth, commits: Sequence[Row], samples: Sequence[Row]
) -> Judged:
    """Compare one flow, window by window."""
    of_commits, of_samples = ({epoch_ms(row["window_start"]): row for row in rows} for rows in (commits, samples))
    windows = [epoch_ms(window.start) for window in interval.windows(window_ms)]
    pairs = [(_verdict(of_commits.get(at)), _verdict(of_samples.get(at))) for at in windows]
    outside = [
        f"{row['window_start']:%H:%M:%S} {text}"
        for at in windows
        if (row := of_samples.get(at)) is not None
        for text in left_bounds(_possible(truth, at, window_ms), truth, row)
        if text.startswith("backlog_age")
    ]
    return Judged(
        name, len(windows), tuple(outside), sum(a is not None for a, _ in pairs), sum(b is not None for _, b in pairs),
        sum(a is not None and b is not None and a != b for a, b in pairs),
    )  # fmt: skip


def _possible(truth: Truth, start: int, window_ms: int) -> list[int]:
    return truth.latencies(start, start + window_ms)


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
    lines = ["| flow | windows | truth outside bounds | certain at 30 s, from commits | from samples | opposed |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    lines += [f"| {one.name} | {one.windows} | {len(one.outside)} | {one.certain_from_commits / one.windows:.0%}"
              f" | {one.certain_from_samples / one.windows:.0%} | {one.opposed} |" for one in found]  # fmt: skip
    every = sum(one.windows for one in found)
    lines.append(f"| all | {every} | {sum(len(one.outside) for one in found)}"
                 f" | {sum(one.certain_from_commits for one in found) / every:.1%}"
                 f" | {sum(one.certain_from_samples for one in found) / every:.1%}"
                 f" | {sum(one.opposed for one in found)} |")  # fmt: skip
    lines += [f"\n- {one.name}: {text}" for one in found for text in one.outside[:3]]
    return "\n".join(lines)
