"""`non_consumed`: what retention removed unread lies within the bounds, and when the next records expire (KIP-490)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, NON_CONSUMED, TOPIC_CONFIGS
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs.non_consumed import METRIC
from kafka_sla.spark_jobs.numeric.arrays import NEVER_MS
from tests.spark_jobs.conftest import Row, at, commit, point, sla
from tests.spark_jobs.measuring import Facts, Measuring, unread_of

LISTED = Cluster("listed", None, non_consumed_offsets_groups=(("chosen", ("wanted",)), ("nobody", ())))
CLUSTERS = (Cluster("prod", None), LISTED)
END = 600
POLLS = list(range(30, END, 60))
"""One poll in each of ten windows, at its middle."""


def config(topic: str, seconds: float = 5, **more: object) -> Row:
    row = {"cluster": "prod", "topic": topic, "at": at(seconds), "partitions": 1, "cleanup_policy": "delete"}
    return row | {"retention_ms": 3_600_000, "message_timestamp_type": "CreateTime"} | more


def latency(topic: str, minute: int, **more: object) -> Row:
    """What consumer_latency says of the group at the end of a window: 7 records wait, the oldest for 100 s."""
    row = {
        "cluster": "prod",
        "group": "billing",
        "topic": topic,
        "partition": 0,
        "window_start": at(60 * minute),
        "window_end": at(60 * minute + 60),
        "records_consumed": 0,
        "negative_latency_records": 0,
        "unknown_latency_records": 0,
        "polled_only": False,
        "committed_offset": 0,
        "last_commit_at": at(0),
        "records_lag": 7,
        "backlog_age_ms": 100_000.0,
        "backlog_age_high_ms": 110_000.0,
    }
    return row | more


Scene = tuple[list[Row], list[Row], list[Row], list[Row]]
"""Commits, polls, configurations, rows of consumer_latency."""


def scene(
    topic: str, positions: Sequence[tuple[float, int | None]], starts: Sequence[tuple[float, int]], **more: object
) -> Scene:
    place = {"topic": topic, **{name: more.pop(name) for name in ("cluster", "group") if name in more}}
    cluster = place.get("cluster", "prod")
    first = min(t for t, _ in positions)
    gone = [t for t, offset in positions if offset is None]
    rows = [m for m in range(10) if 60 * m + 60 > first and not (gone and 60 * m + 60 > gone[0])]
    return (
        [commit(t, offset, **place) for t, offset in positions],
        [point(t, 10_000, log_start_offset=start, topic=topic, cluster=cluster) for t, start in starts],
        [config(topic, cluster=cluster, **more)],
        [latency(minute=m, last_commit_at=at(max(t for t, _ in positions if t < 60 * m + 60)), **place) for m in rows],
    )


def still(start: int, later: int, since: int = 200) -> list[tuple[float, int]]:
    """The log start at each poll: it moves from one offset to another after `since` seconds."""
    return [(t, start if t < since else later) for t in POLLS]


def wild(chance: random.Random, topic: str) -> tuple[Scene, dict[int, int]]:
    """Random commits (also resets to the earliest and the latest record) and moves of the log start, several of them
    between two polls; and the truth: how many records each poll finds removed unread since the one before."""
    truth, commits, polls = dict.fromkeys(POLLS, 0), [(0.0, 0)], []
    position, start, end, lost = 0, 0, 0, 0
    for t in range(1, END):
        end += chance.randrange(10)
        if chance.random() < 0.04:
            moved = min(end, start + chance.randrange(300))
            lost, start = lost + max(0, moved - max(start, position)), moved
        if chance.random() < 0.04:
            position = chance.choice(
                [start, end, start, position, min(end, max(position, start) + chance.randrange(400))]
            )
            commits.append((t + 0.5, position))
        if t in truth:
            polls.append((t + 0.7, start))
            truth[t], lost = lost, 0
    return scene(topic, commits, polls), truth  # type: ignore[arg-type]


_NOTHING_WAITS = {"records_lag": 0, "backlog_age_ms": 0.0, "backlog_age_high_ms": 0.0}
_WAITING: dict[str, Row] = {
    "one waits": {"records_lag": 1},
    "how many wait is unknown": {"records_lag": None},
    "how long they wait is unknown": {"backlog_age_ms": None, "backlog_age_high_ms": None},
    "how long they wait is unbounded": {"backlog_age_high_ms": None},
}
AROUND = {
    "commit a second before a poll": (209, 210),
    "commit at a poll": (210, 210),
    "commit in the window before a poll": (239.8, 240.5),
}
WILD = {f"wild {i}": wild(random.Random(i), f"wild {i}") for i in range(20)}
SCENES = [
    scene("standing", [(0, 100)], still(0, 150)),
    (
        (between := scene("looked up between polls", [(0, 100)], still(0, 150)))[0],
        [*between[1], point(200, 9_000, topic="looked up between polls", source="list_offsets")],
        *between[2:],
    ),
    scene("moving", [(0, 100), (190, 120), (210, 130)], still(0, 150)),
    scene("polled between two windows", [(0, 100)], [(30, 0), (240, 150), (330, 150)]),
    scene("ahead", [(0, 400)], still(0, 150)),
    scene("behind from the start", [(0, 100)], still(120, 150)),
    scene("several moves", [(0, 100)], [(30, 0), (150, 150), (210, 180), (570, 180)]),
    scene("reset to earliest", [(0, 100), (205, 150), (300, 200)], still(0, 150)),
    scene("reset to latest", [(0, 100), (205, 9_000)], still(0, 150)),
    scene("rewound", [(0, 500), (205, 0)], still(0, 150)),
    scene("first commit between two polls", [(205, 100)], still(0, 150)),
    scene(
        "commit within the second of a poll", [(0, 100), (209.5, 140), (209.8, 170)], [(30, 0), (210, 0), (270, 160)]
    ),
    *(scene(topic, [(0, 100), (t, 140)], [(30, 0), (poll, 0), (270, 160)]) for topic, (t, poll) in AROUND.items()),
    scene("first commit after the poll", [(215, 100)], still(0, 150)),
    scene("two polls after the first commit", [(205, 100)], [(30, 0), (210, 150), (230, 160), (270, 170)]),
    scene("deleted", [(0, 100), (200, None)], still(0, 150)),
    scene("recreated", [(0, 100)], still(50, 0)),
    scene("recreated and read", [(0, 100), (280, 10)], [(30, 50), (210, 0), (300, 0), (390, 40)]),
    scene("compacted", [(0, 100)], still(0, 150), cleanup_policy="compact"),
    scene("compacted and deleted", [(0, 100)], still(0, 150), cleanup_policy="delete,compact"),
    scene("kept for ever", [(0, 100)], still(0, 150), retention_ms=None),
    scene("kept for all time", [(0, 100)], still(0, 150), retention_ms=2**63 - 1),
    scene("about to expire", [(0, 100)], still(0, 150), retention_ms=60_000),
    scene("kept nearly for all time", [(0, 100)], still(0, 150), retention_ms=NEVER_MS - 1),
    scene("kept until no calendar goes on", [(0, 100)], still(0, 150), retention_ms=NEVER_MS - epoch_ms(at(240))),
    scene("configured almost an hour before", [(0, 100)], still(0, 150), seconds=360 - 3_600),
    (*scene("never configured", [(0, 100)], still(0, 150))[:2], [], scene("never configured", [(0, 100)], [])[3]),
    (*(all_read := scene("all read", [(0, 100)], []))[:3], [row | _NOTHING_WAITS for row in all_read[3]]),
    *(
        (*(waits := scene(topic, [(0, 100)], still(0, 150)))[:3], [row | figures for row in waits[3]])
        for topic, figures in _WAITING.items()
    ),
    (
        *(expired := scene("expired and back", [(0, 100), (370, 200)], still(0, 150)))[:3],
        [row for row in expired[3] if not at(180) <= row["window_start"] < at(360)],
    ),
    scene("never polled", [(0, 100)], []),
    scene(
        "a commit within the second of a poll",
        [(0, 100), (209.5, 140), (209.8, 170)],
        [(30, 0), (210, 0), (270, 160)],
        cluster="listed",
        group="promised",
    ),
    scene("chosen", [(0, 100)], still(0, 150), cluster="listed", group="wanted"),
    scene("chosen", [(0, 100)], still(0, 150), cluster="listed", group="other"),
    scene("nobody", [(0, 100)], still(0, 150), cluster="listed", group="wanted"),
    scene("free", [(0, 100)], still(0, 150), cluster="listed", group="promised"),
    scene("free", [(0, 100)], still(0, 150), cluster="listed", group="wanted"),
    *[found for found, _ in WILD.values()],
]
KNOWN: Facts = {
    COMMITTED_OFFSETS: [row for one in SCENES for row in one[0]],
    LOG_OFFSETS: [row for one in SCENES for row in one[1]],
    TOPIC_CONFIGS: [row for one in SCENES for row in one[2]],
}
LATENCY = [row for one in SCENES for row in one[3]]
SLAS = (sla(expire=360), replace(sla(expire=360), name="listed", cluster="listed", groups=Patterns(("promised",))))


@pytest.fixture(scope="module")
def measuring(tmp_path_factory: pytest.TempPathFactory) -> Measuring:
    return Measuring(NON_CONSUMED, unread_of, tmp_path_factory.mktemp("facts"))


@pytest.fixture(scope="module")
def rows(measuring: Measuring) -> list[Row]:
    """All scenes, measured in one go."""
    return measuring.whole(KNOWN, 0, END, CLUSTERS, SLAS, latency=LATENCY)


@pytest.fixture(scope="module")
def seen(rows: list[Row]) -> dict[tuple[str, int], Row]:
    """Rows of prod by topic and minute."""
    return {(r["topic"], r["window_start"].minute): r for r in rows if r["cluster"] == "prod"}


Seen = dict[tuple[str, int], Row]


def bounds(row: Row) -> tuple[int | None, int | None]:
    return row["non_consumed_low"], row["non_consumed_high"]


def totals(row: Row) -> tuple[int | None, int | None]:
    return row["non_consumed_total_low"], row["non_consumed_total_high"]


@pytest.mark.parametrize(
    ("topic", "minute", "found"),
    [
        ("standing", 3, (50, 50)),
        ("looked up between polls", 3, (50, 50)),
        ("moving", 3, (20, 50)),
        ("ahead", 3, (0, 0)),
        ("behind from the start", 3, (30, 30)),
        ("several moves", 2, (50, 50)),
        ("several moves", 3, (30, 30)),
        ("reset to earliest", 3, (0, 50)),
        ("reset to latest", 3, (0, 50)),
        ("rewound", 3, (0, 150)),
        ("compacted and deleted", 3, (50, 50)),
        ("commit a second before a poll", 4, (20, 60)),
        ("commit at a poll", 4, (20, 60)),
        ("commit in the window before a poll", 4, (20, 20)),
    ],
)
def test_a_look_tells_what_was_removed_unread_since_the_one_before(
    seen: Seen, topic: str, minute: int, found: tuple[int, int]
) -> None:
    assert bounds(seen[topic, minute]) == found
    assert seen[topic, minute]["unknown_reason"] is None


def test_a_log_start_that_goes_back_belongs_to_another_life_and_is_compared_with_none(seen: Seen) -> None:
    for minute in (3, 4, 9):
        row = seen["recreated", minute]
        assert (bounds(row), row["log_start_offset"], row["committed_offset"]) == ((None, None), None, None)
        assert row["unknown_reason"] == "the log start offset has not been polled"
    row = seen["recreated and read", 6]
    assert (bounds(row), totals(row)) == ((30, 30), (30, 30))


def test_polls_before_the_first_commit_of_a_group_say_nothing_of_it(seen: Seen) -> None:
    row = seen["first commit between two polls", 3]
    assert (bounds(row), totals(row), row["log_start_offset"]) == ((None, None), (0, 0), 150)
    assert row["unknown_reason"] == "the log start offset was not compared with an earlier poll in this window"
    assert bounds(seen["first commit between two polls", 4]) == (0, 0)


def test_before_the_first_poll_nobody_knows_how_far_a_group_had_read_at_most(seen: Seen) -> None:
    row = seen["first commit after the poll", 3]
    assert (row["log_start_offset"], row["position_low"], row["position_high"]) == (None, 100, None)


def test_a_window_with_a_poll_that_was_compared_with_none_has_no_counts(seen: Seen) -> None:
    first, second = (seen["two polls after the first commit", minute] for minute in (3, 4))
    assert (bounds(first), totals(first), bounds(second), totals(second)) == (
        (None, None),
        (10, 10),
        (10, 10),
        (20, 20),
    )


def test_a_poll_at_the_end_of_a_window_belongs_to_it(seen: Seen) -> None:
    before, after = (seen["polled between two windows", minute] for minute in (3, 4))
    assert (bounds(before), before["log_start_offset"], bounds(after)) == ((50, 50), 150, (None, None))


def test_totals_are_sums_of_both_bounds(seen: Seen) -> None:
    assert [totals(seen["several moves", m]) for m in (1, 2, 3, 9)] == [(0, 0), (50, 50), (80, 80), (80, 80)]


def test_a_group_that_had_expired_begins_anew(seen: Seen) -> None:
    """What was removed meanwhile, nobody had to read."""
    back, later = (seen["expired and back", minute] for minute in (6, 7))
    assert (bounds(back), totals(back), bounds(later), totals(later)) == ((None, None), (0, 0), (0, 0), (0, 0))


def test_what_was_committed_just_before_a_look_may_have_been_held_at_it(seen: Seen, rows: list[Row]) -> None:
    assert bounds(seen["commit within the second of a poll", 4]) == (0, 60)
    first = [row for row in rows if row["topic"] == "a commit within the second of a poll"]
    assert first[0] == rows[0], "the first of all group-partitions is counted as all others are"
    assert bounds(first[4]) == (0, 60)


def test_where_nothing_waits_nothing_expires(seen: Seen) -> None:
    row = seen["all read", 3]
    assert (row["unread_records"], row["oldest_unread_at"], row["unread_expires_at"]) == (0, None, None)


@pytest.mark.parametrize(
    ("topic", "oldest", "expires"),
    [
        ("one waits", at(140), at(130 + 3_600)),
        ("how many wait is unknown", None, None),
        ("how long they wait is unknown", None, None),
        ("how long they wait is unbounded", at(140), at(140 + 3_600)),
    ],
)
def test_what_is_known_of_what_waits_tells_when_it_expires(
    seen: Seen, topic: str, oldest: datetime | None, expires: datetime | None
) -> None:
    row = seen[topic, 3]
    assert (row["oldest_unread_at"], row["unread_expires_at"]) == (oldest, expires)


def test_windows_without_a_look_to_compare_have_no_counts_and_say_so(seen: Seen) -> None:
    row = seen["several moves", 5]
    assert bounds(row) == (None, None)
    assert row["unknown_reason"] == "the log start offset was not compared with an earlier poll in this window"
    never = seen["never polled", 9]
    assert (bounds(never), totals(never)) == ((None, None), (None, None))
    assert never["unknown_reason"] == "the log start offset has not been polled"


def test_compacted_topics_are_refused_with_a_reason_and_compacting_topics_that_delete_are_stated(seen: Seen) -> None:
    row = seen["compacted", 3]
    assert (bounds(row), totals(row), row["unread_expires_at"]) == ((None, None), (None, None), None)
    assert row["unknown_reason"] == "compacted topics are out of scope: of their keys only the last values matter"
    assert seen["compacted and deleted", 3]["cleanup_policy"] == "compact,delete"


def test_unread_records_expire_no_sooner_than_the_oldest_of_them_outlives_retention(seen: Seen) -> None:
    row = seen["standing", 3]
    assert (row["unread_records"], row["retention_ms"], row["oldest_unread_at"]) == (7, 3_600_000, at(140))
    assert (row["unread_expires_at"], row["unread_expires_in_ms"]) == (at(130 + 3_600), 3_490_000)
    assert seen["kept for ever", 3]["unread_expires_at"] is None
    assert seen["kept for all time", 3]["unread_expires_at"] is None
    assert seen["kept nearly for all time", 3]["unread_expires_at"] is None
    assert seen["kept until no calendar goes on", 3]["unread_expires_at"] is None
    due = seen["about to expire", 3]
    assert (due["unread_expires_at"], due["unread_expires_in_ms"]) == (at(190), 0)


def test_a_configuration_that_is_older_than_an_hour_says_nothing(seen: Seen) -> None:
    told = [seen["configured almost an hour before", minute] for minute in (5, 6)]
    assert [(row["cleanup_policy"], row["retention_ms"]) for row in told] == [("delete", 3_600_000), (None, None)]
    assert [row["unread_expires_at"] is None for row in told] == [False, True]


def test_where_the_configuration_is_not_known_losses_are_counted_and_no_expiry_is_told(seen: Seen) -> None:
    row = seen["never configured", 3]
    assert (bounds(row), totals(row), row["unread_expires_at"]) == ((50, 50), (50, 50), None)


def test_what_was_counted_of_a_group_that_is_not_any_more_changes_nothing(
    measuring: Measuring, rows: list[Row]
) -> None:
    carried = [row for row in rows if row["window_end"] == at(300)]
    dropped = {**carried[0], "cluster": "listed", "topic": "chosen", "group": "other"}

    found = [
        measuring.whole(KNOWN, 300, END, CLUSTERS, SLAS, known, LATENCY) for known in (carried, [dropped, *carried])
    ]

    assert found[0] == found[1] == [row for row in rows if row["window_end"] > at(300)]


@pytest.mark.parametrize(
    ("slas", "clusters", "is_wanted"),
    [((), (Cluster("prod", None),), False), (SLAS, (Cluster("prod", None),), True), ((), CLUSTERS, True)],
)
def test_it_is_measured_where_groups_are_listed_or_slas_exist(
    slas: tuple[Sla, ...], clusters: tuple[Cluster, ...], is_wanted: bool
) -> None:
    replays = tuple(Replay(cluster, None) for cluster in clusters)
    job = Job("load", Interval(at(0), at(60)), 60_000, replays, slas, {}, {}, "", {}, 0, 0)

    assert METRIC.wanted(job) == is_wanted


def test_the_list_of_a_topic_chooses_its_groups_and_other_topics_count_for_slas(rows: list[Row]) -> None:
    counted = {(row["topic"], row["group"]) for row in rows if row["cluster"] == "listed"}
    others = {("a commit within the second of a poll", "promised")}
    assert counted == {("chosen", "wanted"), ("free", "promised"), *others}


@pytest.mark.parametrize("topic", sorted(WILD))
def test_the_true_loss_lies_within_the_bounds(seen: Seen, topic: str) -> None:
    truth, total = WILD[topic][1], 0
    for t in POLLS[1:]:
        row, total = seen[topic, t // 60], total + truth[t]
        assert row["non_consumed_low"] <= truth[t] <= row["non_consumed_high"]
        assert row["non_consumed_total_low"] <= total <= row["non_consumed_total_high"]


def test_the_true_losses_of_these_tests_are_many_and_often_known_exactly(seen: Seen) -> None:
    lossy = [(seen[topic, t // 60], n) for topic, (_, truth) in WILD.items() for t, n in truth.items() if t > 30 and n]
    assert len(lossy) > 50
    assert sum(bounds(row) == (n, n) for row, n in lossy) > 10


def test_one_long_interval_gives_the_rows_of_many_short_ones(measuring: Measuring, rows: list[Row]) -> None:
    assert measuring.in_pieces(KNOWN, 0, END, 300, CLUSTERS, SLAS, LATENCY) == rows
