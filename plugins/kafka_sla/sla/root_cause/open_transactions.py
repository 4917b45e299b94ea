"""Does a group wait before an open transaction? Compares positions with last stable offsets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from kafka_sla.model.entities import FOREVER, Miss
from kafka_sla.sla.root_cause.stats import fetched

_MARKERS = 100
"""Markers of ended transactions may lie between a position and the last stable offset: they are no records."""
_ENOUGH = 0.5
"""Share of the late partitions that wait before an open transaction from which on it is the cause."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transaction before which a partition has been waiting for longest."""

    partition: int
    start_offset: int
    """The last stable offset: where `read_committed` groups have to stop."""
    producer_id: int | None
    transactional_id: str | None
    """None: no coordinator lists it, or the login may not see it."""
    since: datetime | None
    """Timestamp of its first record in the partition."""


def find_open_transaction(
    miss: Miss, partitions: Sequence[int], latency: pa.Table, transactions: pa.Table | None
) -> OpenTransaction | None:
    """The open transaction that at least half of these late partitions of the worst group and topic waited before, or
    one like it; None without one.

    `latency`: rows of consumer_latency; `transactions`: rows of open_transactions, None where nobody reads them.
    """
    if transactions is None or not transactions.num_rows:
        return None
    values = {
        "cluster": miss.cluster,
        "group": miss.worst_group,
        "topic": miss.worst_topic,
        "partitions": list(partitions),
        "start": miss.start,
        "end": miss.end or FOREVER,
    }
    waiting = fetched(_WAITING, values, latency=latency, transactions=transactions)
    if not waiting or len(waiting) < _ENOUGH * len(partitions):
        return None
    first = waiting[0]
    since = first["since"]
    return OpenTransaction(**{**first, "since": since and since.astimezone(UTC)})


_WAITING = f"""
    WITH seen AS (
        SELECT partition, last_stable_offset AS start_offset, min(open_since) AS since,
            arg_max(producer_id, "at") AS producer_id, arg_max(transactional_id, "at") AS transactional_id
        FROM transactions
        WHERE cluster = $cluster AND topic = $topic AND list_contains($partitions, partition)
            AND "at" >= $start AND coalesce(open_since, "at") < $end
        GROUP BY ALL
    ), positions AS (
        SELECT DISTINCT partition, committed_offset FROM latency
        WHERE cluster = $cluster AND "group" = $group AND topic = $topic AND list_contains($partitions, partition)
            AND window_start >= $start AND window_start < $end
    )
    SELECT partition, start_offset, producer_id, transactional_id, since FROM seen
    SEMI JOIN positions ON positions.partition = seen.partition
        AND committed_offset BETWEEN start_offset - {_MARKERS} AND start_offset
    QUALIFY row_number() OVER (PARTITION BY partition ORDER BY since NULLS LAST) = 1
    ORDER BY since NULLS LAST, partition
"""
