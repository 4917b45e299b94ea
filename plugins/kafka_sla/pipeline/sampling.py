"""Sampling of clusters between runs: polls at a steady pace and lands them in batches. Knows neither Airflow nor Spark.

Whatever is killed costs the polls since the last batch, and two that sample the same cluster only poll it twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka_sla.config.store import Store
from kafka_sla.errors import KafkaSlaError
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.sources.kafka.sampling import Sampler


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between polls, and between batches; `window_ms` is the configuration's."""

    poll_s: float = 5.0
    land_s: float = 60.0
    window_ms: int = 60_000


def sample(
    store: Store, cluster: Cluster, connection: Connection, pace: Pace, stop: threading.Event,
    say: Callable[[str], None],
) -> int:  # fmt: skip
    """Polls until `stop` is set, then lands what is left; answers how many rows were landed."""
    sampler, landed, due = Sampler(cluster, connection, pace.window_ms), 0, time.monotonic() + pace.land_s
    try:
        while not stop.is_set():
            began = time.monotonic()
            try:
                sampler.sample()
            except KafkaSlaError as error:
                say(f"no sample of {cluster.name}: {error}")
            if began >= due:
                landed, due = landed + _land(store, sampler, cluster, say), began + pace.land_s
            stop.wait(max(0.0, began + pace.poll_s - time.monotonic()))
    finally:
        sampler.renew()
    return landed + _land(store, sampler, cluster, say)


def _land(store: Store, sampler: Sampler, cluster: Cluster, say: Callable[[str], None]) -> int:
    """One batch; the client is renewed with it, so that new groups, topics and coordinators are known."""
    sampler.renew()
    batch = sampler.take()
    landed = Lake(store).land({COMMITTED_OFFSETS.name: batch.committed_offsets, LOG_OFFSETS.name: batch.log_offsets})
    say(f"{cluster.name}: {landed[COMMITTED_OFFSETS.name]} committed offsets, {landed[LOG_OFFSETS.name]} log ends")
    return sum(landed.values())
