"""The published rows that tell when consumers will have caught up, read cluster by cluster. Computes nothing itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from kafka_sla.errors import DamagedFile
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.catch_up import (
    LATENCY_COLUMNS,
    STEADY_COLUMNS,
    CatchUp,
    behind,
    catch_ups,
    pace_interval,
    unknown_catch_up,
)
from kafka_sla.sla.windows.wanted_rows import groups_of
from kafka_sla.text.formatting import plural

_FEW = 100
"""Groups that are looked for by name; the rows of all are read faster than those of more."""


def published_catch_ups(
    lake: Lake, slas: Sequence[Sla], until: Mapping[str, datetime], window_ms: int
) -> dict[str, CatchUp]:
    """Those of these SLAs whose cluster has published windows, which end at `until` by cluster."""
    found: dict[str, CatchUp] = {}
    for cluster, at in until.items():
        if mine := [sla for sla in slas if sla.cluster == cluster]:
            found |= _of_cluster(lake, mine, cluster, at, window_ms)
    return found


def _of_cluster(lake: Lake, slas: Sequence[Sla], cluster: str, at: datetime, window_ms: int) -> dict[str, CatchUp]:
    """All unknown where a file is damaged: a status and a mail are needed then, too."""
    last, groups = Interval(at - timedelta(milliseconds=window_ms), at), _by_name(groups_of(slas))
    before = Interval(pace_interval(at, window_ms).start, last.start)
    try:
        latency = lake.published(CONSUMER_LATENCY.name, last, [cluster], LATENCY_COLUMNS, groups)
        if waiting := behind(slas, latency):
            earlier = lake.published(CONSUMER_LATENCY.name, before, [cluster], LATENCY_COLUMNS, _by_name(waiting))
            latency = pa.concat_tables([earlier, latency])
        steady = lake.published(STEADY_STATE.name, last, [cluster], STEADY_COLUMNS, groups)
    except DamagedFile as error:
        reason = f"{plural(len(error.files), 'damaged file')}: run kafka-sla store check"
        return {sla.name: unknown_catch_up(sla, at, reason) for sla in slas}
    return catch_ups(slas, latency, steady, at, window_ms)


def _by_name(groups: Collection[str] | None) -> Collection[str] | None:
    """None: all."""
    return groups if groups is not None and len(groups) <= _FEW else None
