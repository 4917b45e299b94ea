"""Samples of all flows while they run, and what can be judged from them beside what the commit log says."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from types import TracebackType

from benchmarks.truth_log import Truth
from benchmarks.truth_table import Row, left_bounds
from kafka_sla.config.store import Store
from kafka_sla.errors import KafkaSlaError
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster, Connection, Interval, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.sources.kafka.sampling import Sampler

POLL_S, THRESHOLD_MS = 5.0, 30_000
_RENEWED = 3
"""Samples after which a sampler looks again which groups there are: their first commits are near the beginning."""
_CHECKED = ("records_latency_max", "backlog_age_max")


class Samples:
    """Polls every flow every five seconds inside the `with` block, as `kafka-sla sample` does."""

    def __init__(self, client: dict[str, str], clusters: Sequence[Cluster], window_ms: int) -> None:
        connection = Connection("broker", extra={**client})
        self._samplers = [Sampler(cluster, connection, window_ms) for cluster in clusters]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)

    def __enter__(self) -> Samples:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def land(self, store: Store) -> None:
        for sampler in self._samplers:
            batch = sampler.take()
            Lake(store).land({COMMITTED_OFFSETS.name: batch.committed_offsets, LOG_OFFSETS.name: batch.log_offsets})

    def _run(self) -> None:
        for number in count():
            if self._stop.is_set():
                break
            due = time.monotonic() + POLL_S
            for sampler in self._samplers:
                if not number % _RENEWED:
                    sampler.renew()  # as with every batch that lands
                try:
                    sampler.sample()
                except KafkaSlaError:
                    continue  # a topic that is not there yet
            self._stop.wait(max(0.0, due - time.monotonic()))
        for sampler in self._samplers:
            sampler.renew()


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
