"""Series of consumer groups and their partitions, by the names that dashboards for Kafka Lag Exporter, Burrow and
kminion ask for. By column: making a row's values one by one takes longer than reading them. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, CONSUMER_STATUS, Table
from kafka_sla.sla.catch_up import LATENCY_COLUMNS
from kafka_sla.web.api.exposition import Gauge, written
from kafka_sla.web.queries.context import Context

BURROW = {"NOTFOUND": 0, "OK": 1, "WARNING": 2, "ERROR": 3, "STOPPED": 4, "STALLED": 5, "REWIND": 6}
"""Burrow's own numbers of its statuses."""
_WAIT, _AGE, _NEXT = "Records that wait", "Age of the oldest record that waits", "Next offset that the group reads"
_PLACE = ("cluster", "group", "topic", "partition")
_OF_LATENCY = (*dict.fromkeys((*_PLACE, *LATENCY_COLUMNS)), "committed_offset")
"""With what tells when consumers have caught up: one read for both."""
_OF_STATUS = (*_PLACE, "window_end", "status", "group_status")
_WHOLE = pc.ScalarAggregateOptions(skip_nulls=False)
"""Of lags, of which one that is unknown makes all unknown."""


def newest_rows(context: Context) -> tuple[pa.Table, pa.Table]:
    """The newest published window of each cluster: rows of the latency, and of the status."""
    tomorrow = context.now + timedelta(days=1)
    newest = {one.name: context.ledger.publications.latest(one.name, tomorrow) for one in context.settings.clusters}
    length = timedelta(milliseconds=context.settings.window_ms)
    windows = {name: Interval(one.interval.end - length, one.interval.end) for name, one in newest.items() if one}
    return (
        _rows(context, CONSUMER_LATENCY, windows, _OF_LATENCY),
        _rows(context, CONSUMER_STATUS, windows, _OF_STATUS),
    )


def _rows(context: Context, table: Table, windows: dict[str, Interval], columns: Sequence[str]) -> pa.Table:
    """The rows of each cluster's window."""
    found = [arrow_schema(table).empty_table().select(columns)]
    for cluster, window in windows.items():
        rows = context.spared(lambda lake: lake.published(table.name, window, [cluster], columns))  # noqa: B023
        found.append(rows.filter(pc.equal(rows["window_end"], pa.scalar(window.end, rows["window_end"].type))))
    return pa.concat_tables(found, promote_options="default")


def groups(rows: pa.Table, statuses: pa.Table) -> Iterator[Gauge]:
    """The series of groups, and of their topics."""
    by_group, by_topic = _sums(rows, ["cluster", "group"]), _sums(rows, ["cluster", "group", "topic"])
    kle = written(cluster_name=by_group["cluster"], group=by_group["group"])
    kle_topics = written(cluster_name=by_topic["cluster"], group=by_topic["group"], topic=by_topic["topic"])
    kminion = written(cluster=by_topic["cluster"], group_id=by_topic["group"], topic_name=by_topic["topic"])
    burrow = written(cluster=by_group["cluster"], consumer_group=by_group["group"])
    lag, most, age = by_group["records_lag_sum"], by_group["records_lag_max"], _seconds(by_group["backlog_age_ms_max"])
    yield Gauge("kafka_consumergroup_group_sum_lag", _WAIT, kle, lag)
    yield Gauge("kafka_consumergroup_group_max_lag", "Most records waiting in one partition", kle, most)
    yield Gauge("kafka_consumergroup_group_max_lag_seconds", _AGE, kle, age)
    yield Gauge("kafka_consumergroup_group_topic_sum_lag", _WAIT, kle_topics, by_topic["records_lag_sum"])
    yield Gauge("kminion_kafka_consumer_group_topic_lag", _WAIT, kminion, by_topic["records_lag_sum"])
    yield Gauge("burrow_kafka_consumer_lag_total", _WAIT, burrow, lag)
    known = _by(["cluster", "group"], statuses, ("group_status", "last", None))
    yield Gauge(
        "burrow_kafka_consumer_status",
        "0 not found, 1 OK, 2 warning, 3 error",
        written(cluster=known["cluster"], consumer_group=known["group"]),
        _numbers(known["group_status_last"]),
    )


def partitions(rows: pa.Table, statuses: pa.Table) -> Iterator[Gauge]:
    """The series of single partitions."""
    cluster, group, topic, partition = (rows[name] for name in _PLACE)
    lag, committed = rows["records_lag"], rows["committed_offset"]
    kle = written(cluster_name=cluster, group=group, topic=topic, partition=partition)
    kminion = written(cluster=cluster, group_id=group, topic_name=topic, partition_id=partition)
    burrow = _burrow(rows)
    yield Gauge("kafka_consumergroup_group_lag", _WAIT, kle, lag)
    yield Gauge("kafka_consumergroup_group_lag_seconds", _AGE, kle, _seconds(rows["backlog_age_ms"]))
    yield Gauge("kafka_consumergroup_group_offset", _NEXT, kle, committed)
    ends = _by(["cluster", "topic", "partition"], rows, ("log_end_offset", "last", _WHOLE))
    yield Gauge(
        "kafka_partition_latest_offset",
        "Offset that the next record gets",
        written(cluster_name=ends["cluster"], topic=ends["topic"], partition=ends["partition"]),
        ends["log_end_offset_last"],
    )
    yield Gauge("kminion_kafka_consumer_group_topic_partition_lag", _WAIT, kminion, lag)
    yield Gauge("burrow_kafka_consumer_partition_lag", _WAIT, burrow, lag)
    yield Gauge("burrow_kafka_consumer_current_offset", _NEXT, burrow, committed)
    yield Gauge(
        "kafka_sla_partition_status",
        "Burrow's rules: 0 not found, 1 OK, 2 warning, 4 stopped, 5 stalled, 6 rewind",
        _burrow(statuses),
        _numbers(statuses["status"]),
    )


def _burrow(rows: pa.Table) -> pa.ChunkedArray:
    return written(
        cluster=rows["cluster"], consumer_group=rows["group"], topic=rows["topic"], partition=rows["partition"]
    )


def _sums(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Lags added up, their largest, and the largest age."""
    lags = rows["records_lag"].cast(pa.float64(), safe=False)  # the largest integers cannot be added up
    added = rows.set_column(rows.column_names.index("records_lag"), "records_lag", lags)
    return _by(
        keys, added, ("records_lag", "sum", _WHOLE), ("records_lag", "max", _WHOLE), ("backlog_age_ms", "max", None)
    )


def _by(keys: Sequence[str], rows: pa.Table, *wanted: tuple[str, str, pc.FunctionOptions | None]) -> pa.Table:
    """One row for each of these keys, in the order of their first ones."""
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    found = numbered.group_by(list(keys), use_threads=False).aggregate([*wanted, ("row", "min")])
    return found.sort_by("row_min")


def _numbers(statuses: pa.ChunkedArray) -> list[float | None]:
    return [BURROW[status] for status in statuses.to_pylist()]


def _seconds(ms: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.divide(ms, 1000.0)
