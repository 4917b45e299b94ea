"""Which rules of the suites surely hold, going by the files that a job read and wrote. Knows no rule, but their types.

What Great Expectations takes from Spark row by row, Arrow tells from files in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from kafka_sla.files import bytes_of, files_below
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.prechecks.histogram_sums import Histograms, histograms_add_up
from kafka_sla.spark_jobs.prechecks.uniqueness import UniqueColumns, rows_are_unique
from kafka_sla.validation.contract_rules import UNIQUE
from kafka_sla.validation.suites import HISTOGRAMS, ExpensiveRule

_WORTH_A_PRECHECK = 2_000_000
"""Bytes of files with histograms: of less, Spark has interpreted every bucket before it has begun another stage."""


def precheck(spark: SparkSession, job: Job, made: Sequence[str], rules: Sequence[ExpensiveRule]) -> list[bool]:
    """Of each rule: does it hold for all rows of the table's files, which are of the interval and more? No proves
    nothing. `made`: names of the tables that are of this load; the others are facts."""
    files = {name: [path for path in files_below(f"{job.output}/{name}") if path.endswith(".parquet")] for name in made}
    files |= {rule.table: job.facts.get(rule.table, []) for rule in rules if rule.table not in made}
    holding = set(_unique(spark, files, [rule for rule in rules if rule.type == UNIQUE]))
    large = [rule for rule in rules if rule.type == HISTOGRAMS and bytes_of(files[rule.table]) > _WORTH_A_PRECHECK]
    for rule in large:
        columns = (rule.kwargs[name] for name in ("histogram", "beside", "total"))
        if histograms_add_up(spark, Histograms(files[rule.table], *columns)):
            holding.add((rule.table, rule.id))
    return [(rule.table, rule.id) in holding for rule in rules]


def _unique(
    spark: SparkSession, files: dict[str, list[str]], rules: Sequence[ExpensiveRule]
) -> Iterator[tuple[str, str]]:
    asked = [UniqueColumns(files[rule.table], rule.kwargs["column_list"]) for rule in rules]
    for rule, holds in zip(rules, rows_are_unique(spark, asked), strict=True):
        if holds:
            yield rule.table, rule.id
