"""Ranges of offsets, against records that are known."""

from __future__ import annotations

import random
from itertools import pairwise

from kafka_sla.sources.kafka.timeline.offset_ranges import MOST_RANGES, Content, Range

TOLERANCE = 250


def content(records: list[tuple[int, int]], voids: list[tuple[int, int]], reached: int) -> Content:
    return Content(reached, 0, records=records, voids=voids)


def in_order(count: int, every: int) -> list[tuple[int, int]]:
    return [(offset, 1_000_000 + every * offset) for offset in range(count)]


def test_a_steady_flow_needs_few_ranges() -> None:
    records = in_order(200, 50)

    found = content(records, [], 200).ranges(0, TOLERANCE)

    assert len(found) <= 10_000 / (4 * TOLERANCE)
    assert [found[0].first, found[-1].end] == [0, 200]


def test_one_late_record_among_many_has_a_range_of_its_own() -> None:
    records = in_order(64, 10)
    records[40] = (40, 400_000)

    found = content(records, [], 64).ranges(0, TOLERANCE)

    assert Range(40, 41, 1, 400_000, 400_000) in found
    assert len(found) < 15


def test_ranges_hold_every_record_and_no_void_holds_what_compaction_removed_whatever_the_flow() -> None:
    luck = random.Random(5)
    for _ in range(200):
        count = luck.randrange(1, 120)
        void = {offset for offset in range(count) if luck.random() < luck.choice([0, 0.1, 0.6])}
        hole = {offset for offset in range(count) if luck.random() < luck.choice([0, 0.3])}
        records = [
            (o, luck.choice([1_000, 1_700, luck.randrange(10**6)]) + o) for o in range(count) if o not in void | hole
        ]

        found = content(records, [(o, o + 1) for o in sorted(void - hole)], count).ranges(0, TOLERANCE)

        assert all(a.end <= b.first for a, b in pairwise(found))
        assert {o for one in found if one.records == 0 for o in range(one.first, one.end)} == void - hole
        for offset, stamp in records:
            (one,) = [one for one in found if one.first <= offset < one.end]
            assert one.records and one.earliest is not None and one.latest is not None
            assert one.earliest <= stamp <= one.latest
        assert sum(one.records or 0 for one in found) == len(records)


def test_what_compaction_removed_among_records_out_of_order_was_not_read() -> None:
    records = [(0, 10_000), (1, 1_000), (3, 1_001), (4, 20_000)]

    read = content(records, [], 5)
    read.backwards = True

    after = [Range(3, 4, 1, 1_001, 1_001), Range(4, 5, 1, 20_000, 20_000)]
    assert read.ranges(0, TOLERANCE) == [Range(0, 1, 1, 10_000, 10_000), Range(1, 3), *after]


def test_records_without_a_timestamp_were_not_read() -> None:
    read = content([(0, 10_000), (1, -1), (2, -1), (3, 20_000)], [], 4)

    known = [Range(0, 1, 1, 10_000, 10_000), Range(1, 2), Range(2, 3), Range(3, 4, 1, 20_000, 20_000)]
    assert read.ranges(0, TOLERANCE) == known


def test_a_wild_flow_is_told_more_coarsely_instead_of_record_by_record() -> None:
    luck = random.Random(6)
    records = [(offset, luck.randrange(10**7)) for offset in range(3 * MOST_RANGES)]

    assert len(content(records, [], len(records)).ranges(0, TOLERANCE)) <= MOST_RANGES


def test_thousands_of_transactions_of_one_record_each_have_a_range_for_each_marker() -> None:
    count = MOST_RANGES + 2
    records = [(offset, 1_000_000 + offset) for offset in range(0, count, 2)]

    found = content(records, [(o, o + 1) for o in range(1, count, 2)], count).ranges(0, TOLERANCE)

    assert [one.records for one in found] == [1, 0] * (count // 2)
