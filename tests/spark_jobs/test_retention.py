"""A group that retention overtakes: which records it still read nobody saw, and the bounds allow for all of them."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.spark_jobs.conftest import Row, at, commit, point
from tests.spark_jobs.numeric.test_polls import outside

Measure = Callable[..., list[Row]]
SECONDS, WINDOW = 1_200, 60


@dataclass(frozen=True)
class Slow:
    """What a group that is too slow read of one partition."""

    produced: list[float]
    starts: list[tuple[float, int]]
    commits: list[tuple[float, int]]
    read: list[tuple[float, int]]
    """Time of the commit and offset of each record that it read."""

    def start(self, now: float) -> int:
        return self.starts[bisect_left(self.starts, (now,)) - 1][1]

    def truth(self, begin: float, end: float) -> dict[str, float]:
        latencies = [(now - self.produced[offset]) * 1000 for now, offset in self.read if begin <= now < end]
        position = max(self.commits[bisect_left(self.commits, (end,)) - 1][1], self.start(end))
        waiting = self.produced[position : bisect_left(self.produced, end)]
        found = {"backlog_age": (end - waiting[0]) * 1000 if waiting else 0.0}
        if latencies:
            largest, mean = max(latencies), sum(latencies) / len(latencies)
            found |= {"records_latency": latencies[-1], "records_latency_max": largest, "records_latency_avg": mean}
            found["backlog_age_max"] = max(largest, found["backlog_age"])
        return found


def overtaken(luck: random.Random) -> Slow:
    """It reads half as fast as is written; retention keeps about four minutes, and then it is reset, soon or later."""
    produced = sorted(round(luck.uniform(-300, SECONDS), 3) for _ in range(1_500))
    starts, commits, read = [(-999.0, 0)], [(-300.0, 0)], list[tuple[float, int]]()
    now, position, latest = -295.0, 0, luck.random() < 0.5
    while now < SECONDS - 6:
        now = round(now + luck.uniform(2, 9), 3)
        if luck.random() < 0.05:
            starts.append((now - 0.5, max(starts[-1][1], bisect_left(produced, now - luck.uniform(200, 280)))))
            now += luck.choice([0.0, 40.0])
        start, end = starts[-1][1], bisect_left(produced, now - 0.2)
        if position < start:
            position = end if latest else start
        reached = min(end, position + luck.randrange(6))
        read += [(now, offset) for offset in range(position, reached)]
        position = reached
        commits.append((now, position))
    return Slow(produced, starts, commits, read)


@pytest.mark.parametrize("every", [60, 300])
def test_the_truth_lies_inside_the_bounds_when_retention_overtakes_a_group(measure: Measure, every: int) -> None:
    flows = [overtaken(random.Random(seed)) for seed in range(40)]
    points, commits = list[Row](), list[Row]()
    for number, flow in enumerate(flows):
        place = {"partition": number}
        ends = [(t, bisect_left(flow.produced, t)) for t in range(-300, SECONDS + 1, 10)]
        points += [point(t, end, source="list_offsets", **place) for t, end in ends]
        looks = range(-297, SECONDS + 301, every)
        points += [point(t, bisect_left(flow.produced, t), log_start_offset=flow.start(t), **place) for t in looks]
        commits += [commit(t, offset, **place) for t, offset in flow.commits]
    rows = measure(points, commits, 0, SECONDS)
    starts = {at(start): start for start in range(0, SECONDS, WINDOW)}
    wrong = []
    for row in rows:
        begin = starts[row["window_start"]]
        wrong += outside(row, flows[row["partition"]].truth(begin, begin + WINDOW))
    assert wrong == []
    assert sum(row["backlog_age_max_low_ms"] > 60_000 for row in rows) > len(rows) / 4
