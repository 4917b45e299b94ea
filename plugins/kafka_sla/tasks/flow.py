"""The wiring of the steps, shared by the DAGs. Knows the order and who waits for whom, nothing of what a step does.

plan → snapshot (per cluster) → prepare → measure → validate → publish → evaluate (per SLA or team)
→ notify, announce → watcher
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TriggerRule

from kafka_sla.tasks import steps
from kafka_sla.tasks.measure_operator import measure

DEFAULTS: dict[str, Any] = {
    "owner": "kafka_sla",
    "retries": 2,
    "retry_delay": timedelta(seconds=20),
    "execution_timeout": timedelta(hours=1),
} | steps.PATIENCE


def sla_flow(*, every: timedelta, watches: bool) -> None:
    """Wire one DAG. `every`: the length of its interval; `watches`: it takes snapshots and mails, else it tidies up.

    A red `evaluate` or `snapshot` does not keep the others from their work. `watcher` is the only leaf, so that the run
    ends red when anything above is red, although the tasks before it ran.
    """
    clusters: Any = steps.plan(every_seconds=int(every.total_seconds()), watches=watches)
    plan = clusters["plan"]
    snapshots: Any = steps.snapshot.partial(plan=plan).expand(cluster=clusters)
    job: Any = steps.prepare(plan, snapshots)
    measured = measure(
        job="{{ ti.xcom_pull(task_ids='prepare') }}", store="{{ ti.xcom_pull(task_ids='plan', key='plan')['store'] }}"
    )
    validated = steps.validate(plan, job)
    published = steps.publish(plan, job)
    evaluated = steps.evaluate.partial(plan=plan).expand(batch=steps.slas(plan))
    last: list[Any] = [steps.notify(), steps.announce()] if watches else [steps.maintain_tables(plan)]
    watcher = EmptyOperator(
        task_id="watcher", trigger_rule=TriggerRule.NONE_FAILED, doc="Red when anything above is red."
    )
    job >> measured >> validated >> published >> evaluated >> last >> watcher
    [snapshots, evaluated] >> watcher
