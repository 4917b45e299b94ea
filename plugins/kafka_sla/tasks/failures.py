"""What Airflow calls when a task has failed for good: why the interval was not measured is kept in the store."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


def keep_failure(context: Any) -> None:
    """Keep the reason of the failed task for the page of coverage and `kafka-sla status`. The run itself stays red."""
    from kafka_sla.pipeline import steps
    from kafka_sla.tasks.connections import store_of
    from kafka_sla.tasks.run_plan import planned

    ti = context["ti"]
    if not (plan := ti.xcom_pull(task_ids="plan", key="plan")):
        return
    error = context.get("exception") or RuntimeError("it was ended from outside")
    own = getattr(context["task"], "op_kwargs", {}).get("cluster")
    clusters, job = ([own], None) if own else (plan["clusters"], ti.xcom_pull(task_ids="prepare"))
    steps.keep_failure(store_of(plan["store"]), clusters, planned(plan), ti.task_id, _as_error(error), job)
    log.info("Kept why %s was not measured.", planned(plan))


def _as_error(error: Any) -> BaseException:
    """Airflow tells of some failures as text."""
    return error if isinstance(error, BaseException) else RuntimeError(str(error))
