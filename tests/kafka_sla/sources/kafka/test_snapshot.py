"""What a snapshot of a real broker says, against what was really produced and committed."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from demo.broker import Cluster as Broker
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Interval, OffsetLookups, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, GROUP_STATES, LOG_OFFSETS, TOPIC_CONFIGS
from kafka_sla.sources.kafka.snapshot import Snapshot
from tests.kafka_sla.sources.kafka.traffic import (
    add_partitions,
    admin,
    commit,
    in_transactions,
    interval,
    joined,
    look,
    minutes,
    ms,
    points,
    produce,
    this_minute,
    topic,
    untrue,
)


def flow(seed: int, per_second: float, seconds: float) -> list[int]:
    chance, at, times = random.Random(seed), 0.0, []
    while at < seconds:
        times.append(ms(at))
        at += chance.expovariate(per_second)
    return times


def facts(seen: Snapshot) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in seen.log_offsets.to_pylist()}


def test_every_point_is_true(kafka: Broker) -> None:
    name, times = topic(kafka, 2), [flow(1, 20, 600), flow(2, 0.3, 600)]
    for partition, of_partition in enumerate(times):
        produce(kafka, name, of_partition, partition)

    seen = look(kafka, interval(0, 10), name)

    assert seen.notes == ()
    for partition, of_partition in enumerate(times):
        assert untrue(points(seen, partition=partition), of_partition) == []
        assert len(points(seen, "list_offsets", partition=partition)) > 11


@pytest.mark.slow
def test_a_long_interval_gives_the_rows_of_its_parts(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, flow(3, 10, 90 * 60))

    whole = facts(look(kafka, interval(0, 80), name))
    parts = [facts(look(kafka, interval(start, start + 5), name)) for start in range(0, 80, 5)]

    assert set().union(*parts) == whole


def test_rows_fit_their_tables(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1)])
    commit(kafka, f"g-{name}", name, 1)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)

    assert seen.log_offsets.schema == arrow_schema(LOG_OFFSETS)
    assert seen.committed_offsets.schema == arrow_schema(COMMITTED_OFFSETS)
    assert seen.group_states.schema == arrow_schema(GROUP_STATES)
    assert seen.topic_configs.schema == arrow_schema(TOPIC_CONFIGS)
    assert [t.num_rows for t in (seen.committed_offsets, seen.group_states, seen.topic_configs)] == [1, 1, 1]


def test_a_live_snapshot_observes_what_is_there_now(kafka: Broker) -> None:
    name = topic(kafka, 2, retention_ms="3600000000")
    now = epoch_ms(datetime.now(UTC))
    produce(kafka, name, [now - 2_000, now - 1_000])
    commit(kafka, f"g-{name}", name, 1)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)

    ends = {r["partition"]: r for r in seen.log_offsets.to_pylist() if r["source"] == "snapshot"}
    assert {p: (r["log_start_offset"], r["log_end_offset"]) for p, r in ends.items()} == {0: (0, 2), 1: (0, 0)}
    (position,) = seen.committed_offsets.to_pylist()
    assert (position["group"], position["partition"], position["committed_offset"]) == (f"g-{name}", 0, 1)
    assert position["at"] <= ends[0]["at"]
    (state,) = seen.group_states.to_pylist()
    assert (state["type"], state["state"], state["members"]) == ("classic", "Empty", 0)
    (config,) = seen.topic_configs.to_pylist()
    assert (config["partitions"], config["cleanup_policy"], config["retention_ms"]) == (2, "delete", 3_600_000_000)
    assert config["message_timestamp_type"] == "CreateTime"


def test_without_live_nothing_of_now_is_observed(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1), ms(2)])
    commit(kafka, f"g-{name}", name, 1)

    seen = look(kafka, interval(0, 5), name, groups=f"g-{name}")

    assert {row["source"] for row in seen.log_offsets.to_pylist()} == {"list_offsets", "record"}
    assert [t.num_rows for t in (seen.committed_offsets, seen.group_states, seen.topic_configs)] == [0, 0, 0]


def test_an_empty_interval_costs_next_to_nothing(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1)])

    seen = look(kafka, interval(60, 120), name)

    assert points(seen) == [(ms(3600 - 60 + 60 * minute), 1) for minute in range(62)]
    assert seen.offset_lookups < 10


def test_a_partition_without_records_has_points_at_zero(kafka: Broker) -> None:
    name = topic(kafka)

    seen = look(kafka, interval(0, 5), name)

    assert {offset for _, offset in points(seen)} == {0}


def test_a_new_partition_is_seen(kafka: Broker) -> None:
    name = topic(kafka)
    add_partitions(kafka, name, 2)
    produce(kafka, name, [ms(30)], partition=1)

    seen = look(kafka, interval(0, 5), name)

    assert untrue(points(seen, partition=1), [ms(30)]) == []
    assert (ms(30), 1) in points(seen, "record", partition=1)


def test_an_absent_topic_is_noted(kafka: Broker) -> None:
    seen = look(kafka, interval(0, 5), "no-such-topic", live=True)

    assert seen.log_offsets.num_rows == 0
    assert any("no topic matches" in note for note in seen.notes)


def test_nothing_is_said_about_the_future(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1)])

    seen = look(kafka, this_minute(), name)

    assert max(at for at, _ in points(seen)) <= epoch_ms(datetime.now(UTC))


def test_removed_records_make_no_untrue_points(kafka: Broker) -> None:
    """Before the first surviving record ListOffsets answers the log start, whatever time is asked."""
    name, times = topic(kafka), [ms(second) for second in range(300)]
    produce(kafka, name, times)
    gone = admin(kafka).delete_records([TopicPartition(name, 0, 150)])
    assert next(iter(gone.values())).result(120).low_watermark == 150

    seen = look(kafka, interval(0, 5), name)

    assert untrue(points(seen), times) == []
    assert min(points(seen)) == (ms(150), 150)


def test_a_compacted_topic_makes_no_untrue_points(kafka: Broker) -> None:
    """An answer is the first record that was kept; those compacted away may be younger than the asked time."""
    name = topic(
        kafka,
        cleanup_policy="compact",
        segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.01",
        segment_ms="100",
        max_compaction_lag_ms="100",
    )
    times = [ms(second) for second in range(300)]
    producer = Producer(kafka.client())
    for second, at in enumerate(times):
        producer.produce(name, key=str(second // 100), value=b"v", timestamp=at)
        producer.flush()
    time.sleep(0.3)
    producer.produce(name, key="last", value=b"v", timestamp=ms(301))
    producer.flush()
    times.append(ms(301))

    deadline = time.monotonic() + 180
    while len(points(seen := look(kafka, interval(0, 5), name), "record")) > 12 and time.monotonic() < deadline:
        time.sleep(0.5)

    assert (ms(99), 100) in points(seen, "record")
    assert untrue(points(seen), times) == []


def test_transactions_count_with_their_markers(kafka: Broker) -> None:
    name, now = topic(kafka), epoch_ms(datetime.now(UTC))
    producer = in_transactions(kafka, name)
    for outcome in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(name, b"x", timestamp=now - 1_000)
        producer.flush()
        outcome(20)

    seen = look(kafka, this_minute(), name, live=True)

    assert max(offset for _, offset in points(seen, "snapshot")) == 4


def test_a_marker_that_nobody_reads_is_not_waiting(kafka: Broker) -> None:
    """A group whose position stays before the last marker has read all, for as long as the topic is idle."""
    name, now = topic(kafka), epoch_ms(datetime.now(UTC))
    producer = in_transactions(kafka, name)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(name, b"x", timestamp=now)
        producer.commit_transaction(120)
    commit(kafka, f"g-{name}", name, 3)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)

    assert max(offset for _, offset in points(seen, "snapshot")) == 3
    assert max(offset for _, offset in points(seen)) == 3


def test_an_open_transaction_is_part_of_the_end(kafka: Broker) -> None:
    name = topic(kafka)
    producer = in_transactions(kafka, name)
    producer.begin_transaction()
    producer.produce(name, b"x")
    producer.flush()

    seen = look(kafka, this_minute(), name, live=True)
    producer.abort_transaction(120)

    assert [offset for _, offset in points(seen, "snapshot")] == [1]


def test_a_lagging_group_gets_the_exact_time_of_its_oldest_unread_record(kafka: Broker) -> None:
    name, over = topic(kafka), this_minute()
    backlog = [epoch_ms(over.start) - 1_234_567 + 1_000 * second for second in range(1_200)]
    produce(kafka, name, backlog)
    commit(kafka, f"g-{name}", name, 217)

    seen = look(kafka, over, name, groups=f"g-{name}")

    assert {(backlog[217], 217), (backlog[217], 218)} <= set(points(seen, "record"))
    assert untrue(points(seen), backlog) == []


def test_a_lagging_groups_backlog_has_points_back_to_its_position(kafka: Broker) -> None:
    name, over = topic(kafka), this_minute()
    backlog = [epoch_ms(over.start) - 7_200_000 + 1_000 * second for second in range(7_200)]
    produce(kafka, name, backlog)
    commit(kafka, f"g-{name}", name, 3_600)

    alone = points(look(kafka, over, name, groups="nobody"))
    found = points(look(kafka, over, name, groups=f"g-{name}"))

    inside = [(at, offset) for at, offset in found if backlog[3_600] < at < epoch_ms(over.start) - 60_000]
    assert len(inside) >= 3
    assert not set(inside) & set(alone)


def test_a_group_that_rewinds_gets_points_back_to_where_it_went(kafka: Broker) -> None:
    name, over = topic(kafka), this_minute()
    backlog = [epoch_ms(over.start) - 1_234_567 + 1_000 * second for second in range(1_200)]
    produce(kafka, name, backlog)
    commit(kafka, f"g-{name}", name, 1_200)
    commit(kafka, f"g-{name}", name, 10)

    found = points(look(kafka, over, name, groups=f"g-{name}"))

    assert (backlog[10], 10) in found


def test_a_group_that_is_silent_for_long_still_has_a_position(kafka: Broker) -> None:
    """It committed before the look-back, so that only its position now tells where it stood."""
    name = topic(kafka)
    produce(kafka, name, [ms(1), ms(2)])
    commit(kafka, f"g-{name}", name, 1)
    later = Interval(this_minute().start + minutes(120), this_minute().start + minutes(125))

    rows = look(kafka, later, name, groups=f"g-{name}", live=True).committed_offsets.to_pylist()

    assert {(row["at"], row["committed_offset"]) for row in rows} >= {(later.start - minutes(60), 1)}
    assert {row["source"] for row in rows} == {"poll_confirmed"}


def test_a_consumer_of_the_new_protocol_is_seen_with_its_type(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1)])
    consumer = joined(kafka, f"g-{name}", name, **{"group.protocol": "consumer"})
    message = consumer.poll(10)
    assert message is not None
    consumer.commit(message, asynchronous=False)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)
    consumer.close()

    states = [(r["type"], r["state"], r["members"]) for r in seen.group_states.to_pylist()]
    assert states == [("consumer", "Stable", 1)]
    assert [r["committed_offset"] for r in seen.committed_offsets.to_pylist()] == [1]


def test_members_of_a_classic_group_are_counted(kafka: Broker) -> None:
    name = topic(kafka)
    consumer = joined(kafka, f"g-{name}", name)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)
    consumer.close()

    assert [(r["state"], r["members"]) for r in seen.group_states.to_pylist()] == [("Stable", 1)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_member_is_seen_with_its_host_and_partitions(kafka: Broker, protocol: str) -> None:
    name = topic(kafka, 3)
    consumer = joined(kafka, f"g-{name}", name, **{"group.protocol": protocol, "client.id": "invoice-writer-1"})

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)
    consumer.close()

    (member,) = seen.group_members.to_pylist()
    assert (member["client"], member["host"], member["topic"]) == ("invoice-writer-1", "127.0.0.1", name)
    assert member["partitions"] == [0, 1, 2]
    (config,) = seen.topic_configs.to_pylist()
    assert len(config["leaders"]) == 3
    assert len(set(config["leaders"])) == 1


def test_a_member_without_partitions_is_seen_too(kafka: Broker) -> None:
    name = topic(kafka)
    settings = {**kafka.client(), "group.id": f"g-{name}"}
    consumers = [Consumer({**settings, "client.id": f"invoice-writer-{number}"}) for number in (1, 2)]
    for consumer in consumers:
        consumer.subscribe([name])
    seen: list[dict[str, Any]] = []
    while len(seen) < 2:
        for consumer in consumers:
            consumer.poll(0.5)
        seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True).group_members.to_pylist()
    for consumer in consumers:
        consumer.close()

    assert {("", ()), (name, (0,))} == {(member["topic"], tuple(member["partitions"])) for member in seen}


def test_a_share_group_has_a_lag_in_records_and_none_in_time_but_the_reason(kafka: Broker) -> None:
    name = topic(kafka)
    group = f"share-{name}"
    consumer = ShareConsumer({**kafka.client(), "group.id": group})
    consumer.subscribe([name])
    consumer.poll(3)
    before = look(kafka, this_minute(), name, groups=group, live=True)
    written = until_one_is_read(consumer, kafka, name)
    produce(kafka, name, [ms(6), ms(7), ms(8)])

    seen = look(kafka, this_minute(), name, groups=group, live=True)
    consumer.close()

    assert [(r["type"], r["members"]) for r in seen.group_states.to_pylist()] == [("share", 1)]
    assert seen.committed_offsets.num_rows == 0
    (lag,) = seen.share_lags.to_pylist()
    assert (lag["group"], lag["topic"], lag["partition"]) == (group, name, 0)
    assert (lag["log_end_offset"], lag["records_lag"]) == (written + 3, 3)
    assert 0 <= lag["start_offset"] <= written, "the broker keeps it later than it counts"
    assert (lag["unknown_reason"], "single records in any order" in lag["no_time_lag"]) == (None, True)
    assert {(r["records_lag"], r["unknown_reason"]) for r in before.share_lags.to_pylist()} <= {
        (None, "the group has not read from this partition yet")
    }, "a group that has just begun may have no partitions yet"


def until_one_is_read(consumer: ShareConsumer, broker: Broker, name: str) -> int:
    """Write one record after the other until the group, which begins at the end, reads them; answers how many."""
    for written in range(1, 60):
        produce(broker, name, [ms(1)])
        if consumer.poll(1):
            while consumer.poll(2):
                pass
            consumer.commit_sync()
            return written
    raise AssertionError("the share group read nothing")


def test_a_spent_budget_is_noted_and_leaves_true_points(kafka: Broker) -> None:
    name, times = topic(kafka), flow(5, 5, 300)
    produce(kafka, name, times)

    full = look(kafka, interval(0, 5), name)
    poor = look(kafka, interval(0, 5), name, offset_lookups=OffsetLookups(max_per_hour=12))

    assert poor.offset_lookups < full.offset_lookups
    assert any("left wide" in note for note in poor.notes)
    assert untrue(points(poor), times) == []


def test_two_clusters_are_read_apart(kafka: Broker, kafka3: Broker) -> None:
    first, second = topic(kafka), topic(kafka3, 6)
    produce(kafka, first, [ms(1)])
    for partition in range(6):
        produce(kafka3, second, [ms(1)] * (partition + 1), partition)

    assert look(kafka, interval(0, 5), second).log_offsets.num_rows == 0
    seen = look(kafka3, interval(0, 5), second)
    assert [max(offset for _, offset in points(seen, partition=p)) for p in range(6)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_exact_times_are_read_whatever_the_compression(kafka: Broker, codec: str) -> None:
    name, over = topic(kafka), this_minute()
    backlog = [epoch_ms(over.start) - 1_234_567 + 1_000 * second for second in range(200)]
    produce(kafka, name, backlog, **{"compression.type": codec, "linger.ms": 500})
    commit(kafka, f"g-{name}", name, 137)

    assert (backlog[137], 137) in points(look(kafka, over, name, groups=f"g-{name}"), "record")


def test_log_append_time_is_the_brokers(kafka: Broker) -> None:
    name = topic(kafka, message_timestamp_type="LogAppendTime")
    before = epoch_ms(datetime.now(UTC))
    produce(kafka, name, [ms(1)])

    (at,) = {at for at, _ in points(look(kafka, this_minute(), name), "record")}
    assert before <= at <= epoch_ms(datetime.now(UTC))
