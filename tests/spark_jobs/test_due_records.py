"""Records that are due in a window, and those of them that are late, with a threshold of 30 s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.spark_jobs.conftest import Row, commit, point, record, sla, void

Measure = Callable[..., list[Row]]

TEN_PER_SECOND = [point(t, t * 10) for t in range(0, 361, 10)]


def _counts(rows: list[Row], name: str = "promise") -> list[tuple[int, int, int, int]]:
    """Due, late, late at least and at most of each row."""
    states = [s for r in rows for s in r["states"] if s["sla"] == name]
    return [tuple(s[f"records_{n}"] for n in ("due", "late", "late_low", "late_high")) for s in states]  # type: ignore[misc]


def test_records_of_a_dead_consumer_are_late_as_soon_as_they_are_due(measure: Measure) -> None:
    rows = measure(TEN_PER_SECOND, [commit(t, t * 10) for t in range(0, 121, 10)], 60, 360)
    # The last commit, at 120 s, read what was due until 150 s.
    assert _counts(rows) == [
        (600, 0, 0, 0),
        (600, 300, 300, 300),
        (600, 600, 600, 600),
        (600, 600, 600, 600),
        (600, 600, 600, 600),
    ]


def test_a_consumer_that_reads_in_time_has_no_late_records(measure: Measure) -> None:
    rows = measure(TEN_PER_SECOND, [commit(t, t * 10) for t in range(0, 361, 20)], 60, 360)
    assert _counts(rows) == [(600, 0, 0, 0)] * 5


def test_records_read_after_they_were_due_are_late_and_counted_once(measure: Measure) -> None:
    commits = [*(commit(t, t * 10) for t in range(0, 121, 10)), *(commit(t, t * 10) for t in range(240, 361, 10))]
    rows = measure(TEN_PER_SECOND, commits, 60, 360)
    # Read until 1200; records 1200 to 2100 were due from 150 s to 240 s, when the next commit read them all.
    assert [late for _, late, _, _ in _counts(rows)] == [0, 300, 600, 0, 0]


def test_a_record_read_exactly_when_it_is_due_is_in_time(measure: Measure) -> None:
    points = [*record(10, 0), *record(20, 1), point(120, 2)]
    rows = measure(points, [commit(0, 0), commit(40, 1), commit(51, 2)], 0, 120)
    assert _counts(rows) == [(2, 1, 1, 1), (0, 0, 0, 0)]


def test_records_that_retention_removed_unread_are_late(measure: Measure) -> None:
    points = [point(t, t * 10, log_start_offset=max(0, t * 10 - 200)) for t in range(0, 361, 10)]
    rows = measure(points, [commit(t, t * 10) for t in range(0, 61, 10)], 0, 240)
    assert [late for _, late, _, _ in _counts(rows)] == [0, 300, 600, 600]


def test_ranges_without_records_are_neither_due_nor_late(measure: Measure) -> None:
    rows = measure(TEN_PER_SECOND, [commit(0, 0), commit(60, 600)], 60, 180, ranges=[void(120, 700, 1000)])
    # Due from 60 s to 120 s: 300 to 900; from 120 s on: 900 to 1500.
    assert _counts(rows) == [(400, 100, 100, 100), (500, 500, 500, 500)]


def test_the_time_of_records_between_two_points_gives_bounds(measure: Measure) -> None:
    points = [point(t, t * 10) for t in range(0, 361, 20)]
    rows = measure(points, [commit(0, 0), commit(5, 50)], 60, 180)
    # Records 200 to 400 were produced between 20 s and 40 s: whether before 30 s is not known.
    assert _counts(rows)[0] == (600, 600, 400, 800)


def test_a_position_between_two_polls_gives_bounds(measure: Measure) -> None:
    polls = [commit(t, t * 10, source="snapshot") for t in (0, 60, 180)]
    rows = measure(TEN_PER_SECOND, polls, 60, 240)
    # Due from 90 s on: 600 and more, read somewhen between 60 s and 180 s.
    assert _counts(rows)[:2] == [(600, 300, 0, 300), (600, 600, 0, 600)]


def test_records_that_nobody_knows_to_be_due_yet_count_in_the_next_window(measure: Measure) -> None:
    points = [point(0, 0), point(20, 200), point(110, 1100), point(170, 1700), point(240, 2400)]
    rows = measure(points, [commit(0, 0), commit(10, 100)], 0, 240)
    assert [due for due, _, _, _ in _counts(rows)] == [200, 700, 600, 600]


def test_long_and_short_intervals_count_the_same(measure: Measure) -> None:
    commits = [commit(t, t * 8) for t in range(0, 300, 7)]
    points = [point(t, t * 10) for t in range(0, 361, 17)]
    whole = measure(points, commits, 0, 300)
    first = measure(points, commits, 0, 120)
    then = measure(points, commits, 120, 300, carried=(120, first[-1:]))
    assert _counts(whole) == _counts(first) + _counts(then)


def test_records_within_the_allowed_lag_are_not_late(measure: Measure) -> None:
    slas = (sla(30, allowed_lag=1),)
    points = [point(t, min(t, 60) * 10) for t in range(0, 361, 10)]  # produced until 60 s
    rows = measure(points, [commit(t, t * 10 - 1) for t in range(10, 71, 10)], 60, 240, slas=slas)
    assert [late for _, late, _, _ in _counts(rows)] == [0, 0, 0]


def test_each_sla_counts_by_its_own_threshold(measure: Measure) -> None:
    slas = (sla(30), replace(sla(90), name="later"))
    rows = measure(TEN_PER_SECOND, [commit(t, t * 10) for t in range(0, 121, 10)], 60, 300, slas=slas)
    assert [late for _, late, _, _ in _counts(rows)] == [0, 300, 600, 600]
    assert [late for _, late, _, _ in _counts(rows, "later")] == [0, 0, 300, 600]
