"""The registry of metrics: metric table `x` is made by `spark_jobs/x.py`, whose `METRIC` says when and how.

Its suite, reference page and test have the table's name too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from kafka_sla.model.tables import METRICS, Table
from kafka_sla.spark.job_spec import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a metric is made from. Every frame holds the job's clusters only, with groups and topics that their patterns
    select."""

    job: Job
    facts: Callable[[Table], DataFrame]
    """Rows of a fact table, distinct, as far back as `pipeline.planning.load_plan` found them needed."""
    latency: DataFrame
    """The rows of `consumer_latency` of this job's interval."""
    carried: Callable[[Table], DataFrame]
    """Published rows of a metric table whose window ends where the replay of their cluster begins."""


def always(job: Job) -> bool:
    """Every job fills the table."""
    return True


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric table."""

    table: Table
    wanted: Callable[[Job], bool] = always
    """Whether a job is to fill it."""
    measure: Callable[[Inputs], DataFrame] | None = None
    """Makes its rows by Spark expressions; None: the single pass over all events makes them."""


def wanted_metrics(job: Job) -> list[Metric]:
    """The metrics that the job is to fill, in the order of the contracts."""
    registered: list[Metric] = [import_module(f"kafka_sla.spark_jobs.{table.name}").METRIC for table in METRICS]
    return [metric for metric in registered if metric.wanted(job)]
