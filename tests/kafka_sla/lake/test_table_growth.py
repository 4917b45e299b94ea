"""What a table's metadata become while days pass."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from pyiceberg.typedef import Record

from kafka_sla.config.store import Store
from kafka_sla.lake.iceberg import MOST_SNAPSHOTS, Iceberg, replace_files
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.table_layout import MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY
from tests.kafka_sla.loads import DAY, span, stage

pytestmark = pytest.mark.slow

SIZE = "commit.manifest.target-size-bytes"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Which database there is makes no difference here."""
    return Store.embedded(tmp_path)


@pytest.fixture
def iceberg(store: Store, ledger: Ledger) -> Iceberg:
    return Iceberg(store, ledger.open)


def test_a_long_past_is_many_small_manifests_each_of_a_few_days(lake: Lake, iceberg: Iceberg) -> None:
    table, (path,) = iceberg.table(CONSUMER_LATENCY), stage(lake, "load", span("0:00", "0:05"))[CONSUMER_LATENCY.name]
    one = parquet_file_to_data_file(table.io, table.metadata, path)
    days = list(Interval(DAY, DAY + timedelta(days=104)).pieces(timedelta(days=1)))

    for day in days:
        files = [of_load(one, day, f"{path}.{day.start:%j}.{hour}") for hour in range(8)]
        iceberg.commit(CONSUMER_LATENCY, lambda _, transaction, new=files: replace_files(transaction, [], new, MAIN))

    manifests = iceberg.table(CONSUMER_LATENCY).inspect.manifests().to_pylist()
    bounds = sorted(
        (m["partition_summaries"][0]["lower_bound"], m["partition_summaries"][0]["upper_bound"]) for m in manifests
    )
    sizes = [m["added_data_files_count"] + m["existing_data_files_count"] for m in manifests]
    assert sum(sizes) == 8 * len(days)
    assert max(sizes) < 200, "who reads a day would read what there is of a year"
    assert len(manifests) < len(days) / 2
    assert all(before[1] < after[0] for before, after in pairwise(bounds)), "each has days of its own"


def test_a_table_keeps_few_snapshots_of_what_was_only_added_and_those_before_something_was_removed(
    lake: Lake, iceberg: Iceberg
) -> None:
    table, (path,) = iceberg.table(CONSUMER_LATENCY), stage(lake, "load", span("0:00", "0:05"))[CONSUMER_LATENCY.name]
    one = parquet_file_to_data_file(table.io, table.metadata, path)
    days = list(Interval(DAY, DAY + timedelta(days=MOST_SNAPSHOTS + 40)).pieces(timedelta(days=1)))
    files = [of_load(one, day, f"{path}.{day.start:%F}") for day in days]

    def add_each(_: IcebergTable, transaction: Transaction, first: int, last: int) -> None:
        for file in files[first:last]:
            replace_files(transaction, [], [file], MAIN)

    iceberg.commit(CONSUMER_LATENCY, partial(add_each, first=0, last=10))
    first = iceberg.planned(CONSUMER_LATENCY, branch=MAIN)[:1]
    iceberg.commit(CONSUMER_LATENCY, lambda _, transaction: replace_files(transaction, first, [], MAIN))
    for number in range(10, len(files), 30):
        iceberg.commit(CONSUMER_LATENCY, partial(add_each, first=number, last=number + 30))

    assert 10 < len(iceberg.table(CONSUMER_LATENCY).snapshots()) < MOST_SNAPSHOTS
    there = {file.file_path for file in iceberg.planned(CONSUMER_LATENCY, branch=MAIN)}
    assert there == {file.file_path for file in files[1:]}
    assert files[0].file_path in of_all_snapshots(iceberg.table(CONSUMER_LATENCY))
    lake.maintain()
    assert files[0].file_path in of_all_snapshots(iceberg.table(CONSUMER_LATENCY)), "who began before may still read it"
    lake.maintain(datetime.now(UTC) + timedelta(days=3))
    assert files[0].file_path not in of_all_snapshots(iceberg.table(CONSUMER_LATENCY))


def of_all_snapshots(table: IcebergTable) -> set[str]:
    """The files that some snapshot of it has."""
    manifests = (manifest for snapshot in table.snapshots() for manifest in snapshot.manifests(table.io))
    return {entry.data_file.file_path for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)}


def of_load(one: DataFile, day: Interval, path: str) -> DataFile:
    """The same file as one of a load of that day."""
    other = copy(one)
    other._data = [*one._data]
    other[1], other[3] = path, Record(1_000 * epoch_ms(day.start))
    return other


def test_a_table_of_an_older_version_gets_the_properties_of_a_new_one_unless_it_has_its_own(iceberg: Iceberg) -> None:
    kept = "write.metadata.previous-versions-max"
    with iceberg.table(CONSUMER_LATENCY).transaction() as transaction:
        transaction.remove_properties(SIZE).set_properties({kept: "7"})

    assert itemgetter(SIZE, kept)(iceberg.table(CONSUMER_LATENCY).properties) == ("65536", "7")
