"""`steady_state`: what begins and what ends bootstrapping, as stories that an on-call engineer knows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SteadyState, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, STEADY_STATE, Table
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs.single_pass import measure_chunk, scope_of
from kafka_sla.spark_jobs.steady_state import REASONS, STATE_NAMES, SteadyRules, supposed
from kafka_sla.spark_jobs.steady_state import rows as steady_rows
from kafka_sla.spark_jobs.windows.segments import steps
from kafka_sla.spark_jobs.windows.window_grid import rows as grid_rows
from tests.spark_jobs.conftest import Row, at, commit, point, record, sla
from tests.spark_jobs.tasks import chunks_of, files

Measure = Callable[..., list[Row]]

STEADY_FLOW = [point(t, t * 10) for t in range(0, 601, 10)]


def _states(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(s["state"], s["reason"], s["since"], s["steady_whole_window"]) for r in rows for s in r["states"]]


def produced(minutes: int, per_second: int = 10) -> list[Row]:
    """Records that are appended at this rate, as the log end every ten seconds."""
    return [point(t, t * per_second) for t in range(0, minutes * 60 + 1, 10)]


def reads(since: float, until: float, offset: float, per_second: float) -> list[Row]:
    """Commits every five seconds of a consumer that reads at this rate from an offset on."""
    return [commit(t, int(offset + (t - since) * per_second)) for t in _every(5, since, until)]


def _every(step: float, since: float, until: float) -> list[float]:
    return [since + step * n for n in range(int((until - since) / step))]


def in_pieces(measure: Measure, points: list[Row], commits: list[Row], end: int, piece: int, **more: Any) -> list[Row]:
    """The rows of many short intervals, each from the rows of the one before."""
    rows = list[Row]()
    for start in range(0, end, piece):
        carried = (start, [row for row in rows if row["window_end"] == at(start)]) if rows else None
        rows += measure(points, commits, start, start + piece, carried=carried, **more)
    return rows


def minutes(rows: list[Row]) -> dict[int, str]:
    """Minute → state and reason, of the minutes with which one of them changes."""
    result: dict[int, str] = {}
    for row in rows:
        (state,) = row["states"]
        text = f"{state['state']}: {state['reason']}"
        if text not in list(result.values())[-1:]:
            result[round((row["window_start"] - at(0)).total_seconds() / 60)] = text
    return result


class Test1ALateConsumerStepsBack:
    def test_it_stays_judged(self, measure: Measure) -> None:
        falling_behind = reads(5, 1_200, 50, 8)
        falling_behind[120] = commit(605, falling_behind[120]["committed_offset"] - 300)

        rows = measure(produced(20), falling_behind, 0, 1_200)

        assert minutes(rows) == {0: "steady: caught_up"}
        assert all(state["steady_whole_window"] for row in rows[1:] for state in row["states"])


class Test2ADeadConsumerIsSetBack:
    def test_it_stays_judged(self, measure: Measure) -> None:
        commits = [*reads(5, 300, 50, 10), commit(600, 2_900)]

        assert minutes(measure(produced(20), commits, 0, 1_200)) == {0: "steady: caught_up"}

    def test_so_does_one_whose_position_was_only_polled(self, measure: Measure) -> None:
        polls = [commit(t, min(t, 300) * 10, source="snapshot") for t in range(10, 600, 60)]
        polls += [commit(t, 2_900, source="snapshot") for t in range(610, 1_200, 60)]

        assert minutes(measure(produced(20), polls, 0, 1_200)) == {0: "steady: caught_up"}


class Test3AnOnTimeConsumerIsSetBack:
    commits = (*reads(5, 1_200, 50, 10), *reads(1_200, 1_350, 0, 100), *reads(1_350, 1_800, 13_500, 10))

    def test_it_bootstraps_until_it_has_caught_up(self, measure: Measure) -> None:
        rows = measure(produced(30), list(self.commits), 0, 1_800)

        assert minutes(rows) == {0: "steady: caught_up", 20: "bootstrapping: rewind", 22: "steady: caught_up"}

    def test_a_rebalance_on_the_way_back_changes_nothing(self, measure: Measure) -> None:
        commits = [c for c in self.commits if c["at"] != at(1_300)] + [commit(1_300, 9_000)]

        assert minutes(measure(produced(30), commits, 0, 1_800))[20] == "bootstrapping: rewind"
        assert minutes(measure(produced(30), commits, 0, 1_800))[22] == "steady: caught_up"

    def test_it_may_have_as_long_as_it_makes_headway(self, measure: Measure) -> None:
        commits = [*reads(5, 1_200, 50, 10), *reads(1_200, 3_000, 0, 15)]
        rows = measure(produced(50), commits, 0, 3_000, slas=(sla(30, progress_deadline=120),))

        assert minutes(rows) == {0: "steady: caught_up", 20: "bootstrapping: rewind"}

    def test_being_set_back_once_more_on_the_way_starts_the_measuring_of_headway_again(self, measure: Measure) -> None:
        first = [*reads(5, 1_200, 50, 10), *reads(1_200, 1_260, 6_000, 30)]
        rows = measure(
            produced(50), [*first, *reads(1_260, 3_000, 0, 15)], 0, 3_000, slas=(sla(30, progress_deadline=120),)
        )
        assert list(minutes(rows).values()) == ["steady: caught_up", "bootstrapping: rewind", "steady: not_catching_up"]


class Test4ItDiesAfterItWasSetBack:
    def test_it_is_judged_when_the_progress_deadline_has_passed(self, measure: Measure) -> None:
        commits = [*reads(5, 300, 50, 10), commit(300, 0)]

        rows = measure(produced(60), commits, 0, 3_600)

        assert minutes(rows) == {0: "steady: caught_up", 5: "bootstrapping: rewind", 35: "steady: not_catching_up"}
        (state,) = rows[36]["states"]
        assert (state["since"], state["steady_whole_window"]) == (at(300 + 1_800), True)


class Test5To7ANewGroup:
    promise = (sla(30, progress_deadline=600),)

    def test_that_reads_faster_than_is_produced_bootstraps_until_it_has_caught_up(self, measure: Measure) -> None:
        rows = measure(produced(70), reads(1_200, 4_200, 0, 15), 1_200, 4_200, slas=self.promise)

        assert minutes(rows) == {20: "bootstrapping: first_commit", 59: "steady: caught_up"}

    def test_that_reads_more_slowly_is_judged_after_the_progress_deadline(self, measure: Measure) -> None:
        rows = measure(produced(60), reads(1_200, 3_600, 0, 8), 1_200, 3_600, slas=self.promise)

        assert minutes(rows) == {20: "bootstrapping: first_commit", 30: "steady: not_catching_up"}

    def test_that_commits_once_and_hangs_is_judged_after_the_progress_deadline(self, measure: Measure) -> None:
        rows = measure(produced(60), [commit(1_200, 0)], 1_200, 3_600, slas=self.promise)

        assert minutes(rows) == {20: "bootstrapping: first_commit", 30: "steady: not_catching_up"}

    def test_that_catches_up_after_the_deadline_has_caught_up(self, measure: Measure) -> None:
        rows = measure(
            produced(60), [commit(1_200, 0), *reads(2_400, 3_600, 24_000, 10)], 1_200, 3_600, slas=self.promise
        )
        assert list(minutes(rows).values())[-1] == "steady: caught_up"
        assert all(state["steady_whole_window"] for row in rows[11:] for state in row["states"])

    def test_that_got_stuck_on_the_way_is_judged_a_deadline_after_its_last_headway(self, measure: Measure) -> None:
        stuck = [*reads(1_200, 1_500, 0, 20), *(commit(t, 5_900) for t in range(1_500, 3_600, 5))]
        rows = measure(produced(60), stuck, 1_200, 3_600, slas=self.promise)

        (state,) = rows[-1]["states"]
        assert (state["reason"], state["since"]) == ("not_catching_up", at(1_495 + 600))


class Test10OneSampleSaysOffsetZero:
    def test_nothing_happens(self, measure: Measure) -> None:
        polls = [commit(t, 0 if t == 610 else t * 10, source="snapshot") for t in range(5, 1_200, 5)]

        rows = measure(produced(20), polls, 0, 1_200)

        assert minutes(rows) == {0: "steady: caught_up"}
        assert all(state["steady_whole_window"] for row in rows[1:] for state in row["states"])
        assert {row["records_consumed"] for row in rows[1:-1]} == {600}


class Test11TwoProgramsCommit:
    both = tuple(
        commit(t, t * 10 if t // 5 % 2 else (t - 300) * 9) if t >= 305 else commit(t, t * 10)
        for t in range(5, 1_500, 5)
    )

    def test_their_positions_contradict_each_other(self, measure: Measure) -> None:
        rows = measure(produced(30), list(self.both), 0, 1_500)

        assert minutes(rows) == {0: "steady: caught_up", 5: "contradictory: rewind"}
        assert not any(state["steady_whole_window"] for row in rows[5:] for state in row["states"])

    def test_so_do_polls_of_them(self, measure: Measure) -> None:
        polls = [one | {"source": "snapshot"} for one in self.both]
        rows = measure(produced(30), polls, 0, 1_500)

        assert list(minutes(rows).values())[-1] == "contradictory: rewind"
        assert list(minutes(rows))[-1] <= 7

    def test_when_it_stops_the_group_is_judged_after_the_progress_deadline(self, measure: Measure) -> None:
        promise = (sla(30, progress_deadline=300),)
        rows = measure(produced(60), list(self.both), 0, 3_600, slas=promise)

        assert list(minutes(rows).items())[-1] == (30, "steady: contradiction_over")


class Test12ARebalanceCommitsAFewBack:
    def test_who_stays_on_time_stays_steady(self, measure: Measure) -> None:
        commits = [commit(t, t * 10 - (100 if t % 60 == 0 else 0)) for t in range(5, 1_200, 5)]

        rows = measure(produced(20), commits, 0, 1_200)

        assert minutes(rows) == {0: "steady: caught_up"}
        assert all(state["steady_whole_window"] for row in rows[1:] for state in row["states"])


class Test13APoisonRecord:
    def test_a_consumer_that_returns_to_it_forever_is_judged(self, measure: Measure) -> None:
        stuck = [commit(t, (2_950, 3_000)[t // 5 % 2]) for t in range(300, 1_200, 5)]

        rows = measure(produced(20), [*reads(5, 300, 50, 10), *stuck], 0, 1_200)

        assert minutes(rows) == {0: "steady: caught_up"}

    def test_one_on_the_way_back_is_judged_after_the_progress_deadline(self, measure: Measure) -> None:
        way_back = reads(1_200, 1_260, 0, 50)
        stuck = [commit(t, (2_800, 2_950)[t // 5 % 2]) for t in range(1_260, 4_800, 5)]
        rows = measure(produced(80), [*reads(5, 1_200, 50, 10), *way_back, *stuck], 0, 4_800)

        assert list(minutes(rows).values()) == ["steady: caught_up", "bootstrapping: rewind", "steady: not_catching_up"]


class Test15TheLastOffsetIsCommitted:
    def test_as_many_records_as_the_sla_allows_are_no_backlog(self, measure: Measure) -> None:
        quiet = [point(t, min(t, 300)) for t in range(0, 1_201, 10)]
        for allowed_lag, state in ((1, "steady: caught_up"), (0, "bootstrapping: first_commit")):
            rows = measure(quiet, [commit(600, 299)], 600, 1_200, slas=(sla(30, allowed_lag=allowed_lag),))
            assert minutes(rows) == {10: state}


STORIES = {
    "a late step back": (*reads(5, 600, 50, 8), commit(600, 4_000), *reads(605, 1_200, 4_800, 8)),
    "a replay": (*reads(5, 600, 50, 10), *reads(600, 700, 0, 100), *reads(700, 1_200, 7_000, 10)),
    "a death after a step back": (*reads(5, 300, 50, 10), commit(300, 0)),
    "a slow group": tuple(reads(300, 1_200, 0, 8)),
    "two step backs on the way": (*reads(5, 600, 50, 10), *reads(600, 650, 0, 40), *reads(650, 1_200, 0, 12)),
    "two programs": Test11TwoProgramsCommit.both[:120],
    "a poison record": (*reads(5, 300, 50, 10), *(commit(t, (2_950, 3_000)[t // 5 % 2]) for t in range(300, 900, 5))),
    "a poison record on the way": (
        *reads(5, 600, 50, 10),
        *reads(600, 660, 0, 50),
        *(commit(t, (2_800, 2_950)[t // 5 % 2]) for t in range(660, 1_000, 5)),
    ),
}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("piece", [60, 300])
def test_each_story_has_the_same_states_in_pieces(measure: Measure, story: str, piece: int) -> None:
    for promise in (sla(30, progress_deadline=250), sla(30, progress_deadline=250, grace_period=400)):
        more = {"slas": (promise,)}
        whole = measure(produced(20), list(STORIES[story]), 0, 1_200, **more)
        assert in_pieces(measure, produced(20), list(STORIES[story]), 1_200, piece, **more) == whole


def test_a_consumer_that_is_caught_up_at_its_first_commit_is_steady_from_then_on(measure: Measure) -> None:
    rows = measure(STEADY_FLOW, [commit(t, t * 10) for t in range(5, 120, 5)], 0, 120)
    assert _states(rows) == [("steady", "caught_up", at(5), False), ("steady", "caught_up", at(5), True)]


def test_a_new_group_on_old_records_bootstraps_until_it_is_caught_up(measure: Measure) -> None:
    commits = [commit(300, 0), commit(340, 1000), commit(430, 4300)]
    rows = measure(STEADY_FLOW, commits, 300, 540)
    assert _states(rows) == [
        ("bootstrapping", "first_commit", at(300), False),
        ("bootstrapping", "first_commit", at(300), False),
        ("steady", "caught_up", at(430), False),
        ("steady", "caught_up", at(430), True),
    ]


def test_a_consumer_that_falls_behind_stays_steady(measure: Measure) -> None:
    rows = measure(STEADY_FLOW, [commit(5, 50), commit(400, 60)], 0, 540)
    assert {s[0] for s in _states(rows)} == {"steady"}


def test_after_a_deleted_offset_a_group_begins_anew_and_after_a_long_silence_it_returns(measure: Measure) -> None:
    reset = measure(STEADY_FLOW, [commit(5, 50), commit(70, None), commit(130, 100)], 0, 180)
    assert _states(reset)[-1] == ("bootstrapping", "first_commit", at(130), False)
    rows = measure(STEADY_FLOW, [commit(5, 50), commit(130, 100)], 0, 180, slas=(sla(30, expire=60),))
    assert _states(rows)[-1] == ("bootstrapping", "returned", at(130), False)


def test_grace_bounds_how_long_bootstrapping_excuses(measure: Measure) -> None:
    rows = measure(STEADY_FLOW, [commit(300, 0), commit(420, 100)], 300, 540, slas=(sla(30, grace_period=90),))
    assert [s[1] for s in _states(rows)] == [
        "first_commit",
        "grace_period_over",
        "grace_period_over",
        "grace_period_over",
    ]
    assert _states(rows)[1][2] == at(390)


def test_a_recreated_topic_bootstraps_again(measure: Measure) -> None:
    points = [point(0, 1000), point(60, 5), point(120, 500), point(180, 600), point(240, 600)]
    rows = measure(points, [commit(1, 1000), commit(130, 5)], 0, 240)
    assert _states(rows)[-1][:2] == ("bootstrapping", "topic_recreated")


def test_carried_states_go_on_where_they_stood(measure: Measure) -> None:
    commits = [commit(300, 0), commit(340, 1000), commit(430, 4300), commit(500, 5000)]
    first = measure(STEADY_FLOW, commits, 300, 360)
    second = measure(STEADY_FLOW, commits, 360, 540, carried=(360, first))
    assert first + second == measure(STEADY_FLOW, commits, 300, 540)


def test_an_sla_that_is_new_has_nothing_to_go_on_with(measure: Measure) -> None:
    commits, new = [commit(t, t * 10) for t in (5, 50, 70)], replace(sla(30), name="new")
    first = measure(STEADY_FLOW, commits, 0, 60)
    (row,) = measure(STEADY_FLOW, commits, 60, 120, carried=(60, first), slas=(sla(30), new))
    assert {s["sla"]: (s["state"], s["since"]) for s in row["states"]} == {
        "promise": ("steady", at(5)),
        "new": ("steady", at(70)),
    }


def test_only_slas_that_cover_a_group_and_topic_have_its_state(measure: Measure) -> None:
    other = replace(sla(30), name="other", groups=Patterns(("nobody",)))
    rows = measure(STEADY_FLOW, [commit(0, 0)], 0, 60, slas=(sla(30), other))
    assert [s["sla"] for r in rows for s in r["states"]] == ["promise"]


def test_who_returns_behind_where_it_was_begins_anew(measure: Measure) -> None:
    commits = [commit(5, 50), commit(100, 1000), commit(300, 500), commit(310, 700), commit(320, 600)]
    rows = measure(STEADY_FLOW, commits, 0, 360, slas=(sla(30, within=5, expire=60),))
    assert _states(rows)[-1] == ("bootstrapping", "returned", at(300), False)


def test_without_slas_there_are_no_states(measure: Measure) -> None:
    assert [row["states"] for row in measure(STEADY_FLOW, [commit(0, 0)], 0, 120, slas=())] == [[], []]


def test_steady_rows_have_the_place_and_time_of_their_latency_and_a_row_for_each_sla(tmp_path: Path) -> None:
    facts = {LOG_OFFSETS: STEADY_FLOW, COMMITTED_OFFSETS: [commit(300, 0), commit(340, 3400)]}
    other = replace(sla(10, within=1), name="strict")
    job = job_of(tmp_path, facts, (sla(30), other))
    (chunk,) = chunks_of(job)

    found = steady_rows(measure_chunk(chunk, scope_of(job), job.slas).rows).to_pylist()

    assert [(r["sla"], r["window_start"], r["group"], r["state"]) for r in found] == [
        ("promise", at(300), "billing", "steady"),
        ("strict", at(300), "billing", "steady"),
        ("promise", at(360), "billing", "steady"),
        ("strict", at(360), "billing", "steady"),
    ]
    assert {tuple(sorted(r)) for r in found} == {tuple(sorted(STEADY_STATE.names))}


def job_of(folder: Path, facts: Mapping[Table, list[Row]], slas: tuple[Sla, ...] = ()) -> Job:
    replays = (Replay(Cluster("prod", None), None),)
    return Job("load", Interval(at(0), at(420)), 60_000, replays, slas, files(folder, facts), {}, "", {}, 0, 0)


def test_a_group_that_never_caught_up_keeps_its_first_excuse_and_its_grace(measure: Measure) -> None:
    stuck = [commit(300 + t, [0, 20][t // 5 % 2]) for t in range(0, 240, 5)]
    rows = measure(STEADY_FLOW, stuck, 300, 540)
    assert set(_states(rows)) == {("bootstrapping", "first_commit", at(300), False)}
    rows = measure(STEADY_FLOW, stuck, 300, 540, slas=(sla(30, grace_period=90),))
    assert _states(rows)[-1] == ("steady", "grace_period_over", at(390), True)


def test_what_a_poll_sees_at_the_end_of_a_window_belongs_to_it_and_a_commit_there_to_the_next(
    measure: Measure,
) -> None:
    told = [(300, 0), (360, 3600), (420, 4200)]
    polled = measure(STEADY_FLOW, [commit(t, offset, source="snapshot") for t, offset in told], 240, 420)
    committed = measure(STEADY_FLOW, [commit(t, offset) for t, offset in told], 240, 420)
    assert _states(polled) == [
        ("bootstrapping", "first_commit", at(300), False),
        ("steady", "caught_up", at(360), False),
        ("steady", "caught_up", at(360), True),
    ]
    assert _states(committed) == [
        ("bootstrapping", "first_commit", at(300), False),
        ("steady", "caught_up", at(360), True),
    ]


def test_who_is_silent_for_exactly_as_long_as_allowed_has_not_been_away(measure: Measure) -> None:
    for seconds, reason in ((65, "caught_up"), (65.001, "returned")):
        rows = measure(STEADY_FLOW, [commit(5, 50), commit(seconds, 100)], 0, 120, slas=(sla(30, expire=60),))
        assert [state[1] for state in _states(rows)] == ["caught_up", reason]


def test_who_catches_up_when_the_grace_period_ends_has_caught_up(measure: Measure) -> None:
    commits = [commit(300, 0), commit(390, 3900)]
    (*_, before, after) = _states(measure(STEADY_FLOW, commits, 300, 420, window=30, slas=(sla(30, grace_period=89),)))
    assert ("grace_period_over", at(389)) == before[1:3]
    assert ("caught_up", at(390)) == after[1:3]
    assert ("caught_up", at(390)) == _states(
        measure(STEADY_FLOW, commits, 300, 420, window=30, slas=(sla(30, grace_period=90),))
    )[-1][1:3]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_any_flow_has_the_same_states_in_pieces(measure: Measure, seed: int) -> None:
    """Commits, rewinds and deletions of a group that is caught up now and then."""
    chance = random.Random(seed)
    times, reached = sorted(chance.sample(range(1, 600), 40)), (1, 1, 0.98, 0.5)
    offsets = [None if chance.random() < 0.04 else int(chance.choice(reached) * t) * 10 for t in times]
    commits = [commit(t, offset) for t, offset in zip(times, offsets, strict=True)]
    rules = (sla(30, within=5, grace_period=chance.choice([None, 100])),)
    rows: list[Row] = []
    for start in range(0, 600, 60):
        carried = (start, [row for row in rows if row["window_end"] == at(start)]) if start else None
        rows += measure(STEADY_FLOW, commits, start, start + 60, carried=carried, slas=rules)

    assert rows == measure(STEADY_FLOW, commits, 0, 600, slas=rules)


def test_supposed_rules_tell_when_a_group_would_have_been_steady(tmp_path: Path) -> None:
    def poll(seconds: float, offset: int) -> Row:
        return commit(seconds, offset, group="polled", source="snapshot")

    facts = {
        LOG_OFFSETS: STEADY_FLOW,
        COMMITTED_OFFSETS: [
            *(commit(t, o) for t, o in ((300, 0), (360, 3600), (420, 4200))),
            *(poll(t, o) for t, o in ((300, 0), (360, 3600), (420, 4200))),
            *(commit(t, 10, group="behind") for t in (310, 320, 330)),
        ],
    }
    job = replace(job_of(tmp_path, facts), interval=Interval(at(0), at(2_160)))
    (chunk,) = chunks_of(job)
    grid = grid_rows(chunk, scope_of(job))
    (found,) = supposed(chunk, steps(chunk, 60_000_000), grid, [SteadyRules(SteadyState(30_000), 30_000, 0)])

    zero = epoch_ms(at(0)) * 1_000
    groups = chunk.keys["group"].take(pa.array(grid.gp)).to_pylist()
    states = zip(found.state.tolist(), found.reason.tolist(), ((found.since - zero) / 1_000_000).tolist(), strict=True)
    runs: dict[tuple[str, str, str, float], float] = {}
    for group, start, (state, reason, since) in zip(groups, (grid.start - zero) / 1_000_000, states, strict=True):
        runs.setdefault((group, STATE_NAMES[state], REASONS[reason], since), float(start))
    assert runs == {
        ("behind", "bootstrapping", "first_commit", 310): 300,
        ("behind", "steady", "not_catching_up", 310 + 1_800): 2_100,
        ("billing", "bootstrapping", "first_commit", 300): 300,
        ("billing", "steady", "caught_up", 360): 360,
        ("polled", "bootstrapping", "first_commit", 300): 240,
        ("polled", "steady", "caught_up", 360): 300,
    }


def test_who_is_as_far_behind_as_allowed_has_caught_up(measure: Measure) -> None:
    """The oldest record that is not read was produced 10 s before the commit."""
    points = [point(0, 0), *record(340, 100), point(400, 101)]
    for within, state in ((10, "steady"), (9.999, "bootstrapping")):
        rows = measure(points, [commit(300, 0), commit(350, 100)], 300, 360, slas=(sla(30, within=within),))
        assert rows[-1]["states"][0]["state"] == state
