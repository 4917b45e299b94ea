"""What tasks import, imported before in the scheduler: LocalExecutor forks each task's process from it. Asks no module
for anything.

Of a run each minute, half of what its tasks take is imports; forked processes share them, and their memory.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from multiprocessing import parent_process

log = logging.getLogger(__name__)

VARIABLE = "KAFKA_SLA_PRELOAD"
"""Environment variable: anything but nothing asks for it. Every task of this scheduler starts with these modules."""
_OF_OTHERS = ("scipy.stats", "altair")
"""Ours do without them (`validation/late_imports.py`), but tasks of other DAGs may want them as they are."""
_MODULES = (
    "airflow.sdk.execution_time.task_runner",
    "kafka_sla.tasks.flow",
    "kafka_sla.tasks.trigger_form",
    "kafka_sla.pipeline.steps",
    "kafka_sla.sources.kafka.snapshot",
    "kafka_sla.spark_jobs.standing",
    "kafka_sla.validation.expectation_types",
    "kafka_sla.notifications.smtp",
    "kafka_sla.notifications.incident_causes",
    "kafka_sla.notifications.miss_context",
    "kafka_sla.reporting.charts",
)


def preload() -> None:
    """Import them in a scheduler that is asked to; everywhere else do nothing, also in workers that are not forked from
    it. What cannot be imported fails again in the task that needs it."""
    if not os.environ.get(VARIABLE) or sys.argv[1:2] != ["scheduler"] or parent_process():
        return
    from kafka_sla.validation import suites

    try:
        for name in _OF_OTHERS:
            import_module(name)
        suites.load()
        for name in _MODULES:
            import_module(name)
    except Exception:  # of any kind, while libraries are imported; the plugin has to be there all the same
        log.warning("%s: not everything can be imported before tasks start", VARIABLE, exc_info=True)
