"""How often groups commit, from the commits that consumer_status evaluated."""

from __future__ import annotations

from datetime import timedelta

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING, Interval
from kafka_sla.model.tables import CONSUMER_STATUS
from kafka_sla.sql import database

RECENT = timedelta(hours=1)
_COLUMNS = ("group", "topic", "partition", "window_start", "commit_times", "polled_only")

_BY_TOPIC = """
    SELECT "group", topic,
        median((epoch_ms(commit_times[-1]) - epoch_ms(commit_times[1])) / (len(commit_times) - 1)) AS spacing_ms
    FROM rows
    WHERE NOT coalesce(polled_only, false) AND len(commit_times) >= 3 GROUP BY ALL
"""


def newest_commit_spacings(
    lake: Lake, ledger: Ledger, cluster: str, interval: Interval = EVERYTHING
) -> dict[tuple[str, str], float]:
    """By group and topic the usual time between two commits on a partition, in ms, in the newest published hour of the
    interval. Groups whose positions are known from polls only are left out."""
    slices = ledger.publications.slices([cluster], interval)
    if not slices:
        return {}
    end = max(one.interval.end for one in slices)
    rows = lake.published(CONSUMER_STATUS.name, Interval(end - RECENT, end), [cluster], _COLUMNS, in_order=False)
    with database(rows=rows) as db:
        found = db.rows(_BY_TOPIC)
    return {(row["group"], row["topic"]): float(row["spacing_ms"]) for row in found}
