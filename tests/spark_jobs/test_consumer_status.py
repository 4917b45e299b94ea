"""`consumer_status` by Burrow's rules: the worked examples of their text, and what the text leaves open."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from kafka_sla.model.entities import Cluster, StatusRules
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_STATUS, LOG_OFFSETS
from tests.spark_jobs.conftest import Row, at, commit, point, record
from tests.spark_jobs.measuring import Facts, Measuring, status_of

DEFAULT = Cluster("prod", None)
SHORT = Cluster("short", None, status=StatusRules(expire_group_ms=600_000))
STRICT = Cluster("strict", None, status=StatusRules(commits=4, allowed_lag=5, min_complete=0.75))
CLUSTERS = (DEFAULT, SHORT, STRICT)

TENS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
BUSY = (TENS, [5, 3, 5, 2, 1, 1, 2, 1, 4, 6])
EXAMPLES = {
    "example 1": (TENS, [0, 0, 0, 0, 0, 0, 1, 3, 5, 5]),
    "example 2": ([10] * 10, [1, 1, 1, 1, 1, 2, 2, 2, 3, 3]),
    "example 3": (TENS, [1, 1, 1, 1, 1, 2, 2, 2, 3, 3]),
    "examples 4 and 5": BUSY,
}
"""Offsets and lags as the source text gives them, a commit each minute from T on."""


def scene(name: str, commits: list[tuple[float, int | None]], ends: list[tuple[float, int]] = (), **more: str) -> Facts:  # type: ignore[assignment]
    """Facts of one group, which reads a topic of its own name: its commits and the log end offsets over time."""
    place = {"cluster": more.pop("cluster", "prod"), "topic": more.pop("topic", name)}
    return {
        COMMITTED_OFFSETS: [commit(t, offset, group=name, **place, **more) for t, offset in commits],
        LOG_OFFSETS: [point(t, offset, **place) for t, offset in ends],
    }


def minutely(offsets: list[int], lags: list[int]) -> tuple[list[tuple[float, int | None]], list[tuple[float, int]]]:
    """A commit each minute from T on, and the log end offsets that make it lag by so much."""
    return [(60 * i, o) for i, o in enumerate(offsets)], [
        (60 * i, o + lag) for i, (o, lag) in enumerate(zip(offsets, lags, strict=True))
    ]


def polls(name: str, seen: list[tuple[float, int]], ends: list[tuple[float, int]], cluster: str = "prod") -> Facts:
    return scene(name, list(seen), ends, source="snapshot", cluster=cluster)


def merged(scenes: list[Facts]) -> Facts:
    return {table: [row for one in scenes for row in one[table]] for table in (COMMITTED_OFFSETS, LOG_OFFSETS)}


LAGGING = [(t, 1_000 + t) for t in range(0, 1_260, 60)]
"""Log end offsets that nobody in these scenes reaches."""
BEHIND = [(60 * i, 10 * i) for i in range(10)]

SCENES = [
    *[scene(name, *minutely(*figures)) for name, figures in EXAMPLES.items()],
    scene("caught up and idle", [(0, 5), (60, 10)], [(0, 10)]),
    scene("stopped behind an old zero", *minutely(TENS, [0, 0, 0, 0, 0, 0, 0, 1, 3, 5])),
    scene("second rewind stays", [(60 * i, o) for i, o in enumerate([10, 20, 15, 30, 40, 25, 30, 35])], LAGGING),
    scene("first rewind stays", [(60 * i, o) for i, o in enumerate([90, 10, 20, 15, 30, 40, 35, 45])], LAGGING),
    scene("every rewind reached again", [(60 * i, o) for i, o in enumerate([10, 20, 15, 30, 25, 40, 45])], LAGGING),
    scene("rewind after a zero", [(0, 1_000), (60, 500), (120, 510), (180, 520)], [(0, 1_000)]),
    scene("rare committer", [(0, 0), (1_000, 10)], LAGGING),
    scene("out of order", [(120, 30), (0, 10), (180, 40), (60, 20)], LAGGING),
    scene("async commits overtake each other", [(0, 10), (60, 30), (61, 20), (120, 40)], LAGGING),
    scene("set back in the same millisecond", [(0, 10), (60, 20), (120, 30), (120, 15)], LAGGING),
    scene("set back in the millisecond of the same offset", [(0, 10), (60, 20), (120, 20), (120, 15)], LAGGING),
    scene("no end offset", [(60 * i, 10) for i in range(5)]),
    scene("end offset known late", [(60 * i, 10) for i in range(5)], [(200, 50)]),
    scene("one single commit", [(30, 10)], LAGGING),
    scene("beyond the end", [(0, 10), (60, 60), (120, 70)], [(0, 50), (100, 60), (170, 65)]),
    scene("deleted in the millisecond of a commit", [(0, 10), (60, None), (60, 20)], LAGGING),
    scene("deleted and back", [(0, 10), (60, 20), (130, None), (300, 5), (330, 6)], LAGGING),
    polls("polled while it moves", [(60 * i, 10 * i) for i in range(5)], LAGGING),
    polls("polled while it stands", [(60 * i, 10 + 10 * (i > 0)) for i in range(20)], LAGGING),
    polls("zz, the last of all, stands", [(0, 10), (60, 20), (100, 20)], LAGGING, "strict"),
    merged(
        [
            scene("dead but polled", BEHIND, LAGGING),
            polls("dead but polled", [(60 * i + 30, 90) for i in range(9, 20)], []),
        ]
    ),
    scene("expires", [(0, 1), (30, 2)], [(0, 1), (30, 50)], cluster="short"),
    scene("returns just in time", [(0, 1), (600, 2), (630, 3)], [(0, 1), (30, 50)], cluster="short"),
    scene("expires and returns", [(0, 1), (30, 2), (900, 3), (930, 4)], [(0, 1), (30, 50)], cluster="short"),
    merged(
        [
            scene("gone but kept by Kafka", [(0, 1), (30, 2)], [(0, 9)], cluster="short"),
            polls("gone but kept by Kafka", [(300 * i + 1, 2) for i in range(4)], [], cluster="short"),
        ]
    ),
    scene("silent for as long as allowed", [(0, 1), (60, 2)], [(0, 1), (30, 50)], cluster="short"),
    scene("silent for just too long", [(0, 1), (59.5, 2)], [(0, 1), (30, 50)], cluster="short"),
    merged(
        [
            scene("back while Kafka kept its offset", [(0, 1), (30, 2), (900, 3), (930, 4)], [(0, 9)], cluster="short"),
            polls("back while Kafka kept its offset", [(300 * i + 1, 2) for i in range(3)], [], cluster="short"),
        ]
    ),
    merged(
        [
            scene("told by polls since it was deleted", [(0, 10), (60, 20), (130, None)], LAGGING),
            polls("told by polls since it was deleted", [(300, 5), (360, 6), (420, 7)], []),
        ]
    ),
    scene(
        "within the allowed lag",
        [(60 * i, 10 * i) for i in range(5)],
        [(60 * i, 10 * i + 5) for i in range(5)],
        cluster="strict",
    ),
    scene("too few commits", [(0, 10), (60, 20)], LAGGING, cluster="strict"),
    scene("enough commits", [(0, 10), (60, 20), (120, 30)], LAGGING, cluster="strict"),
    scene("more than the window holds", [(60 * i, 10) for i in range(9)], LAGGING, cluster="strict"),
    scene("a group", [(60 * i, 10 * i) for i in range(10)], [(60 * i, 10 * i) for i in range(20)], topic="fine"),
    scene("a group", [(60 * i, 10) for i in range(10)], LAGGING, topic="stalled"),
    scene("b group", [(60 * i, 10 * i) for i in range(10)], [(60 * i, 10 * i) for i in range(10)], topic="fine b"),
    scene("b group", BEHIND, [(60 * i, 100 + 20 * i) for i in range(10)], topic="slow b"),
    scene("c group", [(0, 1), (30, 2)], [(30, 50)], topic="gone c", cluster="short"),
    scene("c group", [(60 * i, 10 * i) for i in range(20)], [(0, 0)], topic="alive c", cluster="short"),
]


def _wild(chance: random.Random, name: str) -> Facts:
    """A group on a cluster that forgets quickly: commits in bursts, rewinds, ties, deletions, silences, and polls."""
    times = sorted(
        round(chance.uniform(0, 1_250) / chance.choice([1, 1, 4]), 1) for _ in range(chance.randrange(2, 25))
    )
    often = [t for t in times for _ in range(chance.choice([1, 1, 1, 2]))]
    commits = [(t, None if chance.random() < 0.05 else chance.randrange(100, 200) + int(t)) for t in often]
    told = chance.choice([commits, [], commits[: len(commits) // 2]])
    looks = [(30 + 60 * i, _position(commits, 30 + 60 * i)) for i in range(chance.randrange(21))]
    ends = [(t, 150 + int(t) + chance.randrange(80)) for t in range(chance.randrange(300), 1_260, 30)]
    place = {"group": name, "topic": name, "cluster": "short"}
    return {
        COMMITTED_OFFSETS: [commit(t, o, **place) for t, o in told]
        + [commit(t, o, **place, source="snapshot") for t, o in looks if o is not None],
        LOG_OFFSETS: [point(t, end, cluster="short", topic=name) for t, end in ends],
    }


def _position(commits: list[tuple[float, int | None]], t: float) -> int | None:
    return next((offset for time, offset in reversed(commits) if time <= t), None)


def _wild_ones() -> list[Facts]:
    chance = random.Random(5)
    return [_wild(chance, f"wild {i}") for i in range(25)]


ALL = merged([*SCENES, *_wild_ones()])


@pytest.fixture(scope="module")
def measuring(tmp_path_factory: pytest.TempPathFactory) -> Measuring:
    return Measuring(CONSUMER_STATUS, status_of, tmp_path_factory.mktemp("facts"))


@pytest.fixture(scope="module")
def rows(measuring: Measuring) -> list[Row]:
    """All scenes and the wild groups, measured in one go, in the windows that end at T+60 to T+1260."""
    return measuring.whole(ALL, 0, 1_260, CLUSTERS)


@pytest.fixture(scope="module")
def seen(rows: list[Row]) -> dict[tuple[str, int], Row]:
    """Rows by group and end of the window, in seconds after T; groups that read several topics also by topic."""
    found = {(row["group"], int((row["window_end"] - at(0)).total_seconds())): row for row in rows}
    return found | {(row["topic"], int((row["window_end"] - at(0)).total_seconds())): row for row in rows}


Seen = dict[tuple[str, int], Row]


@pytest.mark.parametrize(
    ("name", "now", "status", "group_status"),
    [
        ("example 1", 600, "OK", "OK"),
        ("example 2", 600, "STALLED", "ERROR"),
        ("example 3", 600, "WARNING", "WARNING"),
        ("examples 4 and 5", 600, "OK", "OK"),
        ("examples 4 and 5", 1_200, "STOPPED", "ERROR"),
    ],
)
def test_the_five_worked_examples_of_the_text(seen: Seen, name: str, now: int, status: str, group_status: str) -> None:
    row, lags = seen[name, now], EXAMPLES[name][1]
    assert (row["commit_offsets"], row["commit_lags"]) == EXAMPLES[name]
    assert row["commit_times"] == [at(60 * i) for i in range(10)]
    assert (row["status"], row["group_status"], row["complete"], row["lag"]) == (status, group_status, 1.0, lags[-1])


def test_the_stop_of_example_5_shows_once_its_silence_exceeds_the_span_of_its_commits(seen: Seen) -> None:
    assert [seen["examples 4 and 5", now]["status"] for now in (1_020, 1_080, 1_140)] == ["OK", "OK", "STOPPED"]
    assert seen["examples 4 and 5", 1_200]["reason"].startswith("no commit for 660 s, longer than the 540 s")


def test_a_consumer_that_has_read_everything_is_ok_however_long_it_is_silent(seen: Seen) -> None:
    assert (seen["caught up and idle", 1_200]["status"], seen["caught up and idle", 1_200]["lag"]) == ("OK", 0)


def test_an_old_zero_does_not_hide_a_stop(seen: Seen) -> None:
    statuses = [seen["stopped behind an old zero", now]["status"] for now in (600, 1_080, 1_140)]
    assert statuses == ["OK", "OK", "STOPPED"]
    assert 0 in seen["stopped behind an old zero", 1_140]["commit_lags"]


def test_every_rewind_in_the_window_counts_until_a_later_commit_reaches_it_again(seen: Seen) -> None:
    assert seen["second rewind stays", 480]["status"] == "REWIND"
    assert seen["first rewind stays", 480]["status"] == "REWIND"
    assert seen["every rewind reached again", 420]["status"] == "WARNING"


def test_a_rewind_shows_although_the_lag_was_zero_before_it(seen: Seen) -> None:
    row = seen["rewind after a zero", 240]
    assert (row["status"], row["commit_lags"]) == ("REWIND", [0, 500, 490, 480])
    assert row["reason"] == "went back from offset 1000 and has not reached it again, only 520"


def test_a_rare_committer_may_be_as_silent_as_its_commits_are_apart(seen: Seen) -> None:
    assert [seen["rare committer", now]["status"] for now in (60, 1_020, 1_260)] == ["STOPPED", "WARNING", "WARNING"]


def test_commits_count_in_the_order_of_their_times(seen: Seen) -> None:
    assert seen["out of order", 240]["commit_offsets"] == [10, 20, 30, 40]
    assert seen["async commits overtake each other", 120]["status"] == "REWIND"
    assert seen["async commits overtake each other", 180]["status"] != "REWIND"
    assert seen["async commits overtake each other", 180]["commit_offsets"] == [10, 30, 20, 40]
    assert seen["set back in the same millisecond", 180]["commit_offsets"] == [10, 20, 30, 15]
    assert seen["set back in the millisecond of the same offset", 180]["commit_offsets"] == [10, 20, 20, 15]


def test_without_an_end_offset_a_partition_is_ok_and_its_lags_are_unknown(seen: Seen) -> None:
    row = seen["no end offset", 1_200]
    assert (row["status"], row["lag"], row["log_end_offset"], row["commit_lags"]) == ("OK", None, None, [None] * 5)
    assert row["reason"] == "no log end offset is known"
    late = seen["end offset known late", 300]
    assert (late["status"], late["lag"], late["commit_lags"]) == ("OK", 40, [None] * 4 + [40])
    assert late["reason"] == "no log end offset was known at some of the commits"
    assert seen["end offset known late", 540]["status"] == "STOPPED"


def test_one_single_commit_spans_no_time_so_that_unread_records_mean_stopped(seen: Seen) -> None:
    row = seen["one single commit", 60]
    assert (row["status"], row["complete"], row["group_complete"]) == ("STOPPED", 0.1, 0.1)


def test_a_lag_is_never_negative(seen: Seen) -> None:
    row = seen["beyond the end", 180]
    assert (row["commit_lags"], row["lag"], row["status"]) == ([40, 0, 0], 0, "OK")


def test_a_deleted_offset_ends_the_rows_and_what_was_before_it_is_forgotten(seen: Seen) -> None:
    assert [now for name, now in seen if name == "deleted and back"] == [60, 120, *range(360, 1_261, 60)]
    assert (seen["deleted and back", 360]["commit_offsets"], seen["deleted and back", 360]["complete"]) == ([5, 6], 0.2)


def test_a_deletion_comes_after_a_commit_of_its_millisecond(seen: Seen) -> None:
    assert [now for name, now in seen if name == "deleted in the millisecond of a commit"] == [60]


def test_where_only_polls_tell_a_new_position_is_a_commit_and_the_same_one_is_none(seen: Seen) -> None:
    moving, still = seen["polled while it moves", 300], seen["polled while it stands", 1_200]
    assert (moving["commit_offsets"], moving["polled_only"]) == ([0, 10, 20, 30, 40], True)
    assert (still["commit_offsets"], still["status"]) == ([10, 20], "STOPPED")
    assert (still["last_commit_at"], still["last_seen_at"]) == (at(60), at(19 * 60))


def test_polls_do_not_make_a_dead_consumer_look_alive(seen: Seen) -> None:
    row = seen["dead but polled", 1_200]
    assert (row["status"], row["last_commit_at"], row["last_seen_at"]) == ("STOPPED", at(540), at(19 * 60 + 30))
    assert not row["polled_only"]


def test_a_group_that_is_silent_for_longer_than_expire_group_is_not_found_once(seen: Seen) -> None:
    found = {now: row["status"] for (name, now), row in seen.items() if name == "expires"}
    assert list(found) == list(range(60, 661, 60))
    assert [now for now, status in found.items() if status == "NOTFOUND"] == [660]
    assert seen["expires", 660]["group_status"] == "NOTFOUND"
    assert seen["expires", 660]["reason"] == "no commit for 630 s, longer than expire_group: the group is gone"


def test_a_group_that_returns_is_judged_by_what_it_commits_from_then_on(seen: Seen) -> None:
    assert ("expires and returns", 720) not in seen
    assert seen["expires and returns", 960]["commit_offsets"] == [3, 4]


def test_a_group_is_gone_only_when_it_is_silent_for_longer_than_expire_group(seen: Seen) -> None:
    names = ("silent for as long as allowed", "silent for just too long")
    assert [seen[name, 660]["status"] for name in names] == ["STOPPED", "NOTFOUND"]


def test_a_silence_of_exactly_expire_group_is_none(seen: Seen) -> None:
    assert seen["returns just in time", 660]["commit_offsets"] == [1, 2, 3]


def test_commits_before_a_long_silence_count_no_more_though_polls_saw_the_group(seen: Seen) -> None:
    assert seen["back while Kafka kept its offset", 960]["commit_offsets"] == [3, 4]


def test_where_the_commit_log_told_of_nothing_since_the_offset_was_deleted_polls_do(seen: Seen) -> None:
    row = seen["told by polls since it was deleted", 480]
    assert (row["commit_offsets"], row["polled_only"]) == ([5, 6, 7], True)


def test_a_group_that_is_gone_stays_not_found_while_kafka_keeps_its_offset(seen: Seen) -> None:
    found = [row["status"] for (name, now), row in seen.items() if name == "gone but kept by Kafka" and now > 600]
    assert found == ["NOTFOUND"] * 11
    assert seen["gone but kept by Kafka", 1_260]["commit_offsets"] == [1, 2]


def test_the_rules_of_each_cluster_are_its_own(seen: Seen) -> None:
    assert seen["within the allowed lag", 1_200]["reason"] == "the lag of 5 is within allowed_lag"
    few = seen["too few commits", 1_200]
    assert (few["status"], few["complete"]) == ("OK", 0.5)
    assert few["reason"] == "commits known: 2, too few to judge by (min_complete)"
    assert seen["enough commits", 1_200]["status"] == "STOPPED"
    assert seen["more than the window holds", 540]["commit_times"] == [at(60 * i) for i in range(5, 9)]


def test_a_group_is_as_bad_as_its_worst_partition(seen: Seen) -> None:
    assert (seen["fine", 600]["status"], seen["stalled", 600]["status"]) == ("OK", "STALLED")
    assert (seen["fine", 600]["group_status"], seen["stalled", 600]["group_status"]) == ("ERROR", "ERROR")
    assert (seen["fine b", 600]["group_status"], seen["slow b", 600]["status"]) == ("WARNING", "WARNING")


def test_a_partition_that_is_gone_says_nothing_of_a_group_that_is_not(seen: Seen) -> None:
    gone, alive = seen["gone c", 660], seen["alive c", 660]
    assert (gone["status"], gone["group_status"], alive["group_status"]) == ("NOTFOUND", "OK", "OK")
    assert (gone["complete"], gone["group_complete"], alive["group_complete"]) == (0.2, 1.0, 1.0)


def test_a_group_is_complete_by_all_the_commits_of_its_partitions(seen: Seen) -> None:
    assert (seen["alive c", 60]["complete"], seen["gone c", 60]["complete"]) == (0.1, 0.2)
    assert seen["alive c", 60]["group_complete"] == pytest.approx(0.15)


@pytest.mark.parametrize("seconds", [420, 60])
def test_one_long_interval_gives_the_rows_of_many_short_ones(
    measuring: Measuring, rows: list[Row], seconds: int
) -> None:
    assert measuring.in_pieces(ALL, 0, 1_260, seconds, CLUSTERS) == rows
    assert {row["window_end"] - row["window_start"] for row in rows} == {timedelta(seconds=60)}
    assert {row["status"] for row in rows if row["group"].startswith("wild")} >= {"OK", "STOPPED", "REWIND"}


def test_the_wild_groups_of_these_tests_do_all_that_is_told_of_them() -> None:
    flows = [facts[COMMITTED_OFFSETS] for facts in _wild_ones()]
    logged = [[row for row in flow if row["source"] == "commit_log"] for flow in flows]
    assert any(not flow for flow in logged) and any(flow[-1]["source"] == "snapshot" for flow in flows if flow)
    assert any(a["at"] == b["at"] for flow in logged for a, b in pairwise(flow))
    assert any(row["committed_offset"] is None for flow in logged for row in flow)


def test_lookups_that_end_before_committed_positions_do_not_say_that_nothing_waits(tmp_path: Path) -> None:
    """The topic was created again and answers that it has no record before 330 s; the former one had at least 4,000."""
    lookups = [point(t, end, source="list_offsets") for t, end in (*((60 * n, 0) for n in range(6)), (360, 3))]
    commits = [commit(10, 500), commit(70, 2_000), commit(130, 4_000), commit(340, 1)]
    facts = {LOG_OFFSETS: [*lookups, *record(330, 0)], COMMITTED_OFFSETS: commits}

    found = Measuring(CONSUMER_STATUS, status_of, tmp_path).whole(facts, 60, 360, (DEFAULT,))

    assert [(row["lag"], row["log_end_offset"]) for row in found] == [(None, 0)] * 4 + [(2, 3)]
