"""What a load must replay of SLAs that the rows carried over do not know: whole topics, from the beginning of their
facts. Whoever else reads these topics is replayed with them, and gets the rows that would have been carried on.

A topic-partition is measured on its own, so the rest is carried over as ever. What this costs grows with the facts of
these topics alone: files and row groups without them are not read. Starts no Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_sla.lake.duckdb_reader import distinct_values
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, CONSUMER_STATUS, LOG_OFFSETS, RECORD_RANGES
from kafka_sla.parquet_files import batches, parquet_file
from kafka_sla.spark.job_spec import Carried, RowGroup

_PAIR = ("cluster", "group", "topic")


def topics_of(
    slas: Sequence[Sla], lake: Lake, cluster: str, carried: Carried, interval: Interval, window_ms: int
) -> tuple[str, ...]:
    """Topics of group-partitions that these SLAs cover, of all that have rows in the interval: those that are carried
    over, and those that commit since."""
    if not slas:
        return ()
    window = Interval(carried.at - timedelta(milliseconds=window_ms), carried.at)
    tables = [lake.published(t.name, window, [cluster], _PAIR) for t in (CONSUMER_LATENCY, CONSUMER_STATUS)]
    if files := lake.fact_files(COMMITTED_OFFSETS, carried.at, interval.end):
        tables.append(distinct_values(COMMITTED_OFFSETS, files, _PAIR))
    pairs = {tuple(row.values()) for rows in tables for row in rows.group_by(list(_PAIR)).aggregate([]).to_pylist()}
    scopes = [sla.measured for sla in slas]
    found = {
        topic
        for name, group, topic in pairs
        if name == cluster and any(one.groups.matches(group) and one.topics.matches(topic) for one in scopes)
    }
    return tuple(sorted(found))


def older_facts(
    lake: Lake, topics: Mapping[str, Collection[str]], known: Mapping[str, Collection[str]], until: datetime
) -> dict[str, list[RowGroup]]:
    """The row groups with these topics, by cluster, of files that are not `known`, which are read in any case."""
    if not any(topics.values()):
        return {}
    places = {(cluster, topic) for cluster, of_cluster in topics.items() for topic in of_cluster}
    return {
        table.name: [
            one
            for path in lake.fact_files(table, None, until)
            if path not in known[table.name]
            for one in _row_groups(path, places)
        ]
        for table in (LOG_OFFSETS, RECORD_RANGES, COMMITTED_OFFSETS)
    }


def _row_groups(path: str, places: Set[tuple[str, str]]) -> list[RowGroup]:
    with parquet_file(path, ("cluster", "topic")) as file:
        groups = [number for number in range(file.num_row_groups) if _may_have(file.metadata.row_group(number), places)]
        return [RowGroup(path, number, *_size(file, number)) for number in groups if _has(file, number, places)]


def _may_have(group: pq.RowGroupMetaData, places: Set[tuple[str, str]]) -> bool:
    """By the statistics, where there are any."""
    columns = [group.column(number) for number in range(group.num_columns)]
    for column in columns:
        if column.path_in_schema == "topic" and (of := column.statistics) is not None and of.has_min_max:
            return any(of.min <= topic <= of.max for _, topic in places)
    return True


def _has(file: pq.ParquetFile, group: int, places: Set[tuple[str, str]]) -> bool:
    for batch in batches(file, ["cluster", "topic"], 1_000_000, [group]):
        rows = pa.Table.from_batches([batch]).group_by(["cluster", "topic"]).aggregate([])
        if not places.isdisjoint(tuple(row.values()) for row in rows.to_pylist()):
            return True
    return False


def _size(file: pq.ParquetFile, group: int) -> tuple[int, int]:
    """Its rows and bytes."""
    of = file.metadata.row_group(group)
    return of.num_rows, sum(of.column(number).total_compressed_size for number in range(of.num_columns))
