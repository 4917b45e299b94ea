"""Sampling of clusters in Airflow's triggerer: a task a cluster that waits while a trigger polls, in no worker's slot.
Knows Airflow and the sampling's door, nothing of offsets.

The trigger keeps nothing: one that was killed begins anew on whichever triggerer takes it over.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import BaseOperator, Context, get_current_context, task
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from kafka_sla.airflow_versions import AirflowSkipException
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.tasks.connections import connection
from kafka_sla.tasks.run_context import frozen, plain, read_settings
from kafka_sla.tasks.run_plan import Frozen

log = logging.getLogger(__name__)

_OVERLAP = timedelta(minutes=1)
"""How long a run goes on after the next one should have begun: two that sample the same cluster only poll it twice."""
_NO_TRIGGERER = timedelta(minutes=2)
"""Time after its end at which a trigger has never run."""


class Sampled(Frozen):
    """A cluster to sample and until when; travels through XCom."""

    cluster: str
    until: str


@task
def find_sampled_clusters(every_seconds: int) -> list[Sampled]:
    """The clusters that say `sample_every`, sampled from now until the next run has begun."""
    settings, kept = read_settings()
    names = [cluster.name for cluster in settings.clusters if cluster.sample_every_ms]
    until = plain(get_current_context()["dag_run"].run_after) + timedelta(seconds=every_seconds) + _OVERLAP
    log.info("To be sampled until %s: %s.", until, ", ".join(names) or "nothing")
    if not names:
        raise AirflowSkipException("no cluster of the configuration says sample_every")
    return [Sampled(**kept, cluster=name, until=until.isoformat()) for name in names]


class SampleOperator(BaseOperator):
    """Checks what it can in the worker, then waits for the trigger."""

    template_fields = ("sampled",)

    def __init__(self, *, sampled: Sampled, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.sampled = sampled

    def execute(self, context: Context) -> None:
        _opened(self.sampled, self.sampled["cluster"])
        left = datetime.fromisoformat(self.sampled["until"]) - datetime.now(UTC)
        if left <= timedelta():
            raise BadRequest(
                f"the time of this run was over at {self.sampled['until']}: only the present can be sampled. If no"
                " sample was taken then, start a triggerer (airflow triggerer)"
            )
        self.defer(trigger=SampleTrigger(**self.sampled), method_name="landed", timeout=left + _NO_TRIGGERER)

    def landed(self, context: Context, event: int) -> int:
        """Answers how many rows were landed."""
        log.info("%s: %s new rows", self.sampled["cluster"], event)
        return event


class SampleTrigger(BaseTrigger):
    """Samples one cluster until a time. It holds no secret: logins are read where it runs."""

    def __init__(self, *, store: str, configuration: str, cluster: str, until: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept = Frozen(store=store, configuration=configuration)
        self._cluster, self._until = cluster, datetime.fromisoformat(until)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {**self._kept, "cluster": self._cluster, "until": self._until.isoformat()},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One thread polls, so that no other trigger waits for a broker. When the trigger is cancelled, what was polled
        is landed first."""
        opened = await sync_to_async(_opened, thread_sensitive=False)(self._kept, self._cluster)
        loop, stop, thread = asyncio.get_running_loop(), threading.Event(), ThreadPoolExecutor(1, "kafka-sla-sample")
        loop.call_later(max(0.0, (self._until - datetime.now(UTC)).total_seconds()), stop.set)
        try:
            landed = await loop.run_in_executor(thread, copy_context().run, _sample, *opened, stop)
        finally:
            stop.set()
            thread.shutdown(wait=False)
        yield TriggerEvent(landed)  # type: ignore[no-untyped-call]


Opened = tuple[Settings, Store, Cluster, Connection]


def _opened(kept: Frozen, name: str) -> Opened:
    """Configuration, store, cluster and login, as they were when the run began."""
    settings, store = frozen(kept)
    cluster = settings.cluster(name)
    assert cluster.connection, "a rule of the configuration"
    return settings, store, cluster, connection(cluster.connection)


def _sample(settings: Settings, store: Store, cluster: Cluster, login: Connection, stop: threading.Event) -> int:
    from kafka_sla.pipeline.sampling import Pace, sample
    from kafka_sla.sources.unseen_clusters import Sight, blindness

    def look(found: Sight) -> None:
        for text in blindness(settings, cluster, connection, found):
            log.warning("%s: %s", cluster.name, text)

    pace = Pace(poll_s=(cluster.sample_every_ms or 0) / 1_000, window_ms=settings.window_ms)
    return sample(store, cluster, login, pace, stop, log.info, look, log.warning)
