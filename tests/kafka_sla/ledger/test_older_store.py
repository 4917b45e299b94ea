"""A store that an older version made: it gets what is new, and keeps its rows."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import datetime, time

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, insert, text

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.ledger.storage.schema import LATE_RUNS, NOTICES, SENT_DIGESTS
from kafka_sla.model.entities import Digest, Miss
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS, Table
from tests.kafka_sla.loads import at, load, points, span, stage


def older(table: Table, *new: str) -> Table:
    """The table as it was before these columns came."""
    return replace(table, columns=tuple(c for c in table.columns if c.name not in new))


def altered(store: Store, *statements: str) -> None:
    engine = create_engine(store.url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_facts_get_a_new_column_and_keep_their_rows(store: Store) -> None:
    before = older(LOG_OFFSETS, "log_start_offset")
    Lake(store).append_facts(before, points("10:00").select(before.names))

    newer = points("10:01").set_column(4, "log_start_offset", pa.array([7], pa.int64()))
    newer = newer.select(LOG_OFFSETS.names)
    assert Lake(store).append_facts(LOG_OFFSETS, newer) == 1

    found = Lake(store).read_facts(LOG_OFFSETS, span("10:00", "10:02"))
    assert found["log_start_offset"].to_pylist() == [None, 7]
    assert found["log_end_offset"].to_pylist() == [600, 601]
    assert Lake(store).append_facts(before, points("10:02").select(before.names)) == 1, "the older version goes on"


def test_facts_that_nobody_added_to_since_are_read_too(store: Store) -> None:
    before = older(LOG_OFFSETS, "log_start_offset")
    Lake(store).append_facts(before, points("10:00").select(before.names))

    assert Lake(store).read_facts(LOG_OFFSETS, span("10:00", "10:02")).equals(points("10:00"))


def test_metrics_get_a_new_column_that_old_loads_lack_also_where_it_must_have_a_value(store: Store) -> None:
    before = older(CONSUMER_LATENCY, "records_consumed")
    lake, ledger = Lake(store), Ledger(store)
    Iceberg(store, ledger.open).table(before)
    (path,) = stage(lake, "old", span("10:00", "10:02"))[CONSUMER_LATENCY.name]
    without(path, "records_consumed")
    lake.add_load("old", span("10:00", "10:02"), {CONSUMER_LATENCY.name: [path]})
    ledger.publications.publish(["a"], span("10:00", "10:02"), "old", 0)
    load(lake, ledger, "new", span("10:02", "10:04"))

    found = Lake(store).published(CONSUMER_LATENCY.name, span("10:00", "10:04"))

    assert found["records_consumed"].to_pylist() == [None, None, 602, 603]
    assert lake.published(CONSUMER_LATENCY.name, span("10:02", "10:04"))["records_consumed"].to_pylist() == [602, 603]


def without(path: str, column: str) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.ParquetFile(path).read().drop_columns([column]), path)


def test_the_database_gets_new_columns_and_tables_and_keeps_its_rows(store: Store) -> None:
    Ledger(store).validations.store([validation("first")], [])
    altered(store, "ALTER TABLE validation_results DROP COLUMN observed", "DROP TABLE late_runs")

    Ledger(store).validations.store([validation("second")], [])

    rows = Lake(store).published("validation_results", span("10:00", "11:00")).to_pylist()
    assert [(row["load_id"], row["observed"]) for row in rows] == [("first", None), ("second", "3 of 4")]
    assert Ledger(store).outbox.send_late_once({"a": None}, span("10:00", "10:05").end, lambda: None)


def test_what_an_older_version_sent_is_not_sent_again_and_what_it_queued_is(store: Store) -> None:
    """Its notices hold a miss as Python's own JSON writes it."""
    outbox, period, digest = Ledger(store).outbox, span("9:00", "10:00"), Digest("weekly", "week", time(7))
    opened = Miss(
        "m1",
        "payments",
        "prod",
        at("9:00"),
        None,
        at("9:02"),
        2,
        True,
        45e3,
        44e3,
        None,
        at("9:00"),
        "billing.alerts",
        "payments",
        0,
        {"cause": "stopped"},
        max_latency_ms=0,
        for_ms=0,
    )
    stored = json.dumps({"miss": asdict(opened), "run_url": None}, default=datetime.isoformat)
    assert outbox.queue.waiting() == []
    engine = create_engine(store.url)
    with engine.begin() as connection:
        connection.execute(
            insert(NOTICES).values(
                miss_id="m1",
                kind="opened",
                channel="mail",
                sla="payments",
                thread="m1",
                start_at=opened.start,
                known_until=opened.opened_at,
                notice=stored,
                queued_at=opened.opened_at,
            )
        )
        connection.execute(
            insert(SENT_DIGESTS).values(
                digest="weekly", period_start=period.start, recipient="ann@example.com", sent_at=period.end
            )
        )
        connection.execute(insert(LATE_RUNS).values(cluster="prod", interval_end=period.end, reported_at=period.end))
    engine.dispose()

    sent: list[Notice] = []
    assert outbox.digest_sent(digest, period, "ann@example.com")
    assert not outbox.send_digest_once(digest, period, "ann@example.com", lambda: None)
    assert outbox.send_digest_once(digest, period, "bob@example.com", lambda: None)
    assert not outbox.send_late_once({"prod": None}, period.end, lambda: None)
    assert not outbox.enqueue(Notice("opened", opened))
    assert outbox.queue.deliver(sent.append) == 1
    assert sent == [Notice("opened", opened, None, "m1")]


def test_components_that_come_up_at_once_add_a_column_once(store: Store) -> None:
    Ledger(store).validations.store([validation("first")], [])
    altered(store, "ALTER TABLE validation_results DROP COLUMN observed")

    with ThreadPoolExecutor(4) as several:
        list(several.map(lambda _: Ledger(store).publications.slices(None, span("10:00", "11:00")), range(4)))

    assert Lake(store).published("validation_results", span("10:00", "11:00"))["observed"].to_pylist() == [None]


def validation(load_id: str) -> dict[str, object]:
    interval = span("10:00", "10:05")
    return {
        "load_id": load_id,
        "interval_start": interval.start,
        "interval_end": interval.end,
        "table_name": "consumer_latency",
        "expectation_id": "one",
        "expectation": "one",
        "severity": "info",
        "success": True,
        "observed": "3 of 4",
        "unexpected_rows": None,
    }


def test_a_column_that_must_have_a_value_is_not_guessed(store: Store) -> None:
    Ledger(store).validations.store([], [])
    altered(store, "ALTER TABLE publications DROP COLUMN facts_seq")

    with pytest.raises(StoreError, match=r"publications in .* is of another version: it lacks the column facts_seq"):
        Ledger(store).publications.slices(None, span("10:00", "11:00"))
