"""What a metric is made from: the facts of the job, the latency measured in it, and carried rows. Knows no metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from kafka_sla.model.tables import Table
from kafka_sla.spark.job_spec import Job


@dataclass(frozen=True, slots=True)
class Inputs:
    """Every frame holds the job's clusters only, with groups and topics that their patterns select."""

    job: Job
    facts: Callable[[Table], DataFrame]
    """Rows of a fact table, distinct, as far back as `preparation` found them needed."""
    latency: DataFrame
    """The rows of `consumer_latency` of this job's interval."""
    carried: Callable[[Table], DataFrame]
    """Published rows of a metric table whose window ends where the replay of their cluster begins."""
