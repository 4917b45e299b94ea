"""The store that another version wrote, with rows of another cluster, for worlds to be published into.

`store_of_61366d2.tar.gz` was written by the code of commit 61366d2 in /srv/kafka-sla: two imported CSV files, a run of
08:00 to 08:10 and one of 08:05 to 08:20, and what that version exported from it.
"""

from __future__ import annotations

import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.recovery import relocation
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, CONSUMER_STATUS, NON_CONSUMED, STEADY_STATE

ARCHIVE = Path(__file__).with_name("store_of_61366d2.tar.gz")
FOLDER = "kafka_sla_store"
CLUSTER = "eu-west"
SPAN = Interval(datetime(2026, 11, 1, 8, tzinfo=UTC), datetime(2026, 11, 1, 8, 20, tzinfo=UTC))


def unpack(into: Path) -> None:
    """All of the archive, as that version left it."""
    with tarfile.open(ARCHIVE) as files:
        files.extractall(into, filter="data")


def moved(into: Path) -> Store:
    """The store, where it is now."""
    unpack(into)
    store = Store.embedded(into / FOLDER)
    relocation.move(store)
    return store


def rows(store: Store) -> dict[str, pa.Table]:
    """What it had published before."""
    lake = Lake(store)
    tables = (CONSUMER_LATENCY, STEADY_STATE, CONSUMER_STATUS, NON_CONSUMED)
    return {
        t.name: lake.published(t.name, SPAN, [CLUSTER]).sort_by([(name, "ascending") for name in t.key]) for t in tables
    }
