from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kafka_sla.model.entities import Interval

START = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def test_pieces_of_an_interval_follow_each_other_and_the_last_one_may_be_shorter() -> None:
    pieces = list(Interval(START, START + 2.5 * DAY).pieces(DAY))

    assert [START, START + DAY, START + 2 * DAY] == [piece.start for piece in pieces]
    assert [START + DAY, START + 2 * DAY, START + 2.5 * DAY] == [piece.end for piece in pieces]


def test_an_interval_that_is_short_enough_is_its_only_piece() -> None:
    assert [Interval(START, START + DAY)] == list(Interval(START, START + DAY).pieces(7 * DAY))
