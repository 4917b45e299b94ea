"""Positions that consumers keep elsewhere, as facts: a replication flow's that is busy, and one's that is idle."""

from __future__ import annotations

from kafka_sla.model.entities import KeptPosition
from kafka_sla.sources.kafka.committed_positions import Reader
from kafka_sla.sources.kafka.external_positions import kept_rows, kept_tracks, standing
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

BUSY, IDLE, GONE = (TopicPartition("orders", partition) for partition in (0, 1, 2))
THERE = {BUSY: 7, IDLE: 3}
"""Partitions and their log ends."""


def kept(tp: TopicPartition, at_ms: int, offset: int | None) -> KeptPosition:
    return KeptPosition("A->B", *tp, at_ms, offset, "mm2_offsets")


POSITIONS = [kept(BUSY, 2_000, 7), kept(BUSY, 1_200, 5), kept(IDLE, 10, 3), kept(GONE, 1_500, 9)]


def test_a_position_of_the_time_asked_for_keeps_its_time_and_an_older_one_is_told_from_its_beginning() -> None:
    assert list(kept_rows(POSITIONS, THERE, since=1_000)) == [
        ("A->B", "orders", 0, 2_000, 7, "mm2_offsets"),
        ("A->B", "orders", 0, 1_200, 5, "mm2_offsets"),
        ("A->B", "orders", 1, 1_000, 3, "poll_confirmed"),
    ]


def test_a_position_beyond_the_log_end_is_kept_as_what_it_is() -> None:
    positions = [kept(BUSY, 2_000, 10**15), kept(IDLE, 10, 4)]
    assert [row[-2:] for row in kept_rows(positions, THERE, since=1_000)] == [
        (10**15, "beyond_log_end"),
        (4, "beyond_log_end"),
    ]


def test_a_position_that_was_deleted_before_is_none() -> None:
    assert list(kept_rows([kept(IDLE, 10, None)], THERE, since=1_000)) == []


def test_tracks_go_by_time_and_know_the_true_one() -> None:
    tracks = kept_tracks(POSITIONS, THERE)

    assert [tracks[Reader("A->B", BUSY)].at(moment) for moment in (1_199, 1_200, 3_000)] == [None, 5, 7]
    assert tracks[Reader("A->B", IDLE)].at(10) == 3
    assert Reader("A->B", GONE) not in tracks


def test_only_a_reader_that_has_not_moved_since_is_told_to_stand_where_it_is_now() -> None:
    tracks = kept_tracks([*POSITIONS, kept(BUSY, 2_500, None)], THERE)

    assert list(standing(tracks, since=1_000, now=9_000)) == [("A->B", "orders", 1, 9_000, 3, "poll_confirmed")]
