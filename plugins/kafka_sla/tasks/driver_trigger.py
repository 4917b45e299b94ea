"""Waiting in Airflow's triggerer, in no worker's slot, for a Spark driver that runs elsewhere. Knows Airflow and where
a submission leaves its signs, nothing of a cluster manager.

The trigger keeps nothing: one that was killed begins anew on whichever triggerer takes it over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from kafka_sla.spark.submission import Submission, Watch
from kafka_sla.tasks.connections import store_of

_LOOKS_EVERY_SECONDS = 5


class DriverTrigger(BaseTrigger):
    """Its event is why the job was not measured, empty where it was. `store`: the connection of the store whose
    warehouse holds the job; it is read where the trigger runs, which holds no secret."""

    def __init__(self, *, store: str, output: str, submission: str, name: str, begin_by: str, until: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._store, self._name, self._begin_by, self._until = store, name, begin_by, until
        self._submission = Submission(output, submission)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {
                "store": self._store,
                "output": self._submission.output,
                "submission": self._submission.id,
                "name": self._name,
                "begin_by": self._begin_by,
                "until": self._until,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await sync_to_async(store_of, thread_sensitive=False)(self._store)  # learns how the warehouse is reached
        times = (datetime.fromisoformat(self._begin_by), datetime.fromisoformat(self._until))
        watch = Watch(self._submission, self._name, *times)
        look = sync_to_async(watch.look, thread_sensitive=False)
        while (found := await look(datetime.now(UTC))) is None:
            await asyncio.sleep(_LOOKS_EVERY_SECONDS)
        yield TriggerEvent(found)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Somebody cleared or marked the task. Before 3.3 Airflow does not say so, and the driver ends when nobody has
        waited for it for a while."""
        await sync_to_async(self._submission.withdraw, thread_sensitive=False)()
