"""Records which partitions of SLAs are not judged, from the newest published window of an interval."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.model.tables import STEADY_STATE
from kafka_sla.sla.unjudged_partitions import STEADY_COLUMNS, find_unjudged_partitions


def record_unjudged_partitions(
    slas: Sequence[Sla], lake: Lake, ledger: Ledger, interval: Interval, window_ms: int
) -> None:
    """Store the partitions that these SLAs do not judge in the last window of the interval."""
    last = Interval(interval.end - timedelta(milliseconds=window_ms), interval.end)
    for cluster in sorted({sla.cluster for sla in slas}):
        names = [sla.name for sla in slas if sla.cluster == cluster and not sla.chain]
        if names:
            steady = lake.published(STEADY_STATE.name, last, [cluster], STEADY_COLUMNS)
            ledger.unjudged_partitions.replace(names, interval.end, find_unjudged_partitions(steady))
