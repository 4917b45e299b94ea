"""The measuring task: spark-submit, or a standing Spark, by an Airflow connection. Knows Spark's settings, not what is
measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import psutil
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context

from kafka_sla import object_stores
from kafka_sla.errors import SettingsError, SparkFailed
from kafka_sla.model.entities import Connection
from kafka_sla.spark.conf import spark_conf
from kafka_sla.spark.job_spec import read_job
from kafka_sla.spark.needs import need_a_named_user
from kafka_sla.spark.package_zip import application, code_zip
from kafka_sla.spark.processes import end
from kafka_sla.spark.submission import Submission
from kafka_sla.tasks.connections import connection, store_of
from kafka_sla.tasks.driver_trigger import DriverTrigger
from kafka_sla.tasks.failures import keep_failure

CONNECTION = "spark_default"
STANDING = "spark_connect"
"""Type of a connection to a standing Spark."""
POOL = "KAFKA_SLA_SPARK_POOL"
"""Environment variable: the Airflow pool whose slots bound how many Spark applications of all DAGs run at once."""
_LONGEST, _BEGINS_WITHIN, _NO_TRIGGERER = timedelta(hours=2), timedelta(minutes=20), timedelta(minutes=2)
_SUBMIT_ONLY = {
    "spark.yarn.submit.waitAppCompletion": "false",
    "spark.yarn.maxAppAttempts": "1",
    "spark.kubernetes.submission.waitAppCompletion": "false",
}
"""In cluster mode spark-submit ends once the application is accepted, and it is Airflow that tries again."""


class MeasureOperator(SparkSubmitOperator):
    """spark-submit with this project's code, which is zipped where the task runs: any worker will do. `store`: the
    connection of the store whose warehouse holds the job. In cluster mode the task submits and then waits in the
    triggerer; where the connection is one of Spark Connect, it measures on that server."""

    template_fields = (*SparkSubmitOperator.template_fields, "store")

    def __init__(self, *, store: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.store = store
        self._end: Callable[[], Any] | None = None
        self._submission: Submission | None = None

    def execute(self, context: Context) -> None:
        store_of(self.store)
        spark = connection(self._conn_id)
        if spark.conn_type == STANDING:
            self._measure_standing(spark)
        else:
            self._submit(spark, context)

    def _measure_standing(self, spark: Connection) -> None:
        from kafka_sla.spark_jobs.standing import measure_standing

        *_, job = self.application_args or [""]
        own = {name: str(value) for name, value in spark.extra.items() if name.startswith("spark.sql.")}
        staged = measure_standing(SparkConnectHook(self._conn_id).get_connection_url(), job, own, self._remember)
        self.log.info("Staged %s", staged)

    def _remember(self, end: Callable[[], Any]) -> None:
        self._end = end

    def _submit(self, spark: Connection, context: Context) -> None:
        need_a_named_user()
        self.application = str(application())
        self.py_files = str(code_zip())
        _check(spark)
        *_, job = self.application_args or [""]
        self.env_vars = client_environment(spark, job)
        own = {name: str(value) for name, value in spark.extra.items() if name.startswith("spark.")}
        self.conf = {**spark_conf(job, local_driver=self.env_vars is not None), **(self.conf or {}), **own}
        if _in_cluster_mode(spark):
            self._submit_and_wait(context, job, own)
        super().execute(context)

    def _submit_and_wait(self, context: Context, job: str, own: dict[str, str]) -> NoReturn:
        self._submission = submission = Submission.new(read_job(job).output)
        self.application_args = ["--job", job, "--submission", submission.id]
        self.conf = {**(self.conf or {}), **_SUBMIT_ONLY, **own}
        super().execute(context)
        hook, now = self._hook, datetime.now(UTC)
        known = (hook._yarn_application_id, hook._kubernetes_driver_pod) if hook else ()
        trigger = DriverTrigger(
            store=self.store,
            output=submission.output,
            submission=submission.id,
            name=next(filter(None, known), "the Spark application"),
            begin_by=(now + _BEGINS_WITHIN).isoformat(),
            until=(now + _LONGEST).isoformat(),
        )
        self.defer(trigger=trigger, method_name="ended", timeout=_LONGEST + _NO_TRIGGERER)

    def _get_hook(self) -> SparkSubmitHook:
        """Of drivers in Kubernetes the hook wants to know how they ended, also where it is not to wait for that."""
        hook = super()._get_hook()
        if self._submission:
            hook._spark_exit_code = 0
        return hook

    def ended(self, context: Context, event: str) -> None:
        """The driver elsewhere has ended: `event` says why the job was not measured, and nothing where it was."""
        if event:
            raise SparkFailed(event)

    def on_kill(self) -> None:
        """Airflow kills spark-submit only, and its Python processes would go on until they miss it; a standing Spark
        hears of nothing."""
        if self._end:
            self._end()
        if self._submission:
            self._submission.withdraw()
        mine = [child for child in psutil.Process().children() if self.application in child.cmdline()]
        for child in mine:
            end(child)
        super().on_kill()


def measure(job: str, store: str) -> MeasureOperator:
    """The task that runs the job file of the store (both templates). One application a DAG at a time: Spark starts are
    expensive."""
    return MeasureOperator(
        store=store,
        task_id="measure",
        conn_id=CONNECTION,
        name="kafka_sla {{ run_id }}",
        application_args=["--job", job],
        conf={"spark.driver.memory": "{{ params.driver_memory }}"},
        pool=os.environ.get(POOL, "default_pool"),
        max_active_tis_per_dag=1,
        on_failure_callback=keep_failure,
        durable=False,  # a retry starts anew: it overwrites its own folder only, and YARN's cluster mode refuses True
        execution_timeout=_LONGEST,
    )


def _check(spark: Connection) -> None:
    if _in_cluster_mode(spark) and _is_local_or_standalone(spark):
        raise SettingsError(
            f"the connection {spark.id!r} says deploy-mode cluster, in which Spark runs Python on YARN and Kubernetes"
            " only: leave it out, and the driver runs where the task runs"
        )
    if "k8s://" in f"{spark.conn_type}://{spark.host}" and not getattr(spark_submit, "kube_client", None):
        raise SettingsError(
            f"the connection {spark.id!r} names a Kubernetes, for which workers need Airflow's provider of it:"
            " pip install apache-airflow-providers-cncf-kubernetes"
        )


def _in_cluster_mode(spark: Connection) -> bool:
    return "cluster" in (spark.extra.get("deploy-mode"), spark.extra.get("spark.submit.deployMode"))


def _is_local_or_standalone(spark: Connection) -> bool:
    in_parts = spark.conn_type == "spark" and spark.port is not None and "://" not in (spark.host or "")
    return (spark.host or "").startswith(("local", "spark://")) or in_parts


def client_environment(spark: Connection, job: str) -> dict[str, str] | None:
    """What the driver needs when it runs here (local or standalone, client mode): this Python, this spark-submit.

    YARN, Kubernetes and cluster mode start the driver elsewhere, where paths of this machine mean nothing.
    """
    master = spark.host or ""
    if not _is_local_or_standalone(spark) or _in_cluster_mode(spark):
        return None
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    found = {
        **object_stores.environment(job),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable),
    }
    return found | ({"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {})
