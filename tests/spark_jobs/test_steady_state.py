"""`steady_state`: what begins and what ends bootstrapping."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SteadyState, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, STEADY_STATE, Table
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs.numeric.arrays import FAR
from kafka_sla.spark_jobs.single_pass import measure_chunk, scope_of
from kafka_sla.spark_jobs.steady_state import rows as steady_rows
from kafka_sla.spark_jobs.steady_state import supposed
from kafka_sla.spark_jobs.windows.segments import steps
from tests.spark_jobs.conftest import Row, at, commit, point, record, sla
from tests.spark_jobs.tasks import chunks_of, files

Measure = Callable[..., list[Row]]

STEADY_FLOW = [point(t, t * 10) for t in range(0, 601, 10)]


def _states(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(s["state"], s["reason"], s["since"], s["steady_whole_window"]) for r in rows for s in r["states"]]


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


def test_a_rewind_begins_bootstrapping_until_caught_up(measure: Measure) -> None:
    rows = measure(STEADY_FLOW, [commit(5, 50), commit(130, 1300), commit(190, 0), commit(250, 2500)], 0, 360)
    assert _states(rows)[3] == ("bootstrapping", "rewind", at(190), False)
    assert _states(rows)[4] == ("steady", "caught_up", at(250), False)


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


def test_why_a_group_bootstraps_is_carried(measure: Measure) -> None:
    commits = [commit(5, 50), commit(130, 1300), commit(190, 0), commit(310, 10)]
    first = measure(STEADY_FLOW, commits, 0, 240)
    second = measure(STEADY_FLOW, commits, 240, 360, carried=(240, first))
    assert _states(second) == [("bootstrapping", "rewind", at(190), False)] * 2


def test_who_goes_back_again_in_the_next_piece_is_stuck(measure: Measure) -> None:
    commits = [commit(5, 50), commit(130, 1300), commit(190, 0), commit(310, 100), commit(320, 0)]
    first = measure(STEADY_FLOW, commits, 0, 240)
    second = measure(STEADY_FLOW, commits, 240, 360, carried=(240, first))
    assert _states(second) == [
        ("bootstrapping", "rewind", at(190), False),
        ("steady", "rewound_again", at(320), False),
    ]


@pytest.mark.parametrize(
    ("again", "state"), [(289.999, ("rewound_again", at(289.999))), (290, ("grace_period_over", at(290)))]
)
def test_who_goes_back_again_after_the_grace_period_is_stuck_no_more(
    measure: Measure, again: float, state: tuple[str, datetime]
) -> None:
    commits = [commit(5, 50), commit(130, 1300), commit(190, 0), commit(280, 50), commit(again, 0)]
    assert _states(measure(STEADY_FLOW, commits, 0, 360, slas=(sla(30, grace_period=100),)))[-1][1:3] == state


def test_an_sla_that_is_new_has_nothing_to_go_on_with(measure: Measure) -> None:
    commits, new = [commit(t, t * 10) for t in (5, 50, 70)], replace(sla(30), name="new")
    first = measure(STEADY_FLOW, commits, 0, 60)
    (row,) = measure(STEADY_FLOW, commits, 60, 120, carried=(60, first), slas=(sla(30), new))
    assert {s["sla"]: (s["state"], s["since"]) for s in row["states"]} == {
        "promise": ("steady", at(5)),
        "new": ("steady", at(70)),
    }


def test_records_over_the_threshold_are_counted_exactly(measure: Measure) -> None:
    commits = [commit(0, 0), commit(40, 400)]
    rows = measure(STEADY_FLOW, commits, 0, 60, slas=(sla(30), sla(10)))
    assert [s["records_over_threshold"] for s in rows[0]["states"]] == [100, 300]


def test_bounds_of_records_over_the_threshold_hold_the_segments_that_may_be_and_those_that_surely_are(
    measure: Measure,
) -> None:
    produced = [point(0, 0), point(20, 200), point(30, 300), point(50, 500), point(300, 500)]
    commits = [commit(0, 0), commit(55, 500)]
    (row, *_) = measure(produced, commits, 0, 60, slas=(sla(30),))
    (state,) = row["states"]
    assert state["records_over_threshold"] == 250
    assert (state["records_over_threshold_low"], state["records_over_threshold_high"]) == (0, 300)


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


def poisoned(seconds: int, since: int = 60) -> list[Row]:
    """It keeps up until it meets a record that it cannot read: it reads 20 more, goes back, and commits that."""
    good = [commit(t, t * 10) for t in range(5, since, 5)]
    offsets = [since * 10 - 50, since * 10 - 30]
    return good + [commit(t, offsets[t // 5 % 2]) for t in range(since, seconds, 5)]


def test_a_consumer_that_goes_back_and_never_gets_past_is_excluded_once_only(measure: Measure) -> None:
    for grace_period in (None, 600):
        rows = measure(STEADY_FLOW, poisoned(540), 0, 600, slas=(sla(30, within=1, grace_period=grace_period),))
        assert _states(rows)[1:] == [
            ("steady", "rewound_again", at(80), False),
            *[("steady", "rewound_again", at(80), True)] * 8,
        ]
        assert {s["rewound_from"] for r in rows[2:] for s in r["states"]} == {570}


def test_a_stuck_consumer_is_one_in_later_pieces_too(measure: Measure) -> None:
    facts, promise = [*poisoned(400), *(commit(t, t * 10) for t in range(400, 540, 5))], (sla(30, grace_period=200),)
    whole, rows = measure(STEADY_FLOW, facts, 0, 540, slas=promise), list[Row]()
    for start in range(0, 540, 60):
        carried = (start, [row for row in rows if row["window_end"] == at(start)]) if rows else None
        rows += measure(STEADY_FLOW, facts, start, start + 60, carried=carried, slas=promise)
    assert rows == whole
    assert whole[-1]["states"][0]["rewound_from"] is None


def test_a_group_that_never_caught_up_keeps_its_first_excuse_and_its_grace(measure: Measure) -> None:
    stuck = [commit(300 + t, [0, 20][t // 5 % 2]) for t in range(0, 240, 5)]
    rows = measure(STEADY_FLOW, stuck, 300, 540)
    assert set(_states(rows)) == {("bootstrapping", "first_commit", at(300), False)}
    rows = measure(STEADY_FLOW, stuck, 300, 540, slas=(sla(30, grace_period=90),))
    assert _states(rows)[-1] == ("steady", "grace_period_over", at(390), True)


def test_a_rewind_after_it_got_past_where_it_was_is_a_new_beginning(measure: Measure) -> None:
    commits = [commit(5, 50), commit(100, 1000), commit(110, 500), commit(120, 1200), commit(200, 700)]
    assert _states(measure(STEADY_FLOW, commits, 0, 240))[-1] == ("bootstrapping", "rewind", at(200), False)


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
    for grace_period, reason in ((90, "caught_up"), (89, "grace_period_over")):
        rows = measure(STEADY_FLOW, commits, 300, 420, slas=(sla(30, grace_period=grace_period),))
        assert _states(rows)[-1][1:3] == (reason, at(300 + grace_period))


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
    (chunk,) = chunks_of(job_of(tmp_path, facts))
    (found,) = supposed(chunk, steps(chunk, 60_000_000), [SteadyState(30_000)])

    zero = epoch_ms(at(0)) * 1_000
    spans = {chunk.keys["group"][int(gp)].as_py(): number for number, gp in enumerate(found.gp)}
    assert list(spans) == ["behind", "billing", "polled"]
    assert (found.began - zero).tolist() == [310_000_000, 300_000_000, 300_000_000]
    assert (found.since - zero).tolist() == [310_000_000, 300_000_000, 299_999_999]
    assert found.steady_at.tolist() == [FAR, zero + 360_000_000, zero + 360_000_000]
    assert found.steady_within.tolist() == [FAR, zero + 360_000_000, zero + 359_999_999]
    assert found.first_commit.tolist() == [True] * 3


def counted(rows: list[Row]) -> list[tuple[int, int, int]]:
    """Of the first row, by SLA: records over the threshold as estimated, for certain, and at most."""
    names = ("records_over_threshold", "records_over_threshold_low", "records_over_threshold_high")
    return [tuple(state[name] for name in names) for state in rows[0]["states"]]  # type: ignore[misc]


def test_records_whose_bound_is_the_threshold_keep_it(measure: Measure) -> None:
    """Records 0 to 199 waited 20 to 55 s, 200 to 299 10 to 35 s, the others at most 25 s."""
    produced = [point(0, 0), point(20, 200), point(30, 300), point(50, 500), point(300, 500)]
    commits = [commit(0, 0), commit(40, 0), commit(55, 500)]
    rows = measure(produced, commits, 0, 60, slas=(sla(35), sla(34.999), sla(20), sla(19.999)))
    assert [(low, high) for _, low, high in counted(rows)] == [(0, 200), (0, 300), (0, 500), (200, 500)]


def test_records_whose_time_is_not_known_may_be_over_the_threshold_and_are_not_estimated_to_be(
    measure: Measure,
) -> None:
    assert counted(measure([], [commit(1, 0), commit(20, 100)], 0, 60)) == [(0, 0, 100)]


def test_who_is_as_far_behind_as_allowed_has_caught_up(measure: Measure) -> None:
    """The oldest record that is not read was produced 10 s before the commit."""
    points = [point(0, 0), *record(340, 100), point(400, 101)]
    for within, state in ((10, "steady"), (9.999, "bootstrapping")):
        rows = measure(points, [commit(300, 0), commit(350, 100)], 300, 360, slas=(sla(30, within=within),))
        assert rows[-1]["states"][0]["state"] == state
