"""What makes a topic a new topic: another topic id, or a log end that falls further than clocks explain. Figures of
either incarnation are true, and what may belong to both is unknown. Anything less is the same topic."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from kafka_sla.model.tables import TOPIC_CONFIGS
from kafka_sla.spark_jobs.numeric.positions import AROUND, RECREATED
from tests.spark_jobs.conftest import Row, at, commit, point, record
from tests.spark_jobs.numeric.test_polls import outside, verdicts_of

Measure = Callable[..., list[Row]]
SECONDS, WINDOW = 1_200, 60


@dataclass(frozen=True)
class Life:
    """Produced times of its records by offset, the commits of the group in it, and from when until when it lasts."""

    produced: list[float]
    commits: list[tuple[float, int]]
    born: float
    dies: float

    def end(self, now: float) -> int:
        return bisect_left(self.produced, now)

    def position(self, now: float) -> int | None:
        index = bisect_left(self.commits, (now, 0)) - 1
        return None if index < 0 else self.commits[index][1]


@dataclass(frozen=True)
class World:
    first: Life
    second: Life
    topic: str

    def life(self, now: float) -> Life:
        return self.first if now < self.first.dies else self.second

    def truth(self, start: float, end: float) -> dict[str, float]:
        """Of one window; a group without a position in the present life has no backlog that anybody could name."""
        latencies = [
            (now - made) * 1000
            for life in (self.first, self.second)
            for (_, before), (now, position) in pairwise([(life.born, 0), *life.commits])
            if start <= now < end
            for made in life.produced[before:position]
        ]
        life, found = self.life(end), dict[str, float]()
        position = life.position(end)
        if position is not None:
            unread = life.produced[position : life.end(end)]
            found["backlog_age"] = (end - unread[0]) * 1000 if unread else 0.0
        if latencies:
            found |= {"records_latency": latencies[-1], "records_latency_max": max(latencies)}
        return found


def random_life(luck: random.Random, born: float, dies: float) -> Life:
    speed, delay = luck.choice([0.3, 2.0, 10.0]), luck.uniform(1, 8)
    count = int((dies - born) * speed)
    produced = sorted(round(luck.uniform(born + 1, dies), 3) for _ in range(count))
    commits, now = [], born + luck.uniform(2, 20)
    while now < dies:
        commits.append((round(now, 3), bisect_left(produced, now - delay)))
        now += luck.uniform(2, 15)
    return Life(produced, commits, born, dies)


def random_world(luck: random.Random, number: int = 0) -> World:
    dies = luck.uniform(400, 900)
    return World(
        random_life(luck, -300, dies), random_life(luck, dies + luck.uniform(0.5, 40), 9_999), f"orders.{number:02}"
    )


def polls(world: World, times: list[float], **more: object) -> list[Row]:
    seen = [(t, world.life(t)) for t in times]
    return [point(t, life.end(t), topic=world.topic, log_start_offset=0, **more) for t, life in seen]


def offset_lookups(world: World, start: float, end: float, asked: float) -> list[Row]:
    """Answers for each window's edges and the times between, from the life that is there when they are asked for."""
    life, place = world.life(asked), {"topic": world.topic}
    found = [
        point(t / 4, life.end(t / 4), source="list_offsets", **place)
        for t in range(int(start * 4), int(end * 4) + 1, 40)
    ]
    exact = {row["log_end_offset"] for row in found if row["log_end_offset"] < len(life.produced)}
    return found + [p | place for offset in exact for p in record(life.produced[offset], offset)]


def commits_of(world: World) -> list[Row]:
    told = [commit(t, o, topic=world.topic) for life in (world.first, world.second) for t, o in life.commits]
    return [*told, commit(world.first.dies, None, topic=world.topic)]


def config(seconds: float, topic_id: str, topic: str = "orders") -> Row:
    row = {"cluster": "prod", "topic": topic, "at": at(seconds), "topic_id": topic_id, "partitions": 1}
    return row | {"cleanup_policy": "delete", "retention_ms": None, "message_timestamp_type": "CreateTime"}


def told_wrongly(worlds: list[World], rows: list[Row]) -> list[str]:
    by_name = {world.topic: world for world in worlds}
    starts = {at(start): start for start in range(0, SECONDS, WINDOW)}
    return [
        f"{words} ({row['topic']} dies at {by_name[row['topic']].first.dies:.1f})"
        for row in rows
        for start in [starts[row["window_start"]]]
        for words in outside(row, by_name[row["topic"]].truth(start, start + WINDOW))
    ]


WATCHED = [float(t) for t in range(3, SECONDS + 301, 300)]


@pytest.mark.parametrize("seed", range(3))
def test_runs_of_five_minutes_tell_the_truth_or_nothing(measure: Measure, seed: int) -> None:
    luck = random.Random(seed)
    worlds = [random_world(luck, number) for number in range(40)]
    points = [row for world in worlds for row in polls(world, WATCHED)]
    points += [r for w in worlds for t in range(0, SECONDS, 300) for r in offset_lookups(w, t, t + 300, t + 303)]
    ids = {TOPIC_CONFIGS: [config(t, str(world.life(t).born), world.topic) for world in worlds for t in WATCHED]}
    commits = [row for world in worlds for row in commits_of(world)]
    rows = measure(points, commits, 0, SECONDS, facts=ids)
    assert told_wrongly(worlds, rows) == []
    assert "bad" not in verdicts_of(rows)
    unknown = [row for row in rows if row["unknown_reason"] in (AROUND, RECREATED)]
    assert 0 < len(unknown) < 8 * len(worlds)
    assert sum(row["records_latency_max_ms"] is not None for row in rows) > len(rows) / 2


@pytest.mark.parametrize("every", [10, 60])
def test_polls_of_the_log_that_come_after_the_new_lifes_commits_tell_it_too(measure: Measure, every: int) -> None:
    luck = random.Random(every)
    worlds = [random_world(luck, number) for number in range(40)]
    times = [float(t) for t in range(0, SECONDS + 61, every)]
    points = [row for world in worlds for row in polls(world, times)]
    ids = [config(t, str(world.life(t).born), topic=world.topic) for world in worlds for t in times]
    commits = [row for world in worlds for row in commits_of(world)]
    rows = measure(points, commits, 0, SECONDS, facts={TOPIC_CONFIGS: ids})
    assert told_wrongly(worlds, rows) == []
    assert "bad" not in verdicts_of(rows)


def test_pieces_are_the_whole_also_where_lives_change(measure: Measure) -> None:
    luck = random.Random(9)
    worlds = [random_world(luck, number) for number in range(20)]
    points = [row for world in worlds for row in polls(world, WATCHED)]
    points += [r for w in worlds for t in range(0, SECONDS, 300) for r in offset_lookups(w, t, t + 300, t + 303)]
    commits, rows = [row for world in worlds for row in commits_of(world)], list[Row]()
    for start in range(0, SECONDS, 300):
        carried = (start, [row for row in rows if row["window_end"] == at(start)]) if rows else None
        rows += measure(points, commits, start, start + 300, carried=carried)
    rows.sort(key=lambda row: (row["topic"], row["window_start"]))
    assert measure(points, commits, 0, SECONDS) == rows


def test_a_history_that_is_looked_up_again_after_the_topic_was_created_again_changes_nothing(measure: Measure) -> None:
    """All its times are answered with offset 0, between the answers of the life that was there."""
    world = random_world(random.Random(4))
    before = [r for t in range(0, 300, 300) for r in offset_lookups(world, t, t + 300, t + 303)] + polls(
        world, WATCHED[:2]
    )
    again = offset_lookups(world, 0, 300, 2_000)
    commits = commits_of(world)
    rows = [row | {"stamped_ahead_ms": None} for row in measure([*before, *again], commits, 0, 300)]
    assert rows == measure(before, commits, 0, 300)


def test_another_topic_id_is_another_life_although_no_offset_went_back(measure: Measure) -> None:
    points = [point(0, 10), point(60, 10), point(120, 50), point(180, 60)]
    commits = [commit(5, 10), commit(90, 40), commit(130, 50), commit(150, 55)]
    ids = {TOPIC_CONFIGS: [config(t, "a" if t < 100 else "b") for t in (0, 60, 120, 180)]}
    rows = measure(points, commits, 0, 240, facts=ids)
    assert [row["unknown_reason"] for row in rows[:3]] == [None, RECREATED, None]
    assert [row["records_consumed"] for row in rows[:3]] == [0, 0, 5]
    assert measure(points, commits, 0, 240)[1]["records_consumed"] == 30


PRODUCED_PER_S = 50


def slow_commits(until: float) -> list[Row]:
    """A group that commits every 10 s, reads 45 of 50 records a second from second 60 on, and so falls behind."""
    return [commit(t, int(50 * min(t, 60) + 45 * max(0, t - 60))) for t in range(3, int(until), 10)]


def log_polls(until: float, every: float = 15, **more: object) -> list[Row]:
    return [point(t, int(t * PRODUCED_PER_S), log_start_offset=0, **more) for t in range(0, int(until) + 1, int(every))]


def states_of(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["states"][0]["state"], row["states"][0]["reason"]) for row in rows]


@pytest.mark.parametrize("skew_s", [-9, -0.3, 0.02, 0.3, 9])
def test_a_second_poller_whose_clock_differs_changes_nothing_of_a_late_consumer(
    measure: Measure, skew_s: float
) -> None:
    alone = log_polls(1_800)
    second = [point(t + skew_s, int((t - 0.01) * PRODUCED_PER_S), log_start_offset=0) for t in range(15, 1_800, 15)]

    expected = measure(alone, slow_commits(1_800), 0, 1_800)
    rows = measure([*alone, *second], slow_commits(1_800), 0, 1_800)

    assert states_of(rows) == states_of(expected)
    assert [row["unknown_reason"] for row in rows] == [None] * 30
    late = [row["backlog_age_low_ms"] > 30_000 for row in rows]
    assert (late[-1], late.count(True) >= [r["backlog_age_low_ms"] > 30_000 for r in expected].count(True) - 1) == (
        True,
        True,
    )


def test_one_poll_slightly_below_its_neighbour_starts_no_new_topic(measure: Measure) -> None:
    """A poll of 300 s reads 15,000; one 0.2 s later, from a host whose clock is ahead, reads 14,995."""
    odd = point(300.2, 14_995, log_start_offset=0, source="sampler")

    rows = measure([*log_polls(900), odd], slow_commits(900), 0, 900)
    expected = measure(log_polls(900), slow_commits(900), 0, 900)

    assert states_of(rows) == states_of(expected)
    ages = [[row["backlog_age_low_ms"] for row in several] for several in (rows, expected)]
    assert ages[0] == pytest.approx(ages[1], abs=200)


def test_a_truncation_keeps_the_topic_and_the_position_of_a_dead_group(measure: Measure) -> None:
    """An unclean leader election loses the newest 500 of 30,000 records; the group has been dead since second 300."""
    before = log_polls(600)
    after = [point(t, int(t * PRODUCED_PER_S) - 500 - 750, log_start_offset=0) for t in range(615, 1_201, 15)]
    commits = [commit(t, int(t * PRODUCED_PER_S)) for t in range(3, 301, 10)]

    rows = measure([*before, *after], commits, 0, 1_200)

    assert [row["unknown_reason"] for row in rows] == [None] * 20
    assert {state for state, _ in states_of(rows)[1:]} == {"steady"}
    assert all(row["backlog_age_low_ms"] > 30_000 for row in rows[6:])
    assert [row["truncated_records"] for row in rows[9:12]] == [None, 500, None]


def test_offsets_that_a_truncation_frees_have_no_certain_latency_when_they_are_used_again(measure: Measure) -> None:
    """Offsets 900 to 999 were produced by second 60, lost, and produced again by second 120."""
    points = [point(0, 0), point(60, 1_000), point(90, 900), point(120, 1_000), point(180, 1_100)]
    commits = [commit(5, 0), commit(70, 800), commit(125, 1_000), commit(170, 1_050)]

    rows = measure(points, commits, 0, 240)

    assert [row["unknown_reason"] for row in rows[:3]] == [None] * 3
    assert rows[2]["records_consumed"] == 250
    assert rows[2]["records_latency_low_ms"] == 0


def test_a_log_end_that_falls_far_below_the_one_before_is_a_new_topic(measure: Measure) -> None:
    points = [*log_polls(600), *(point(t, t - 600, log_start_offset=0) for t in range(615, 1_201, 15))]
    commits = [commit(t, int(t * PRODUCED_PER_S)) for t in range(3, 601, 10)]
    commits += [commit(t, t - 600) for t in range(703, 1_200, 10)]

    rows = measure(points, commits, 0, 1_200)

    assert [row["unknown_reason"] for row in rows[9:13]] == [None, RECREATED, None, None]
    assert ("bootstrapping", "topic_recreated") in states_of(rows) or states_of(rows)[-1] == ("steady", "caught_up")
    assert rows[-1]["records_lag"] < 100


def test_the_same_topic_id_on_both_sides_of_a_fall_is_the_same_topic(measure: Measure) -> None:
    """However far the log end falls: the leader that took over had replicated little."""
    points = [*log_polls(600), *(point(t, t - 600, log_start_offset=0) for t in range(615, 1_201, 15))]
    commits = [commit(t, int(t * PRODUCED_PER_S)) for t in range(3, 301, 10)]
    ids = {TOPIC_CONFIGS: [config(t, "one") for t in range(0, 1_201, 15)]}

    rows = measure(points, commits, 0, 1_200, facts=ids)

    assert [row["unknown_reason"] for row in rows] == [None] * 20
    assert RECREATED in [row["unknown_reason"] for row in measure(points, commits, 0, 1_200)]


def test_timestamps_alone_make_no_new_topic(measure: Measure) -> None:
    """Offset 0 with two times, and lookups that find nothing before it: the producer's clock was set back."""
    points = [*log_polls(300), *record(10, 0), *record(200, 0), point(250, 0, source="list_offsets")]
    rows = measure(points, [commit(t, t * 50) for t in range(3, 300, 10)], 0, 300)
    assert [row["unknown_reason"] for row in rows] == [None] * 5
    assert states_of(rows)[-1] == ("steady", "caught_up")
