"""A day of offset facts with all that can go wrong in it, and the promises it is judged by. Draws no lots, does no I/O
but the files it is asked to write."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from kafka_sla.model.entities import Interval

CLUSTER = "shop"
DAY = Interval(datetime(2026, 11, 2, 12, tzinfo=UTC), datetime(2026, 11, 3, 12, tzinfo=UTC))
"""Noon to noon: midnight, where files of facts end, lies inside."""
CONFIGURATION = f"""
clusters: {{{CLUSTER}: {{}}}}
defaults: {{recipients: [on-call@example.com], objective: 99%, period: day}}
slas:
  - {{name: within a minute for five, groups: ["!sparse-reader"], max_latency: 60s, for: 5m}}
  - {{name: stopped within two minutes, group: stopped-reader, max_latency: 2m}}
  - {{name: slow within five minutes, group: slow-reader, max_latency: 5m, for: 10m}}
  - {{name: sparse within an hour, group: sparse-reader, max_latency: 1h}}
"""
_BEFORE = 1800
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class DayFlow:
    """One topic with one group; times are hours of the day, from noon."""

    name: str
    made: Callable[[float], int]
    """Records written in the first so many seconds of the day and the half hour before it."""
    partitions: int = 1
    begins: float = -0.5
    commit_seconds: float = 10
    poll_seconds: float = 30
    poll_phase: float = 7
    """Polls are not taken at the edges of windows."""
    reads_per_second: float = 100.0
    absent: tuple[tuple[float, float], ...] = ()
    rewinds: tuple[tuple[float, int], ...] = ()
    kept_seconds: float | None = None
    """Older records are removed by retention."""
    leaves: float | None = None
    """When the group's offset is deleted."""
    files_every: float = 24.0
    """Hours of facts per imported file."""

    def commits(self, partition: int) -> Iterator[tuple[float, int | None]]:
        """Seconds of the day, and the position."""
        position, at = 0, self.begins * _HOUR + 3 + partition * 1.7
        rewinds = [(hour * _HOUR, records) for hour, records in self.rewinds]
        while at < 24 * _HOUR:
            if self.leaves is not None and at >= self.leaves * _HOUR:
                yield at, None
                return
            if not any(a * _HOUR <= at < b * _HOUR for a, b in self.absent):
                may = round(self.reads_per_second * self.commit_seconds)
                first = max(position, self._removed(at))
                position = min(self.made(at + _BEFORE - 0.8), first + may)
                yield at, position
            if rewinds and at >= rewinds[0][0]:
                position = max(0, position - rewinds.pop(0)[1])
                yield at + 0.5, position
            at += self.commit_seconds

    def points(self, partition: int) -> Iterator[tuple[float, int, int]]:
        """Seconds of the day, log start, log end."""
        at = -_BEFORE + self.poll_phase + partition
        while at <= 24 * _HOUR + self.poll_seconds:
            yield at, self._removed(at), self.made(at + _BEFORE)
            at += self.poll_seconds

    def _removed(self, at: float) -> int:
        return 0 if self.kept_seconds is None else self.made(max(0.0, at + _BEFORE - self.kept_seconds))


def steady(per_second: float) -> Callable[[float], int]:
    return lambda seconds: max(0, int(seconds * per_second))


def bursts(size: int, every: float) -> Callable[[float], int]:
    return lambda seconds: size * (1 + int(max(0.0, seconds) // every))


def spells(per_second: float, times: float, *hours: tuple[float, float]) -> Callable[[float], int]:
    """Steady, but `times` as much in some hours."""
    edges = [0.0, *(hour * _HOUR + _BEFORE for spell in hours for hour in spell), 10**9]
    made = [0.0]
    for index, (left, right) in enumerate(pairwise(edges)):
        made.append(made[-1] + (right - left) * per_second * (times if index % 2 else 1))

    def written(seconds: float) -> int:
        index = bisect_right(edges, max(0.0, seconds)) - 1
        return int(made[index] + (seconds - edges[index]) * per_second * (times if index % 2 else 1))

    return written


FLOWS = (
    DayFlow("steady", steady(5), partitions=2),
    DayFlow("bursty", bursts(900, every=600), reads_per_second=20),
    DayFlow("stopped", steady(3), absent=((3.1, 3.5), (11.85, 12.4), (17.0, 17.03), (23.7, 24.5))),
    DayFlow("rewound", steady(4), rewinds=((6.05, 20_000), (12.0, 3_000)), reads_per_second=12),
    DayFlow("retired", steady(2), absent=((14.0, 15.5),), kept_seconds=1800),
    DayFlow("slow", spells(4, 3, (8.0, 9.0), (20.0, 20.4)), reads_per_second=6),
    DayFlow("sparse", bursts(50, every=1500), commit_seconds=300, poll_seconds=1260, files_every=3),
    DayFlow("idle", bursts(40, every=7200), commit_seconds=30, absent=((5.9, 8.1),)),
    DayFlow("young", steady(1), begins=4.4, leaves=16.0),
)


def write_files(folder: Path) -> list[tuple[str, Path]]:
    """Write the facts as CSV files to import, and answer the table and path of each, in the order of time."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[tuple[float, str, str], list[list[object]]] = {}
    for flow in FLOWS:
        for partition in range(flow.partitions):
            for at, start, end in flow.points(partition):
                row = [CLUSTER, flow.name, partition, _when(at), start, end, "poll"]
                found.setdefault((_file(flow, at), "log_offsets", flow.name), []).append(row)
            for at, position in flow.commits(partition):
                row = [
                    CLUSTER,
                    f"{flow.name}-reader",
                    flow.name,
                    partition,
                    _when(at),
                    "" if position is None else position,
                    "commit_log",
                ]
                found.setdefault((_file(flow, at), "committed_offsets", flow.name), []).append(row)
    return [(table, _write(folder, hour, table, name, rows)) for (hour, table, name), rows in sorted(found.items())]


def _file(flow: DayFlow, at: float) -> float:
    return at / _HOUR // flow.files_every * flow.files_every


def _when(seconds: float) -> str:
    return f"{DAY.start + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%f}Z"


_HEADERS = {
    "log_offsets": "cluster topic partition at log_start_offset log_end_offset source",
    "committed_offsets": "cluster group topic partition at committed_offset source",
}


def _write(folder: Path, hour: float, table: str, name: str, rows: list[list[object]]) -> Path:
    path = folder / f"{table}-{name}-{hour:g}.csv"
    with path.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(_HEADERS[table].split())
        writer.writerows(rows)
    return path
