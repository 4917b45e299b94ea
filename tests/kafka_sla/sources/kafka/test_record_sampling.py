"""Windows for which points do not suffice are read from a real broker: disorder, transactions, clocks ahead."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer

from demo.broker import Cluster as Broker
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Cluster, Connection, Interval, epoch_ms
from kafka_sla.model.tables import RECORD_RANGES
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.record_sampling import Contents, OffsetSpan
from kafka_sla.sources.kafka.snapshot import Snapshot
from tests.kafka_sla.sources.kafka.traffic import admin, commit, in_transactions, look, produce, this_minute, topic

Row = dict[str, Any]


def ranges(seen: Snapshot) -> list[Row]:
    """What is told of ranges, in order; times in ms."""
    rows = [
        {"first": row["first_offset"], "end": row["end_offset"], "records": row["records"]}
        | {name: row[name] and epoch_ms(row[name]) for name in ("earliest", "latest")}
        for row in seen.record_ranges.to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["first"], row["end"]))


def assert_within(told: list[Row], times: list[int]) -> None:
    """Each of the records, given by their times, lies in a range, and in none that denies its time."""
    for offset, stamp in enumerate(times):
        holding = [row for row in told if row["first"] <= offset < row["end"]]
        assert holding, offset
        assert all(row["earliest"] <= stamp <= row["latest"] for row in holding), (offset, stamp, holding)


@pytest.fixture
def over() -> Interval:
    """Five minutes from the current one on: what a test does lies inside, also when it takes long; unless it does, in
    one window. So do the last two seconds."""
    if not 3 <= (second := datetime.now(UTC).second) < 50:
        time.sleep((63 - second) % 60)
    return this_minute()


def just_now() -> int:
    return epoch_ms(datetime.now(UTC))


def half_a_minute_ago(over: Interval, length: int) -> int:
    """The first of times that fill so many ms, unless the interval's start would leave few of them on one side: few may
    be in order, and need no range."""
    begin, edge = just_now() - 30_000, epoch_ms(over.start)
    few = 2_000
    return begin - 2 * few if 0 < edge - begin < few or 0 < begin + length - edge < few else begin


def seen_by_a_group(kafka: Broker, name: str, position: int, over: Interval) -> Snapshot:
    commit(kafka, f"g-{name}", name, position)
    return look(kafka, over, name, groups=f"g-{name}", live=True)


def transactions(kafka: Broker, name: str, *outcomes: tuple[int, str], transactional_id: str = "") -> Producer:
    """So many records in each transaction, which is then committed, aborted or left open."""
    producer = in_transactions(kafka, transactional_id or name)
    for count, outcome in outcomes:
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(name, b"x", timestamp=just_now())
        producer.flush()
        if outcome != "open":
            getattr(producer, f"{outcome}_transaction")(120)
    return producer


def test_what_aborted_transactions_wrote_and_their_markers_are_no_records(kafka: Broker, over: Interval) -> None:
    name = topic(kafka)
    transactions(kafka, name, (2, "commit"), (3, "abort"), (1, "commit"))

    seen = seen_by_a_group(kafka, name, 1, over)

    told = {(row["first"], row["end"], row["records"]) for row in ranges(seen)}
    assert told == {(0, 2, 2), (2, 7, 0), (7, 8, 1), (8, 9, 0)}
    assert seen.record_ranges.schema == arrow_schema(RECORD_RANGES)
    assert seen.notes == ()


def test_records_of_an_open_transaction_are_not_yet_records(kafka: Broker, over: Interval) -> None:
    name = topic(kafka)
    producer = transactions(kafka, name, (2, "commit"), (1, "open"))

    seen = seen_by_a_group(kafka, name, 1, over)
    producer.abort_transaction(120)

    assert [(row["first"], row["end"], row["records"], row["latest"]) for row in ranges(seen)][-1] == (3, 4, None, None)
    assert seen.notes == ()


def test_what_lies_behind_an_open_transaction_is_read(kafka: Broker, over: Interval) -> None:
    """Plain records, a transaction that is aborted and one that is committed, and one more that is open."""
    name = topic(kafka)
    first = transactions(kafka, name, (2, "open"))
    times = [just_now() - 2_000 + 10 * index for index in range(5)]
    produce(kafka, name, times)
    transactions(kafka, name, (1, "abort"), (3, "commit"), transactional_id=f"{name}-between")
    last = transactions(kafka, name, (1, "open"), transactional_id=f"{name}-last")

    seen = seen_by_a_group(kafka, name, 0, over)
    told = ranges(seen)
    for producer in (first, last):
        producer.abort_transaction(120)

    known = {(row["first"], row["end"], row["records"]) for row in told}
    assert known == {(0, 2, None), (2, 7, 5), (7, 9, 0), (9, 12, 3), (12, 13, 0), (13, 14, None)}
    (plain,) = [row for row in told if row["first"] == 2]
    assert (plain["earliest"], plain["latest"]) == (times[0], times[-1])
    assert seen.notes == ()


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_records_of_two_clocks_lie_in_the_ranges_told(kafka: Broker, over: Interval, codec: str) -> None:
    name, begin = topic(kafka), half_a_minute_ago(over, 20_650)
    times = [begin + 50 * index + 700 * (index % 2) for index in range(400)]
    produce(kafka, name, times, 0, **{"compression.type": codec})

    seen = seen_by_a_group(kafka, name, 200, over)
    told = ranges(seen)

    assert (seen.commits["committed_offset"].to_pylist(), seen.notes) == ([200], ())
    assert [row for row in told if row["records"] is None] == []
    assert_within(told, times)
    assert len(told) < 60


@pytest.mark.parametrize("before", [0, 1])
def test_batches_that_are_larger_than_a_sample_are_read_in_every_partition(
    kafka: Broker, over: Interval, before: int
) -> None:
    """Of the partitions that a request names, only the first gets a batch beyond the limit; of one behind a small one
    only what is read at the window's end tells that its times run backwards."""
    name, begin = topic(kafka, partitions=3), half_a_minute_ago(over, 15_690)
    times = [begin + 10 * index + 700 * (index % 2) for index in range(1_500)]
    for partition in range(3):
        produce(kafka, name, times[:before], partition)
        produce(kafka, name, times[before:], partition, **{"linger.ms": 500})
        commit(kafka, f"g-{name}", name, 1_500, partition)

    seen = look(kafka, over, name, groups=f"g-{name}", live=True)

    told = [row for row in seen.record_ranges.to_pylist() if row["records"]]
    offsets = {(row["partition"], at) for row in told for at in range(row["first_offset"], row["end_offset"])}
    assert offsets == {(partition, at) for partition in range(3) for at in range(1_500)}
    assert seen.notes == ()


def test_a_window_whose_samples_are_in_order_is_read_where_another_one_of_the_partition_is_not(
    kafka: Broker, over: Interval
) -> None:
    """Each record is larger than a sample: of a window its first and its last one are seen."""
    name, edge = topic(kafka), epoch_ms(over.start)
    times = [edge + after for after in (-20_000, -19_000, -25_000, 100, 2_500, 500, 2_600, 2_700)]
    producer = Producer({**kafka.client(), "batch.num.messages": 1})
    for stamp in times:
        producer.produce(name, b"x" * 20_000, timestamp=stamp)
    assert producer.flush(120) == 0

    seen = seen_by_a_group(kafka, name, len(times), over)

    assert_within(ranges(seen), times)
    assert seen.notes == ()


def test_beside_disorder_nothing_is_read_of_a_window_without_a_sample(kafka: Broker) -> None:
    """What it would cost is not known: here 2 MB, a batch an answer."""
    name, now = topic(kafka), just_now()
    times = [now + 100 * index - 700 * (index % 2) for index in range(60)]
    producer = Producer({**kafka.client(), "batch.num.messages": 1})
    for offset, stamp in enumerate(times):
        producer.produce(name, b"x" * (10 if offset < 40 else 100_000), timestamp=stamp)
    assert producer.flush(120) == 0
    reader, (leader,) = TopicPartition(name, 0), admin(kafka).list_topics(name, 120).brokers
    spans = [OffsetSpan(reader, now + end, now, *offsets, offsets[1]) for end, offsets in ((1, (0, 40)), (2, (40, 60)))]

    with Client(Cluster("test", "kafka_test"), Connection("kafka_test", extra=dict(kafka.client()))) as client:
        contents = Contents(client, {reader: leader}.get, 250)
        told = [one.range for one in contents.of(spans, 1)]

    assert sum(one.records or 0 for one in told) == 40
    assert contents.offset_lookups == 1
    assert contents.notes() == [
        "1 windows were not sampled, so that timestamps are taken to run in order there: the offset lookups were spent"
    ]


def test_disorder_at_the_end_of_a_window_in_which_nobody_read_is_noticed(kafka: Broker, over: Interval) -> None:
    """The window before the interval: only its records tell, and those of its first sample are in order."""
    name, edge = topic(kafka), epoch_ms(over.start)
    ordered = [edge - 30_000 + 10 * index for index in range(600)]
    mixed = [edge - 20_000 + 50 * index + 700 * (index % 2) for index in range(100)]
    times = [*ordered, *mixed, edge + 100]
    producer = Producer({**kafka.client(), "batch.num.messages": 20})
    for stamp in times:
        producer.produce(name, b"x" * 100, timestamp=stamp)
    assert producer.flush(120) == 0

    assert_within(ranges(seen_by_a_group(kafka, name, len(times), over)), times)


def test_of_a_window_in_order_nothing_is_told(kafka: Broker, over: Interval) -> None:
    name, now = topic(kafka), just_now()
    produce(kafka, name, [now - 400 + index for index in range(400)])

    seen = seen_by_a_group(kafka, name, 200, over)

    assert ranges(seen) == []
    assert seen.notes == ()


def test_a_clock_that_is_ahead_of_the_readers_is_noticed(kafka: Broker, over: Interval) -> None:
    name, now = topic(kafka), just_now()
    produce(kafka, name, [now + 20_000 + index for index in range(5)])

    told = ranges(seen_by_a_group(kafka, name, 5, over))

    assert {(row["first"], row["end"], row["records"]) for row in told} == {(0, 5, 5)}


def test_a_window_that_is_too_large_to_be_read_is_told_to_be_unread(kafka: Broker, over: Interval) -> None:
    name, now = topic(kafka), just_now()
    producer = Producer({**kafka.client(), "batch.num.messages": 1})
    for index in range(60):
        producer.produce(name, b"x" * 100_000, timestamp=now - 1_000 + 10 * index - 500 * (index % 2))
    assert producer.flush(120) == 0

    seen = seen_by_a_group(kafka, name, 50, over)

    assert (ranges(seen)[-1]["end"], ranges(seen)[-1]["records"], ranges(seen)[-1]["earliest"]) == (60, None, None)
    assert any("too large to be read" in note for note in seen.notes)
