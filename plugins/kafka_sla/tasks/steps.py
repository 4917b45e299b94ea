"""The steps of `pipeline` as Airflow tasks: each reads its run from the context, calls one step and says what it did.

Knows Airflow and the pipeline's doors, nothing of Kafka, tables or mails. Heavy imports stay inside the tasks, because
this module is imported each time a DAG file is parsed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import TriggerRule, get_current_context, task

from kafka_sla import errors
from kafka_sla.airflow_versions import AirflowSkipException, not_tried_again
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.model.entities import Connection, Interval
from kafka_sla.tasks.connections import connection, store_of
from kafka_sla.tasks.events import assets
from kafka_sla.tasks.failures import keep_failure
from kafka_sla.tasks.run_context import frozen, read_settings, request_of_run, run_url
from kafka_sla.tasks.run_plan import Batch, Plan, batches, is_live, planned
from kafka_sla.tasks.run_plan import plan as decide

log = logging.getLogger(__name__)

PATIENCE = not_tried_again(
    [errors.SettingsError, errors.BadRequest, errors.ConnectionMissing, errors.ValidationFailed, errors.MissOpen],
    "the next try would end the same way",
)
"""Retry what may heal by itself (a broker, a database, a mail server), nothing else."""


@task
def plan(every_seconds: int, watches: bool) -> list[str]:
    """Decide which interval, clusters and SLAs this run is about, and refuse what cannot be measured.

    The configuration file is read here and nowhere else: the store keeps what it says for the other tasks.
    The plan travels under the XCom key "plan". What is returned are its clusters: Airflow maps tasks over nothing else.
    """
    settings, kept = read_settings()
    request = request_of_run(timedelta(seconds=every_seconds), watches)
    made = decide(settings, kept, request, now := datetime.now(UTC))
    connection("spark_default")
    log.info("Measuring %s: clusters %s; SLAs %s.", planned(made), _list(made["clusters"]), _list(made["slas"]))
    log.info("Snapshot of now: %s. Mails: %s.", _word(is_live(made, now)), _word(made["notify"]))
    get_current_context()["ti"].xcom_push(key="plan", value=made)
    return made["clusters"]


@task
def slas(plan: Plan) -> list[Batch]:
    """The SLAs of the plan in batches, one mapped task each."""
    settings, _ = frozen(plan)
    return batches([settings.sla(name) for name in plan["slas"]])


@task(map_index_template="{{ task.op_kwargs['cluster'] }}", on_failure_callback=keep_failure)
def snapshot(plan: Plan, cluster: str) -> dict[str, Any]:
    """Read what one cluster knows about the interval, and land it as facts."""
    from kafka_sla.pipeline import steps

    settings, store = frozen(plan)
    if plan["stored"]:
        log.info("Nothing is read from Kafka: this run uses stored facts only.")
        return {"cluster": settings.cluster(cluster).name, "notes": []}
    interval, live = planned(plan), is_live(plan, datetime.now(UTC))
    found = steps.snapshot(settings, store, cluster, connection, interval, live=live, progress=log.info)
    _say(f"Read {cluster} for {interval}", found)
    return found


@task(trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS, on_failure_callback=keep_failure)
def prepare(plan: Plan, snapshots: Sequence[dict[str, Any]]) -> str:
    """Write the job of the Spark application, for the clusters that could be read."""
    from kafka_sla.pipeline import steps

    (settings, store), read = frozen(plan), snapshots[:]  # a slice asks Airflow once, where a loop asks until it errs
    clusters = [name for name in plan["clusters"] if name in {s["cluster"] for s in read}]
    if not clusters:
        raise errors.KafkaUnreachable("no cluster could be read; the logs of the snapshot tasks say why")
    if left_out := [name for name in plan["clusters"] if name not in clusters]:
        log.warning("Going on without %s: not read in this run, so its last published data stays.", _list(left_out))
    job = steps.prepare(settings, store, planned(plan), clusters)
    log.info("Spark is to measure %s for %s: %s", _list(clusters), planned(plan), job)
    return job


@task(on_failure_callback=keep_failure)
def validate(plan: Plan, job: str) -> dict[str, Any]:
    """Keep what the expectations said of the staged tables; a critical failure stops the run here."""
    from kafka_sla.pipeline import steps

    found = steps.validate(store_of(plan["store"]), job)
    _say("Expectations", found)
    return found


@task(outlets=list(assets.TABLES), on_failure_callback=keep_failure)
def publish(plan: Plan, job: str) -> dict[str, Any]:
    """Make the whole interval readable at once, and tell the DAGs that wait for the tables."""
    from kafka_sla.pipeline import steps

    found = steps.publish(store_of(plan["store"]), job)
    assets.say_published(get_current_context(), planned(plan), found)
    _say("Published", found)
    return found


@task(map_index_template="{{ task.op_kwargs['batch']['label'] }}", inlets=list(assets.TABLES))
def evaluate(plan: Plan, batch: Batch) -> list[dict[str, Any]]:
    """Judge a batch of SLAs: red when one is missed and says `on_miss: fail`, else green, misses noted in log and XCom.
    One that cannot be judged keeps no other from its verdict, and the store why it was not."""
    from kafka_sla.pipeline import steps

    settings, store = frozen(plan)
    found, failed, notes = [], [], {}
    for sla, outcome in steps.evaluate_all(settings, store, batch["slas"], planned(plan)):
        if isinstance(outcome, Exception):
            log.error("%s was not judged: %s", sla, outcome)
            failed.append(outcome)
            _keep_unjudged(store, sla, planned(plan), outcome)
            continue
        found.append(outcome)
        _say(sla, outcome)
        if note := _missed(outcome):
            notes[sla] = note
            log.warning("%s: %s", sla, note)
    _raise(plan, settings, failed, notes)
    return found


def _keep_unjudged(store: Store, sla: str, interval: Interval, error: Exception) -> None:
    from kafka_sla.pipeline import steps

    try:
        steps.keep_unjudged(store, sla, interval, error)
    except errors.KafkaSlaError as unkept:
        log.error("Why %s was not judged could not be kept: %s", sla, unkept)


def _raise(plan: Plan, settings: Settings, failed: Sequence[Exception], notes: dict[str, str]) -> None:
    """What ends a task of `evaluate` red; notes of misses stay as XCom."""
    if notes:
        get_current_context()["ti"].xcom_push(key="note", value="; ".join(f"{sla}: {n}" for sla, n in notes.items()))
    if failed:
        raise failed[0]
    if red := [f"{sla}: {n}" for sla, n in notes.items() if plan["alarm"] and settings.sla(sla).on_miss == "fail"]:
        raise errors.MissOpen("; ".join(red))


@task(trigger_rule=TriggerRule.ALL_DONE, inlets=list(assets.TABLES))
def notify() -> dict[str, Any]:
    """Notify people of misses and of burns of error budgets, each once, also when an SLA's task above is red."""
    from kafka_sla.pipeline import steps
    from kafka_sla.tasks.events.notifiers import caller

    plan = _plan_that_notifies()
    settings, store = frozen(plan)
    mailed = any(settings.sla(name).recipients for name in plan["slas"])
    smtp, missing = _mail_server(settings) if mailed else (None, None)
    call = caller(get_current_context())
    found = steps.notify(settings, store, plan["slas"], planned(plan), smtp, run_url(settings), call, connection)
    _say("Notified", found)
    if missing:
        raise missing
    return found


def _mail_server(settings: Settings) -> tuple[Connection | None, errors.ConnectionMissing | None]:
    """Without its connection nobody is mailed, and everybody else is told before the task fails."""
    try:
        return connection(settings.smtp_connection) if settings.smtp_connection else None, None
    except errors.ConnectionMissing as missing:
        return None, missing


@task(trigger_rule=TriggerRule.ALL_DONE, inlets=list(assets.TABLES), outlets=[assets.MISSES, assets.BURNS])
def announce() -> dict[str, Any]:
    """Make misses and burns events for other DAGs: a task of its own, for Airflow keeps the events of a task only when
    it succeeds, and a mail that cannot be sent fails `notify`."""
    from kafka_sla.pipeline import steps

    plan, announcer = _plan_that_notifies(), assets.announcer(get_current_context())
    settings, store = frozen(plan)
    found = steps.announce(settings, store, plan["slas"], planned(plan), announcer)
    _say("Announced", found)
    return found


def _plan_that_notifies() -> Plan:
    """The run's plan; the task is skipped when the run has nothing to report."""
    ti = get_current_context()["ti"]
    plan: Plan | None = ti.xcom_pull(task_ids="plan", key="plan")
    if not ti.xcom_pull(task_ids="publish"):
        raise AirflowSkipException("nothing was published in this run, so there is nothing to report")
    if not plan or not plan["notify"]:
        raise AirflowSkipException("this run notifies nobody: a backfill, a past range, or as chosen in the form")
    return plan


@task(trigger_rule=TriggerRule.ALL_DONE)
def maintain_tables(plan: Plan) -> dict[str, Any]:
    """Tidy the lake: drop what newer loads replaced or a killed run left behind, compact, expire old snapshots."""
    from kafka_sla.lake.lake import Lake

    found = asdict(Lake(store_of(plan["store"])).maintain())
    _say("Maintained", found)
    return found


def _missed(found: dict[str, Any]) -> str | None:
    """What to say of a miss in the interval, if there is one."""
    states = {state: ids for state, ids in found["misses"].items() if ids}
    if not states:
        return None
    return f"missed in this interval: {'; '.join(f'{state} ({_list(ids)})' for state, ids in states.items())}"


def _say(what: str, found: dict[str, Any]) -> None:
    """Log counts and notes in plain words."""
    counts = ", ".join(
        f"{key.replace('_', ' ')} {value}" for key, value in found.items() if isinstance(value, int | str)
    )
    log.info("%s: %s", what, counts or "nothing to do")
    for note in (*found.get("warnings", ()), *found.get("notes", ())):
        log.warning("%s: %s", what, note)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _word(yes: bool) -> str:
    return "yes" if yes else "no"
