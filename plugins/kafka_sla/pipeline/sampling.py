"""Sampling of a cluster between runs: polls at a steady pace and lands batches. Knows neither Airflow nor Spark.

Whatever is killed costs the polls since the last batch, and two that sample the same cluster only poll it twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka_sla.config.store import Store
from kafka_sla.errors import KafkaSlaError, KafkaUnreachable
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.sources.kafka.sampling import Batch, Sampler

_KEPT = 60
"""Batches that wait for a store that takes none; older ones are given up."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between polls, and between batches; `window_ms` is the configuration's."""

    poll_s: float = 5.0
    land_s: float = 60.0
    window_ms: int = 60_000


def sample(
    store: Store, cluster: Cluster, connection: Connection, pace: Pace, stop: threading.Event, say: Say
) -> int:  # fmt: skip
    """Polls until `stop` is set, then lands what is left; answers how many rows were landed."""
    sampler, waiting, landed = Sampler(cluster, connection, pace.window_ms), list[Batch](), 0
    due = time.monotonic() + pace.land_s
    while not stop.is_set():
        began = time.monotonic()
        _poll(sampler, cluster, say)
        if began >= due:
            landed, due = landed + _try_to_land(store, sampler, waiting, cluster, say), began + pace.land_s
        stop.wait(max(0.0, began + pace.poll_s - time.monotonic()))
    sampler.renew()
    waiting.append(sampler.take())
    return landed + _land(store, waiting)


def _poll(sampler: Sampler, cluster: Cluster, say: Say) -> None:
    try:
        sampler.sample()
    except KafkaUnreachable as error:
        say(f"no sample of {cluster.name}: {error}")


def _try_to_land(store: Store, sampler: Sampler, waiting: list[Batch], cluster: Cluster, say: Say) -> int:
    """One batch more, and those that wait. The client is renewed with it, so that new groups, topics and coordinators
    are known."""
    sampler.renew()
    waiting.append(sampler.take())
    del waiting[:-_KEPT]
    try:
        landed = _land(store, waiting)
    except KafkaSlaError as error:
        say(f"{cluster.name}: {len(waiting)} batches wait for the store: {error}")
        return 0
    say(f"{cluster.name}: {landed} new rows")
    return landed


def _land(store: Store, waiting: list[Batch]) -> int:
    landed = 0
    while waiting:
        facts = {COMMITTED_OFFSETS.name: waiting[0].committed_offsets, LOG_OFFSETS.name: waiting[0].log_offsets}
        landed += sum(Lake(store).land(facts).values())
        waiting.pop(0)
    return landed
