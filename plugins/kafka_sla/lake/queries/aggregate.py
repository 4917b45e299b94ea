"""Consumer latency over partitions or topics: maxima, counts and histograms, for latencies never add up. Pure."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from kafka_sla.model.entities import MOST
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.sql import database

By = Literal["partition", "topic", "group"]
_KEYS = {"topic": ("cluster", "group", "topic"), "group": ("cluster", "group")}
_MAXIMA = ("records_latency_max", "backlog_age", "backlog_age_max")
_SUMS = ("records_consumed", "negative_latency_records", "unknown_latency_records")


def rolled_up(latency: pa.Table, by: By) -> pa.Table:
    """Rows of `consumer_latency` per topic or per group and window; `partition` leaves them as they are."""
    if by == "partition":
        return latency
    keys = ", ".join(f'"{key}"' for key in (*_KEYS[by], "window_start", "window_end"))
    with database(latency=latency.select(list(CONSUMER_LATENCY.names))) as db:
        found = db.arrow(_query(keys))
    return found.cast(pa.schema([_contract(latency.schema, field) for field in found.schema]))


def _query(keys: str) -> str:
    maxima = ", ".join(_maximum(name) for name in _MAXIMA)
    sums = ", ".join(f"coalesce(TRY_CAST(sum({name}) AS BIGINT), {MOST}) AS {name}" for name in _SUMS)
    return f"""
        WITH buckets AS (SELECT {keys}, unnest(map_entries(latency_histogram)) AS bucket FROM latency),
        counts AS (
            SELECT {keys}, bucket.key AS edge, coalesce(TRY_CAST(sum(bucket.value) AS BIGINT), {MOST}) AS records
            FROM buckets GROUP BY ALL
        ),
        histograms AS (
            SELECT {keys}, map(list(edge ORDER BY edge), list(records ORDER BY edge)) AS latency_histogram
            FROM counts GROUP BY ALL
        ),
        figures AS (
            SELECT {keys}, count(*)::BIGINT AS partitions, count(unknown_reason)::BIGINT AS unknown_partitions,
                {sums}, {maxima},
                CASE WHEN count(records_lag) = count(*) THEN TRY_CAST(sum(records_lag) AS BIGINT) END AS records_lag,
                max(records_lag_max) AS records_lag_max,
                max(last_commit_at) AS last_commit_at
            FROM latency GROUP BY ALL
        )
        SELECT * FROM figures LEFT JOIN histograms USING ({keys}) ORDER BY {keys}
    """


def _maximum(name: str) -> str:
    """Largest value with its bounds; a known value without a high bound leaves the maximum unbounded, too."""
    unbounded = f"bool_or({name}_ms IS NOT NULL AND {name}_high_ms IS NULL)"
    return (
        f"max({name}_ms) AS {name}_ms, max({name}_low_ms) AS {name}_low_ms,"
        f" CASE WHEN NOT {unbounded} THEN max({name}_high_ms) END AS {name}_high_ms"
    )


def _contract(contract: pa.Schema, field: pa.Field) -> pa.Field:
    """The field as the table contract has it, where it has it."""
    return pa.field(field.name, contract.field(field.name).type if field.name in contract.names else field.type)
