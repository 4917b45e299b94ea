"""The Spark application of one load: measure, stage the tables, validate what was staged.

    spark-submit measure.py --job job.json [--submission ID]

Everything is written below the job's output folder, one sub-folder a table, and stays invisible until the pipeline
publishes it. A second run of the same job overwrites its own folder only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from threading import Thread

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_sla import object_stores
from kafka_sla.files import columns_of, write_rows
from kafka_sla.model.arrow_schemas import arrow_rows, arrow_schema
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    LOG_OFFSETS,
    NON_CONSUMED,
    QUARANTINE,
    STEADY_STATE,
    TABLES,
    VALIDATION_RESULTS,
    Table,
)
from kafka_sla.spark import failures
from kafka_sla.spark.job_spec import Job, read_job
from kafka_sla.spark.submission import Submission
from kafka_sla.spark_jobs import consumer_status, group_status
from kafka_sla.spark_jobs.events.frames import carried, events, read, selected
from kafka_sla.spark_jobs.events.python_workers import map_batches
from kafka_sla.spark_jobs.events.task_ranges import indexes
from kafka_sla.spark_jobs.events.write_files import WRITTEN, Target, keep, one_table, remove_strays, rewriting, writing
from kafka_sla.spark_jobs.metrics import Inputs, wanted_metrics
from kafka_sla.spark_jobs.prechecks.prechecks import of_rows, precheck
from kafka_sla.spark_jobs.single_pass import tables
from kafka_sla.validation import suites

_LARGE_FILE_ROWS = 2_000_000
_OF_METRICS = (CONSUMER_LATENCY, STEADY_STATE, NON_CONSUMED)
_OF_PASS = (*_OF_METRICS, consumer_status.OF_PARTITIONS, group_status.SUMS)

_AT_ONCE = 2
"""Metrics made side by side: most of a small interval's time is spent planning, by one thread a query."""


def measured(job: Job, started: Callable[[], SparkSession]) -> dict[str, int]:
    """Start Spark and run the job, and leave the cause beside it when that fails; answers the number of rows staged per
    table."""
    try:
        session = started()
        failures.clear(job.output)
        return main(job, session)
    except BaseException as error:
        failures.leave(job.output, error)
        raise


def main(job: Job, spark: SparkSession) -> dict[str, int]:
    """Run the job; returns the number of rows staged per table."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    committed = selected(read(spark, COMMITTED_OFFSETS, job.facts[COMMITTED_OFFSETS.name]), job)
    log = selected(read(spark, LOG_OFFSETS, job.facts[LOG_OFFSETS.name]), job)
    rows, kept = _measure(spark, job)
    _stage_others(spark, job, {LOG_OFFSETS.name: log, COMMITTED_OFFSETS.name: committed}, rows)
    return {CONSUMER_LATENCY.name: rows} | _validate(spark, job, log, committed, kept)


def _stage_others(spark: SparkSession, job: Job, known: dict[str, DataFrame], rows: int) -> None:
    """The metrics made by Spark expressions, each by its own module; those that nobody asked for are left out."""
    asked = [(metric.table, metric.measure) for metric in wanted_metrics(job) if metric.measure]
    if not asked:
        return

    def fact(table: Table) -> DataFrame:
        if table.name not in known:
            known[table.name] = selected(read(spark, table, job.facts.get(table.name, [])), job).distinct()
        return known[table.name]

    latency = read(spark, CONSUMER_LATENCY, [f"{job.output}/{CONSUMER_LATENCY.name}"])
    inputs = Inputs(job, fact, latency, lambda table: carried(spark, job, table))

    def stage(table: Table, measure: Callable[[Inputs], DataFrame]) -> None:
        _stage(job, table, measure(inputs), rows)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        staged = [pool.submit(stage, table, measure) for table, measure in asked]
    for one in staged:
        one.result()


def _measure(spark: SparkSession, job: Job) -> tuple[int, set[str]]:
    """Measure the job's interval, and stage what one pass over its events tells; answers the rows of latency, and the
    tables whose rows all passed `prechecks.of_rows`."""
    target = Target(job.output, job.interval.start, job.load_id)
    asked = of_rows(_OF_METRICS)
    written = map_batches(events(spark, job), writing(target, tables(job), asked), WRITTEN).collect()
    paths = {table: [file["path"] for file in written if file["name"] == table.name] for table in _OF_PASS}
    for table in (metric.table for metric in wanted_metrics(job) if metric.table in _OF_METRICS):
        keep(target, table, paths[table])
    _with_groups(spark, job, target, paths)
    rows = sum(int(file["rows"]) for file in written if file["name"] == CONSUMER_LATENCY.name)
    return rows, asked.keys() - {file["name"] for file in written if not file["kept"]}


def _with_groups(spark: SparkSession, job: Job, target: Target, paths: dict[Table, list[str]]) -> None:
    """Stage `consumer_status`: what the tasks found of partitions, and what that says of their groups."""
    of_partitions, sums = paths[consumer_status.OF_PARTITIONS], paths[group_status.SUMS]
    of_groups = group_status.together(columns_of(sums, arrow_schema(group_status.SUMS)))
    finished = partial(group_status.with_groups, of_groups=of_groups, rules=job.status_rules)
    finishing = rewriting(target, CONSUMER_STATUS, of_partitions, finished)
    written = map_batches(indexes(spark, len(of_partitions)), finishing, WRITTEN).collect()
    keep(target, CONSUMER_STATUS, [file["path"] for file in written])
    for table in (consumer_status.OF_PARTITIONS, group_status.SUMS):
        remove_strays(target, table, [])


def _stage(job: Job, table: Table, rows: DataFrame, at_most: int) -> None:
    """Write one table of the load, which has at most so many rows: one file unless it is large."""
    target = Target(job.output, job.interval.start, job.load_id)
    key = [F.col(f"`{n}`") for n in table.key]
    sorted_rows = (
        rows.select([F.col(f"`{n}`") for n in table.names])
        .coalesce(max(1, at_most // _LARGE_FILE_ROWS))
        .sortWithinPartitions(*key)
    )
    written = map_batches(sorted_rows, writing(target, one_table(table)), WRITTEN).collect()
    keep(target, table, [file["path"] for file in written])


def _validate(
    spark: SparkSession, job: Job, log: DataFrame, committed: DataFrame, kept: Collection[str]
) -> dict[str, int]:
    """Validate the staged tables and the interval's facts; stages results and quarantined rows."""
    inside = (F.col("at") >= F.lit(job.interval.start)) & (F.col("at") <= F.lit(job.interval.end))
    made = [metric.table for metric in wanted_metrics(job)]
    frames = {t.name: read(spark, t, [f"{job.output}/{t.name}"]) for t in made} | {
        LOG_OFFSETS.name: log.where(inside),
        COMMITTED_OFFSETS.name: committed.where(inside),
    }
    frames |= {
        name: read(spark, TABLES[name], files).where(inside)
        for name, files in job.facts.items()
        if files and name not in frames
    }
    outcome = suites.validate(
        spark,
        frames,
        load_id=job.load_id,
        interval=job.interval,
        window_ms=job.window_ms,
        slas=job.slas,
        precheck=partial(precheck, spark, job, [table.name for table in made], kept),
    )
    for table, rows in ((VALIDATION_RESULTS, outcome.results), (QUARANTINE, outcome.quarantine)):
        write_rows(f"{job.output}/{table.name}/rows.parquet", arrow_rows(table, rows))
    return {VALIDATION_RESULTS.name: len(outcome.results), QUARANTINE.name: len(outcome.quarantine)}


def _arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    object_stores.from_environment()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", required=True, type=read_job, help="path of the job file that the pipeline wrote")
    parser.add_argument("--submission", help="id of a submission that somebody waits for elsewhere")
    return parser.parse_args(arguments)


def _run(job: Job) -> None:
    began = datetime.now(UTC)
    Thread(target=suites.load, daemon=True).start()
    builder = SparkSession.builder.appName(f"kafka_sla {job.interval}")
    staged = measured(job, builder.getOrCreate)
    print(f"staged {staged} for {job.interval} in {(datetime.now(UTC) - began).total_seconds():.1f} s")
    builder.getOrCreate().stop()


if __name__ == "__main__":
    given = _arguments()
    with Submission(given.job.output, given.submission).reported() if given.submission else nullcontext():
        _run(given.job)
