"""Sampling of a cluster between runs: polls at a steady pace and lands batches. Knows neither Airflow nor Spark.

Whatever is killed costs the polls since the last batch, and two that sample the same cluster only poll it twice.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from kafka_sla.config.store import Store
from kafka_sla.errors import KafkaSlaError, KafkaUnreachable
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.sources.kafka.samples.sampler import Batch, Sampler
from kafka_sla.sources.unseen_clusters import Sight

_KEPT = 60
"""Batches that wait for a store that takes none; older ones are given up."""
Say = Callable[[str], None]
Look = Callable[[Sight], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between polls, and between batches; `window_ms` is the configuration's.

    Both keep to the clock's multiples: what was polled until the end of an interval is landed when a run measures it.
    """

    poll_s: float = 5.0
    land_s: float = 60.0
    window_ms: int = 60_000


class _Landing:
    """Batches on their way into the store, one after the other, while polling goes on."""

    def __init__(self, store: Store, cluster: Cluster, say: Say, warn: Say) -> None:
        self._store, self._cluster, self._say, self._warn, self._rows = store, cluster, say, warn, 0
        self._given: SimpleQueue[Batch | None] = SimpleQueue()
        self._waiting: deque[Batch] = deque()
        self._broken: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="landing", daemon=True)
        self._thread.start()

    def add(self, batch: Batch) -> None:
        for note in batch.notes:
            self._warn(f"{self._cluster.name}: {note}")
        self._given.put(batch)

    def finish(self) -> int:
        """Lands what waits; answers how many rows were landed altogether. Raises what the store says now."""
        self._given.put(None)
        self._thread.join()
        if self._broken:
            raise self._broken
        self._land()
        return self._rows

    def _run(self) -> None:
        try:
            while (batch := self._given.get()) is not None:
                self._waiting.append(batch)
                self._try()
        except Exception as error:  # told by `finish`
            self._broken = error
            self._warn(f"{self._cluster.name}: nothing more is landed: {error!r}")

    def _try(self) -> None:
        before = self._rows
        while len(self._waiting) > _KEPT:
            self._waiting.popleft()
        try:
            self._land()
        except KafkaSlaError as error:
            self._warn(f"{self._cluster.name}: {len(self._waiting)} batches wait for the store: {error}")
        else:
            self._say(f"{self._cluster.name}: {self._rows - before} new rows")

    def _land(self) -> None:
        while self._waiting:
            batch = self._waiting[0]
            facts = {COMMITTED_OFFSETS.name: batch.committed_offsets, LOG_OFFSETS.name: batch.log_offsets}
            self._rows += sum(Lake(self._store).land(facts).values())
            self._waiting.popleft()


def sample(
    store: Store,
    cluster: Cluster,
    connection: Connection,
    pace: Pace,
    stop: threading.Event,
    say: Say,
    look: Look = lambda _: None,
    warn: Say | None = None,
) -> int:
    """Polls until `stop` is set, then lands what is left; answers how many rows were landed. `look` is shown the first
    sample of each batch, and what it raises ends the sampling. `warn` is told what is lost or late; None: `say`."""
    warn = warn or say
    sampler, landing = Sampler(cluster, connection, pace.window_ms), _Landing(store, cluster, say, warn)
    batch, looked = time.time() // pace.land_s, False
    try:
        while not stop.is_set():
            began = time.time()
            if _poll(sampler, cluster, warn) and not looked:
                look(sampler)
                looked = True
            if began // pace.land_s != batch:
                landing.add(_take(sampler))
                batch, looked = began // pace.land_s, False
            stop.wait(pace.poll_s - time.time() % pace.poll_s)
    finally:
        landing.add(_take(sampler))
        landed = landing.finish()
    return landed


def _poll(sampler: Sampler, cluster: Cluster, warn: Say) -> bool:
    try:
        sampler.sample()
    except KafkaUnreachable as error:
        warn(f"no sample of {cluster.name}: {error}")
        return False
    return True


def _take(sampler: Sampler) -> Batch:
    """What was polled. The client is renewed, so that new groups, topics and coordinators are known."""
    batch = sampler.take()
    sampler.renew()
    return batch
