"""Facts of a store as the files that people import: all of them, or what a poller would have kept. No Kafka."""

from __future__ import annotations

from pathlib import Path

import duckdb

from kafka_sla.config.store import Store
from kafka_sla.lake.files.export_files import write_file
from kafka_sla.lake.import_files import import_committed_offsets, import_log_offsets
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS

_CLUSTER = "live"
_POLLED_ENDS = """
    SELECT * REPLACE ('poll' AS source) FROM log
    WHERE epoch_ms("at") % $window_ms = 0 AND source IN ('list_offsets', 'snapshot')
"""
_POLLED_POSITIONS = """
    SELECT c.cluster, c."group", c.topic, c.partition, e."at", arg_max(c.committed_offset, c."at") AS committed_offset,
        'poll' AS source
    FROM commits c JOIN (SELECT DISTINCT topic, partition, "at" FROM ends) e
        ON e.topic = c.topic AND e.partition = c.partition AND c."at" <= e."at"
    GROUP BY ALL
"""


def export_all(store: Store, folder: Path, interval: Interval) -> None:
    """Everything that the store knows, as `kafka-sla export` writes it."""
    folder.mkdir()
    lake = Lake(store)
    for table in (LOG_OFFSETS, COMMITTED_OFFSETS):
        write_file(lake.published(table.name, EVERYTHING), "parquet", folder / f"{table.name}.parquet")


def export_polls(store: Store, folder: Path, interval: Interval, window_ms: int = 10_000) -> None:
    """The ends and positions at the windows' edges only, as a poller would have written them down."""
    folder.mkdir()
    lake = Lake(store)
    log, commits = (lake.published(table.name, EVERYTHING) for table in (LOG_OFFSETS, COMMITTED_OFFSETS))
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("log", log)
        database.register("commits", commits)
        ends = database.sql(_POLLED_ENDS, params={"window_ms": window_ms}).to_arrow_table()
        database.register("ends", ends)
        positions = database.sql(_POLLED_POSITIONS).to_arrow_table()
    write_file(ends.select(list(LOG_OFFSETS.names)), "parquet", folder / "log_offsets.parquet")
    write_file(positions.select(list(COMMITTED_OFFSETS.names)), "parquet", folder / "committed_offsets.parquet")


def import_files(store: Store, folder: Path) -> None:
    """Both files of a folder into a store."""
    lake = Lake(store)
    import_log_offsets(lake, folder / "log_offsets.parquet", [_CLUSTER])
    import_committed_offsets(lake, folder / "committed_offsets.parquet", [_CLUSTER])
