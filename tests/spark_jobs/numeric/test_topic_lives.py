"""A topic that is deleted and created again while it is watched: what is told of either life is true, and what cannot
be attributed to one is unknown."""

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
    commits = [row for world in worlds for row in commits_of(world)]
    rows = measure(points, commits, 0, SECONDS)
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
    assert measure([*before, *again], commits, 0, 300) == measure(before, commits, 0, 300)


def test_another_topic_id_is_another_life_although_no_offset_went_back(measure: Measure) -> None:
    points = [point(0, 10), point(60, 10), point(120, 50), point(180, 60)]
    commits = [commit(5, 10), commit(90, 40), commit(130, 50), commit(150, 55)]
    ids = {TOPIC_CONFIGS: [config(t, "a" if t < 100 else "b") for t in (0, 60, 120, 180)]}
    rows = measure(points, commits, 0, 240, facts=ids)
    assert [row["unknown_reason"] for row in rows[:3]] == [None, RECREATED, None]
    assert [row["records_consumed"] for row in rows[:3]] == [0, 0, 5]
    assert measure(points, commits, 0, 240)[1]["records_consumed"] == 30


def test_a_poll_of_the_former_life_beside_answers_of_the_next_begins_no_life(measure: Measure) -> None:
    """Asked later, all times until 132.5 are answered with offset 0; the poll at 120.1 saw what was there then."""
    asked = [point(t, o, source="list_offsets") for t, o in ((60, 0), (120, 0), (180, 6), (240, 13), (300, 21))]
    records = [p for t, o in ((132.5, 0), (150, 2), (182.5, 6), (240.9, 13)) for p in record(t, o)]
    commits = [commit(91, 7), commit(118, 9), *(commit(146 + 9 * n, 2 + n) for n in range(16))]
    rows = measure([point(120.1, 9, log_start_offset=0), *asked, *records], commits, 0, 300)
    assert [row["unknown_reason"] for row in rows[-2:]] == [None, None]
    assert [row["records_latency_max_high_ms"] for row in rows[-2:]] == [53_500, 62_500]


def test_two_first_records_are_of_two_lives(measure: Measure) -> None:
    """All records of both are known, and nobody polled."""
    first, second = [10 + 2 * n for n in range(20)], [130 + 5 * n for n in range(20)]
    points = [p for times in (first, second) for offset, t in enumerate(times) for p in record(t, offset)]
    commits = [commit(t + 1, offset + 1) for times in (first, second) for offset, t in enumerate(times)]
    rows = measure(points, commits, 0, 240)
    assert [row["backlog_age_max_ms"] for row in rows[2:]] == [1_000, 1_000]
