"""Every commit that a client made is in the snapshot, and nothing else is."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition

from demo.broker import Cluster as Broker
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Interval, Patterns, floor_time
from kafka_sla.pipeline import steps
from kafka_sla.sources.kafka.snapshot import Snapshot
from tests.kafka_sla.sources.kafka.traffic import (
    admin,
    commit,
    in_transactions,
    joined,
    look,
    ms,
    produce,
    this_minute,
    topic,
)


def decoded(seen: Snapshot) -> list[tuple[str, str, int, int | None]]:
    """Group, topic, partition and offset (None: deleted) of each commit, in the order of the log."""
    assert seen.unreadable_commits.num_rows == 0
    names = ("group", "topic", "partition", "committed_offset")
    return [tuple(row[name] for name in names) for row in seen.commits.to_pylist()]  # type: ignore[misc]


def transactional(kafka: Broker, source: str) -> tuple[Producer, Consumer]:
    """Who writes in transactions, and who reads the topic for it in the group of the topic's name."""
    return in_transactions(kafka, source), joined(kafka, f"g-{source}", source)


def send_offset(kafka: Broker, producer: Producer, consumer: Consumer, source: str, offset: int) -> None:
    """Begins a transaction that writes a record elsewhere and commits this offset of the source."""
    producer.begin_transaction()
    producer.produce(topic(kafka), b"x")
    producer.send_offsets_to_transaction([TopicPartition(source, 0, offset)], consumer.consumer_group_metadata(), 20)


def coordinated(kafka: Broker, source: str) -> int:
    """What the coordinator says of the group, once its transactions have ended there, which is after who ended them was
    answered."""
    consumer = Consumer({**kafka.client(), "group.id": f"g-{source}"})
    (known,) = consumer.committed([TopicPartition(source, 0)], 120)
    consumer.close()
    return int(known.offset)


def test_commits_are_read_as_the_client_made_them(kafka: Broker) -> None:
    name = topic(kafka, 2)
    made = [(f"g-{name}", name, partition, offset) for offset in (3, 7, 5) for partition in (0, 1)]
    for group, _, partition, offset in made:
        commit(kafka, group, name, offset, partition)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}")

    assert decoded(seen) == made
    times = seen.commits["at"].to_pylist()
    assert times == sorted(times)
    assert this_minute().start - timedelta(minutes=1) <= times[0] <= times[-1] <= datetime.now(UTC)


def test_only_the_asked_groups_and_topics_are_kept(kafka: Broker) -> None:
    mine, other = topic(kafka), topic(kafka)
    commit(kafka, f"g-{mine}", mine, 1)
    commit(kafka, f"g-{mine}", other, 2)
    commit(kafka, f"h-{mine}", mine, 3)

    assert decoded(look(kafka, this_minute(), mine, groups=f"g-{mine}")) == [(f"g-{mine}", mine, 0, 1)]


def test_commits_of_consumers_of_the_new_protocol_are_read(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1), ms(2)])
    consumer = joined(kafka, f"g-{name}", name, **{"group.protocol": "consumer"})
    message = consumer.poll(10)
    assert message is not None
    consumer.commit(message, asynchronous=False)
    consumer.close()

    assert decoded(look(kafka, this_minute(), name, groups=f"g-{name}")) == [(f"g-{name}", name, 0, 1)]


def test_a_deleted_group_leaves_a_tombstone(kafka: Broker) -> None:
    name = topic(kafka)
    commit(kafka, f"g-{name}", name, 4)
    admin(kafka).delete_consumer_groups([f"g-{name}"])[f"g-{name}"].result(120)

    found = decoded(look(kafka, this_minute(), name, groups=f"g-{name}"))

    assert found == [(f"g-{name}", name, 0, 4), (f"g-{name}", name, 0, None)]


def test_commits_of_aborted_transactions_do_not_count(kafka: Broker) -> None:
    source = topic(kafka)
    produce(kafka, source, [ms(1), ms(2)])
    producer, consumer = transactional(kafka, source)
    for offset, outcome in ((1, producer.abort_transaction), (2, producer.commit_transaction)):
        send_offset(kafka, producer, consumer, source, offset)
        outcome(20)
    consumer.close()

    assert coordinated(kafka, source) == 2
    assert decoded(look(kafka, this_minute(), source, groups=f"g-{source}")) == [(f"g-{source}", source, 0, 2)]


def test_a_commit_in_a_transaction_counts_from_when_the_transaction_was_committed_on(kafka: Broker) -> None:
    source = topic(kafka)
    producer, consumer = transactional(kafka, source)
    send_offset(kafka, producer, consumer, source, 1)
    time.sleep(1)
    before = datetime.now(UTC)
    producer.commit_transaction(120)
    consumer.close()
    assert coordinated(kafka, source) == 1

    seen = look(kafka, this_minute(), source, groups=f"g-{source}")

    assert decoded(seen) == [(f"g-{source}", source, 0, 1)]
    (at,) = seen.commits["at"].to_pylist()
    assert before - timedelta(milliseconds=1) <= at <= datetime.now(UTC)


def test_an_open_transaction_hides_its_own_commits_only(kafka: Broker) -> None:
    source = topic(kafka)
    producer, consumer = transactional(kafka, source)
    send_offset(kafka, producer, consumer, source, 1)
    commit(kafka, f"h-{source}", source, 1)

    held = look(kafka, this_minute(), source, groups=f"[gh]-{source}", live=True)
    producer.commit_transaction(120)
    consumer.close()
    assert coordinated(kafka, source) == 1
    free = look(kafka, this_minute(), source, groups=f"[gh]-{source}", live=True)

    assert decoded(held) == [(f"h-{source}", source, 0, 1)]
    assert decoded(free) == [(f"h-{source}", source, 0, 1), (f"g-{source}", source, 0, 1)]


def test_a_commit_beside_an_open_transaction_stands_as_it_does_for_the_coordinator(kafka: Broker) -> None:
    source = topic(kafka, 2)
    for partition in (0, 1):
        produce(kafka, source, [ms(1), ms(2), ms(3)], partition)
    producer, consumer = transactional(kafka, source)
    send_offset(kafka, producer, consumer, source, 1)
    both = [TopicPartition(source, 0, 1), TopicPartition(source, 1, 1)]
    producer.send_offsets_to_transaction(both, consumer.consumer_group_metadata(), 20)
    consumer.commit(offsets=[TopicPartition(source, 0, 3)], asynchronous=False)
    producer.commit_transaction(120)
    consumer.close()
    assert coordinated(kafka, source) == 3

    seen = look(kafka, this_minute(), source, groups=f"g-{source}")

    assert decoded(seen) == [(f"g-{source}", source, 0, 3), (f"g-{source}", source, 1, 1)]


def test_a_group_that_is_deleted_beside_its_open_transaction_stays_deleted(kafka: Broker) -> None:
    source = topic(kafka)
    group = f"g-{source}"
    produce(kafka, source, [ms(1), ms(2)])
    producer, consumer = transactional(kafka, source)
    consumer.commit(offsets=[TopicPartition(source, 0, 1)], asynchronous=False)
    send_offset(kafka, producer, consumer, source, 2)
    consumer.close()
    admin(kafka).delete_consumer_groups([group])[group].result(60)
    producer.commit_transaction(120)
    assert coordinated(kafka, source) == OFFSET_INVALID

    seen = look(kafka, this_minute(), source, groups=group, live=True)

    assert decoded(seen) == [(group, source, 0, 1), (group, source, 0, None)]


def test_commits_up_to_an_hour_before_the_interval_are_read_too(kafka: Broker) -> None:
    name = topic(kafka)
    commit(kafka, f"g-{name}", name, 1)
    now = floor_time(datetime.now(UTC), 60_000)
    near = Interval(now + timedelta(minutes=50), now + timedelta(minutes=55))
    far = Interval(now + timedelta(minutes=62), now + timedelta(minutes=67))
    past = Interval(now - timedelta(minutes=10), now - timedelta(minutes=5))

    assert [len(decoded(look(kafka, over, name, groups=f"g-{name}"))) for over in (near, far, past)] == [1, 0, 0]


def test_of_a_time_that_is_published_only_half_an_hour_is_read_again(kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka)
    commit(kafka, f"g-{name}", name, 1)
    now = floor_time(datetime.now(UTC), 60_000)
    settings = Settings((Cluster("test", "broker", topics=Patterns((name,))),), ())
    login = Connection("broker", extra=dict(kafka.client()))

    def seen(minutes_later: int, published_until: int, *, live: bool = True) -> bool:
        store = Store.embedded(tmp_path / f"{minutes_later} {published_until} {live}")
        published = Interval(now - timedelta(minutes=60), now + timedelta(minutes=published_until))
        Ledger(store).publications.publish(["test"], published, "load", 0)
        start = now + timedelta(minutes=minutes_later)
        over = Interval(start, start + timedelta(minutes=5))
        return steps.snapshot(settings, store, "test", lambda _: login, over, live=live)["commits"] == 1

    assert seen(35, published_until=30)
    assert not seen(35, published_until=35)
    assert seen(29, published_until=35)
    assert seen(35, published_until=35, live=False)


def test_all_partitions_of_the_log_are_read(kafka3: Broker) -> None:
    name = topic(kafka3)
    groups = [f"g{number}-{name}" for number in range(12)]
    for group in groups:
        commit(kafka3, group, name, 5)

    seen = look(kafka3, this_minute(), name, groups=f"g.*-{name}", live=True)

    assert sorted(group for group, _, _, _ in decoded(seen)) == sorted(groups)
    assert sorted(row["group"] for row in seen.committed_offsets.to_pylist()) == sorted(groups)


def test_a_commit_beyond_the_log_end_is_marked_and_noted_and_others_are_not(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [ms(1), ms(2)])
    stray, fine = f"stray-{name}", f"billing-{name}"
    for group, offset in ((stray, 1), (stray, 10**15), (fine, 2)):
        commit(kafka, group, name, offset)

    for live in (True, False):
        seen = look(kafka, this_minute(), name, groups=f".*-{name}", live=live)

        marked = {(row["group"], row["committed_offset"]): row["source"] for row in seen.commits.to_pylist()}
        assert marked == {
            (stray, 1): "commit_log",
            (stray, 10**15): "beyond_log_end",
            (fine, 2): "commit_log",
        }
        (note,) = seen.notes
        assert f"1000000000000000 of group '{stray}' in {name}-0, which ends at 2" in note
