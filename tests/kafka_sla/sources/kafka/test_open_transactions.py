"""Transactions that stay open on a real broker: who opened them, since when, and how far groups can read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from demo.broker import Cluster as Broker
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import OPEN_TRANSACTIONS
from tests.kafka_sla.sources.kafka.traffic import commit, in_transactions, look, produce, this_minute, topic


def minutes_ago(minutes: float) -> int:
    return epoch_ms(datetime.now(UTC) - timedelta(minutes=minutes))


def test_a_long_open_transaction_is_a_fact_with_its_producer_and_its_beginning(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, [minutes_ago(6)])
    commit(kafka, f"g-{name}", name, 1)
    began = minutes_ago(5)
    producer = in_transactions(kafka, name)
    producer.begin_transaction()
    producer.produce(name, b"x", timestamp=began)
    producer.flush(120)
    produce(kafka, name, [minutes_ago(4), minutes_ago(3)])

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)
    producer.commit_transaction(120)
    after = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)

    (row,) = seen.open_transactions.to_pylist()
    assert (row["topic"], row["partition"], row["last_stable_offset"], row["log_end_offset"]) == (name, 0, 1, 4)
    assert (row["transactional_id"], epoch_ms(row["open_since"])) == (name, began)
    assert row["producer_id"] >= 0
    assert any(f"{name}-0, producer id {row['producer_id']}, open for 5 min" in note for note in seen.notes)
    assert seen.open_transactions.schema == arrow_schema(OPEN_TRANSACTIONS)
    assert after.open_transactions.num_rows == 0


def test_a_transaction_of_the_last_seconds_is_nothing_to_report(kafka: Broker) -> None:
    name = topic(kafka)
    commit(kafka, f"g-{name}", name, 0)
    producer = in_transactions(kafka, name)
    producer.begin_transaction()
    producer.produce(name, b"x")
    producer.flush(120)

    seen = look(kafka, this_minute(), name, groups=f"g-{name}", live=True)
    producer.abort_transaction(120)

    assert seen.open_transactions.num_rows == 0
    assert seen.notes == ()
