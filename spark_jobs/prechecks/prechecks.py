"""Which rules of the suites surely hold, going by the files that a job read and the rows that it wrote.

What Great Expectations takes from Spark row by row, Arrow tells in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_sla.files import files_below
from kafka_sla.model.tables import Table
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.prechecks.histogram_sums import Histograms
from kafka_sla.spark_jobs.prechecks.uniqueness import UniqueColumns, rows_are_unique
from kafka_sla.validation.contract_rules import UNIQUE
from kafka_sla.validation.suites import HISTOGRAMS, ExpensiveRule, suite


def of_rows(tables: Iterable[Table]) -> dict[str, Callable[[pa.Table], bool]]:
    """By name of the tables that have expensive rules about single rows: do these rows surely keep them? No proves
    nothing."""
    asked = {table.name: list(_histograms(table)) for table in tables}
    return {name: _all_adding_up(histograms) for name, histograms in asked.items() if histograms}


def _histograms(table: Table) -> Iterator[Histograms]:
    for rule in suite(table.name)["expectations"]:
        if rule["type"] == HISTOGRAMS:
            yield Histograms(**rule["kwargs"])


def _all_adding_up(asked: Sequence[Histograms]) -> Callable[[pa.Table], bool]:
    return lambda rows: all(histograms.add_up(rows) for histograms in asked)


def precheck(
    spark: SparkSession, job: Job, made: Sequence[str], kept: Collection[str], rules: Sequence[ExpensiveRule]
) -> list[bool]:
    """Of each rule: does it hold for all rows of the table's files, which are of the interval and more? No proves
    nothing. `made`: names of the tables that are of this load; the others are facts. `kept`: those of them whose rows
    all passed `of_rows` when they were written."""
    files = {name: [path for path in files_below(f"{job.output}/{name}") if path.endswith(".parquet")] for name in made}
    files |= {rule.table: job.facts.get(rule.table, []) for rule in rules if rule.table not in made}
    holding = set(_unique(spark, files, [rule for rule in rules if rule.type == UNIQUE]))
    holding |= {(rule.table, rule.id) for rule in rules if rule.type == HISTOGRAMS and rule.table in kept}
    return [(rule.table, rule.id) in holding for rule in rules]


def _unique(
    spark: SparkSession, files: dict[str, list[str]], rules: Sequence[ExpensiveRule]
) -> Iterator[tuple[str, str]]:
    asked = [UniqueColumns(files[rule.table], rule.kwargs["column_list"]) for rule in rules]
    for rule, holds in zip(rules, rows_are_unique(spark, asked), strict=True):
        if holds:
            yield rule.table, rule.id
