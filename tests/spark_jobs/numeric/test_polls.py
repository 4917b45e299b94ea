"""Positions that only polls tell: the truth lies inside the bounds whenever the group moved in between."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Interval, StatusRules
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, CONSUMER_STATUS, LOG_OFFSETS, STEADY_STATE
from kafka_sla.sla.evaluate import judge
from tests.spark_jobs.conftest import Row, at, commit, point, sla
from tests.spark_jobs.measuring import Measuring, status_of

Measure = Callable[..., list[Row]]
FLOWS, SECONDS, WINDOW = 60, 600, 60
BOUNDED = ("backlog_age", "backlog_age_max", "records_latency", "records_latency_max", "records_latency_avg")


def poll(seconds: float, offset: int, **more: Any) -> Row:
    return commit(seconds, offset, source="snapshot", **more)


@dataclass(frozen=True)
class Flow:
    """What really happened on one partition, and who polled when; seconds."""

    produced: list[float]
    commits: list[tuple[float, int]]
    ends_seen: list[float]
    polls: list[float]
    heard_from: float
    """From then on the commit log is read."""

    def position(self, now: float) -> int:
        return self.commits[bisect_right(self.commits, (now, len(self.produced))) - 1][1]

    def age(self, now: float) -> float:
        """Of the oldest unread record, ms."""
        unread = self.produced[self.position(now) : bisect_left(self.produced, now)]
        return (now - unread[0]) * 1000 if unread else 0.0

    def latencies(self, start: float, end: float) -> list[float]:
        """Of the records consumed in a window, ms, in their order."""
        return [
            (now - record) * 1000
            for (_, before), (now, position) in pairwise(self.commits)
            if start <= now < end
            for record in self.produced[before:position]
        ]

    def truth(self, start: float, end: float) -> dict[str, float]:
        latencies, age = self.latencies(start, end), self.age(end)
        found = {"backlog_age": age, "backlog_age_max": max([age, *latencies])}
        if latencies:
            mean = sum(latencies) / len(latencies)
            found |= {
                "records_latency": latencies[-1],
                "records_latency_max": max(latencies),
                "records_latency_avg": mean,
            }
        return found


def random_flow(luck: random.Random) -> Flow:
    """Bursts, a consumer that sleeps and wakes, and polls at random times or at the windows' ends."""
    bursts = range(0, SECONDS, luck.choice([7, 20, 90]))
    produced = sorted(round(luck.uniform(b, b + 5), 3) for b in bursts for _ in range(luck.randrange(12)))
    commits, now, done = [(-1.0, 0)], 0.0, 0
    while now < SECONDS:
        pause = luck.choice([luck.uniform(0, 3), luck.uniform(1, 20), luck.uniform(10, 150)])
        now = round(int(now + pause) + luck.uniform(1.1, 1.9), 3)  # never in the instant of a poll
        ready = bisect_left(produced, now - luck.uniform(0, 5))
        done = max(done, luck.choice([ready, (done + ready) // 2]))
        commits.append((now, done))
    step = luck.choice([5, 20, 60, 100])
    polls = [float(t) for t in range(0, SECONDS + 1, step)]
    if luck.random() < 0.6:
        polls = sorted({round(min(SECONDS, max(0, t + luck.uniform(-step / 2, step / 2))), 3) for t in polls})
    ends = luck.choice([polls, [float(t) for t in range(0, SECONDS + 1, luck.choice([2, 10, 30]))]])
    return Flow(produced, commits, ends, polls, luck.choice([SECONDS, SECONDS, luck.uniform(polls[1], SECONDS)]))


def facts_of(flow: Flow, partition: int) -> tuple[list[Row], list[Row]]:
    """What was seen of a flow; a poll that finds the position of the poll before is told as well."""
    points = [point(t, bisect_left(flow.produced, t), partition=partition) for t in flow.ends_seen]
    seen = [poll(t, flow.position(t), partition=partition) for t in flow.polls]
    heard = [commit(t, offset, partition=partition) for t, offset in flow.commits if t >= flow.heard_from]
    return points, seen + heard


def random_facts(seed: int) -> tuple[list[Flow], list[Row], list[Row]]:
    luck = random.Random(seed)
    flows = [random_flow(luck) for _ in range(FLOWS)]
    told = [facts_of(flow, partition) for partition, flow in enumerate(flows)]
    return flows, [p for points, _ in told for p in points], [c for _, commits in told for c in commits]


def outside(row: Row, truth: dict[str, float]) -> list[str]:
    """Figures of a row whose bounds do not hold the truth, or its estimate; a backlog without a log end is unknown."""
    found = []
    for name in BOUNDED:
        low, estimate, high = (row[f"{name}{which}_ms"] for which in ("_low", "", "_high"))
        if estimate is None or (name == "backlog_age_max" and row["unknown_reason"]):
            continue
        high = float("inf") if high is None else high
        told = f"of partition {row['partition']} at {row['window_start']:%H:%M} not in {low} .. {high}"
        values = (estimate, truth.get(name, low))
        found += [f"{name} {value} {told}" for value in values if not low - 0.01 <= value <= high + 0.01]
    return found


def test_the_truth_lies_inside_the_bounds_whenever_somebody_looked(measure: Measure) -> None:
    flows, points, commits = random_facts(5)
    rows = measure(points, commits, 0, SECONDS)
    starts = {at(start): start for start in range(-WINDOW, SECONDS, WINDOW)}
    wrong = []
    for row in rows:
        start = starts[row["window_start"]]
        wrong += outside(row, flows[row["partition"]].truth(start, start + WINDOW))
    assert (len(rows) > FLOWS * 9, wrong) == (True, [])
    assert {row["polled_only"] for row in rows} == {True, False}
    assert any(row["backlog_age_low_ms"] > 60_000 for row in rows if row["polled_only"])
    assert any(row["backlog_age_max_low_ms"] > 60_000 > row["backlog_age_low_ms"] for row in rows)


def test_pieces_of_three_minutes_are_the_whole_also_where_polls_tell_the_positions(measure: Measure) -> None:
    _, points, commits = random_facts(6)
    rows: list[Row] = []
    for start in range(0, SECONDS, 180):
        carried = (start, [row for row in rows if row["window_end"] == at(start)]) if rows else None
        rows += measure(points, commits, start, min(start + 180, SECONDS), carried=carried)
    order = ("partition", "window_start")
    assert measure(points, commits, 0, SECONDS) == sorted(rows, key=lambda row: [row[name] for name in order])


def test_a_group_that_is_gone_stays_gone_in_later_pieces_while_polls_find_its_old_position(
    measure: Measure, tmp_path: Path
) -> None:
    """Two groups lag and are silent for longer than `expire_group`, 2 minutes; one is never heard of, both return."""
    polls = [poll(t, 0, partition=partition) for t in range(63, 600, 60) for partition in (0, 1)]
    commits = [commit(5, 0), poll(5, 0, partition=1), *polls, commit(630, 300), poll(660, 300, partition=1)]
    points = [point(t, t, partition=partition) for t in range(0, 721, 30) for partition in (0, 1)]
    cluster, promise = Cluster("prod", None, status=StatusRules(expire_group_ms=120_000)), (sla(30, expire=120),)
    status = Measuring(CONSUMER_STATUS, status_of, tmp_path).whole(
        {COMMITTED_OFFSETS: commits, LOG_OFFSETS: points}, 0, 720, (cluster,)
    )
    whole, rows = measure(points, commits, 0, 720, slas=promise), []
    for start in range(0, 720, 240):
        ending = [[row for row in some if row["window_end"] == at(start)] for some in (rows, status)]
        carried = (start, ending[0]) if start else None
        rows += measure(points, commits, start, start + 240, slas=promise, carried=carried, status=ending[1])
    assert sorted(rows, key=lambda row: (row["partition"], row["window_start"])) == whole
    assert [(row["window_start"], row["records_consumed"]) for row in whole if row["partition"] == 0] == [
        (at(0), 0),
        (at(60), 0),
        (at(600), 300),
        (at(660), 0),
    ]
    assert {row["states"][0]["reason"] for row in whole if row["window_start"] >= at(600)} == {"returned"}


def verdicts_of(rows: list[Row]) -> list[str]:
    """On the SLA of the measured rows, within 30 s."""
    columns = {CONSUMER_LATENCY: rows, STEADY_STATE: [row | state for row in rows for state in row["states"]]}
    tables = (arrow_rows(t, [{n: r[n] for n in t.names} for r in found]) for t, found in columns.items())
    return [window.verdict for window in judge(sla(30), Interval(at(0), at(3600)), 60_000, *tables)]


@pytest.mark.parametrize("every", [30, 300])
def test_a_healthy_consumer_that_is_polled_is_never_bad_and_one_that_stopped_is(measure: Measure, every: int) -> None:
    points = [point(t, t) for t in range(0, 3601, every)]
    healthy = [poll(t, max(0, t - 5)) for t in range(0, 3601, every)]
    found = verdicts_of(measure(points, healthy, 0, 3600))
    assert ("bad" in found, found.count("unknown") > 50) == (False, True)
    stopped = [poll(t, min(1200, max(0, t - 5))) for t in range(0, 3601, every)]
    found = verdicts_of(measure(points, stopped, 0, 3600))
    assert ("bad" in found[:20], found[25:].count("bad")) == (False, 35 if every == 30 else 13)


ENDS = [point(t, t) for t in range(0, 181, 10)]


def test_a_group_that_was_only_polled_may_have_moved_right_after(measure: Measure) -> None:
    row = measure(ENDS, [poll(5, 0), poll(65, 60)], 0, 180)[1]
    assert (row["polled_only"], row["backlog_age_low_ms"], row["backlog_age_max_low_ms"]) == (True, 0, 0)
    assert (row["backlog_age_ms"], row["backlog_age_high_ms"]) == (pytest.approx(59_500), 60_000)
    assert (row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]) == (0, 65_000)


def test_a_position_that_polls_find_again_has_held_until_the_last_of_them(measure: Measure) -> None:
    row = measure(ENDS, [poll(5, 0), *(poll(t, 5) for t in (70, 80, 100))], 0, 180)[1]
    assert (row["last_commit_at"], row["backlog_age_low_ms"], row["backlog_age_max_low_ms"]) == (at(70), 0, 90_000)
    moved = measure(ENDS, [*(poll(t, 5) for t in (5, 70, 100)), poll(119, 20)], 0, 180)[1]
    assert (moved["records_consumed"], moved["records_latency_max_low_ms"]) == (15, 90_000)


def test_a_poll_at_the_end_of_a_window_belongs_to_it_and_is_exact(measure: Measure) -> None:
    first, second, third = measure(ENDS, [poll(0, 0), poll(60, 20), poll(120, 20)], 0, 180)
    assert (first["records_consumed"], first["committed_offset"], first["last_commit_at"]) == (20, 20, at(60))
    assert (first["backlog_age_low_ms"], first["backlog_age_high_ms"]) == (30_000, 40_000)
    assert (second["backlog_age_low_ms"], third["backlog_age_low_ms"]) == (90_000, 0)
    assert third["backlog_age_max_low_ms"] == 90_000


def test_a_poll_of_what_the_commit_log_proves_leaves_nothing_open(measure: Measure) -> None:
    polls = [poll(-300, 20), commit(-200, 20, source="poll_confirmed"), poll(70, 20)]
    rows = measure(ENDS, polls, 0, 180)
    assert [(row["polled_only"], row["backlog_age_low_ms"]) for row in rows] == [
        (False, 30_000),
        (False, 90_000),
        (False, 150_000),
    ]


def test_words_of_imported_files_are_polls_but_for_those_of_commit_logs(measure: Measure) -> None:
    for source, polled in (("exporter", True), ("commit_log", False), ("spark_checkpoint", False)):
        (row,) = measure(ENDS, [commit(5, 0, source=source)])
        assert (row["polled_only"], row["backlog_age_low_ms"] == 0) == (polled, polled)


def test_what_was_done_before_the_first_commit_that_compaction_left_is_not_bounded(measure: Measure) -> None:
    first, later = commit(20, 0, source="compacted_commit_log"), commit(40, 20)
    (row,) = measure(ENDS, [first, later])
    assert (row["polled_only"], row["backlog_age_high_ms"], row["backlog_age_max_high_ms"]) == (False, 40_000, None)
    (row,) = measure(ENDS, [first, commit(20, 0), later])
    assert row["backlog_age_max_high_ms"] == 40_000


def test_once_the_commit_log_has_spoken_polls_count_nothing_in_later_pieces_either(measure: Measure) -> None:
    facts = [poll(5, 0), commit(20, 10), poll(70, 15), commit(130, 100)]
    first = measure(ENDS, facts, 0, 60)
    (second,) = measure(ENDS, facts, 60, 120, carried=(60, first))
    assert (second["committed_offset"], second["polled_only"]) == (10, False)


def test_a_group_that_a_poll_finds_caught_up_at_the_end_of_a_piece_is_steady_in_the_next(measure: Measure) -> None:
    facts, promise = [poll(0, 0), poll(60, 60), poll(120, 119)], (sla(30),)
    first = measure(ENDS, facts, 0, 60, slas=promise)
    (second,) = measure(ENDS, facts, 60, 120, slas=promise, carried=(60, first))
    assert [state["steady_whole_window"] for state in second["states"]] == [True]
