"""Rows of a metric from facts given as rows, also interval by interval with carry-over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Interval, Sla
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS, TOPIC_CONFIGS, Table
from kafka_sla.spark.job_spec import Carried, Job, Replay
from kafka_sla.spark_jobs import consumer_status, group_status, non_consumed
from kafka_sla.spark_jobs.events import frames
from kafka_sla.spark_jobs.metrics import Inputs
from kafka_sla.spark_jobs.single_pass import scope_of
from tests.spark_jobs.conftest import Row, at
from tests.spark_jobs.tasks import BEFORE, chunks_of, files

Facts = Mapping[Table, Sequence[Row]]
Measure = Callable[[Job, Sequence[Row]], Iterator[pa.Table]]
"""Rows of a table from a job and the rows of consumer_latency."""


def status_of(job: Job, _: Sequence[Row]) -> Iterator[pa.Table]:
    """Rows of consumer_status."""
    rules = job.status_rules
    parts = [consumer_status.measure(chunk, scope_of(job), rules) for chunk in chunks_of(job)]
    of_groups = group_status.together(pa.concat_tables(group_status.sums(part) for part in parts))
    yield from (group_status.with_groups(part, of_groups, rules) for part in parts)


def unread_of(job: Job, latency: Sequence[Row]) -> Iterator[pa.Table]:
    """Rows of non_consumed."""
    for chunk in chunks_of(job):
        number = {tuple(key.values()): gp for gp, key in enumerate(chunk.keys.to_pylist())}
        own = [(number.get(tuple(row[name] for name in chunk.keys.column_names)), row) for row in latency]
        mine = sorted([one for one in own if one[0] is not None], key=lambda one: (one[0], one[1]["window_start"]))
        gp, rows = np.array([gp for gp, _ in mine]), arrow_rows(CONSUMER_LATENCY, [row for _, row in mine])
        yield non_consumed.measure(chunk, rows, gp.astype(np.int64), scope_of(job), job)


def of_expressions(spark: SparkSession, measure: Callable[[Inputs], DataFrame]) -> Measure:
    """Rows that Spark expressions make."""

    def run(job: Job, latency: Sequence[Row]) -> Iterator[pa.Table]:
        def fact(table: Table) -> DataFrame:
            return frames.selected(frames.read(spark, table, job.facts.get(table.name, [])), job)

        frame = spark.createDataFrame(arrow_rows(CONSUMER_LATENCY, latency))
        yield measure(Inputs(job, fact, frame, lambda table: frames.carried(spark, job, table))).toArrow()

    return run


@dataclass(frozen=True, slots=True)
class Measuring:
    """One metric table, what makes it, and a folder for the facts."""

    table: Table
    measure: Measure
    folder: Path

    def whole(
        self,
        known: Facts,
        start: float,
        end: float,
        clusters: tuple[Cluster, ...],
        slas: tuple[Sla, ...] = (),
        carried: Sequence[Row] | None = None,
        latency: Sequence[Row] = (),
    ) -> list[Row]:
        """The rows of one interval, by key; `carried`: published rows of the window that ends at its start.

        `latency`: rows of consumer_latency, also of that window.
        """
        before = Carried(at(start), BEFORE) if carried is not None else None
        replays = tuple(Replay(cluster, before) for cluster in clusters)
        carry = files(self.folder, {CONSUMER_LATENCY: latency, self.table: carried or []})
        interval = Interval(at(start), at(end))
        job = Job("load", interval, 60_000, replays, slas, files(self.folder, known), carry, "", {}, 0, 0)
        inside = [row for row in latency if row["window_start"] >= at(start)]
        found = [row for rows in self.measure(job, inside) for row in rows.to_pylist()]
        return sorted(found, key=lambda row: [row[name] for name in self.table.key])

    def in_pieces(
        self,
        known: Facts,
        start: float,
        end: float,
        step: float,
        clusters: tuple[Cluster, ...],
        slas: tuple[Sla, ...] = (),
        latency: Sequence[Row] = (),
    ) -> list[Row]:
        """The same rows from runs of `step` seconds, each of which reads the facts that `preparation` gives it only."""
        rows: list[Row] = []
        for now in np.arange(start, end, step).tolist():
            carried = [row for row in rows if row["window_end"] == at(now)] if now > start else None
            given = _since(known, now) if now > start else known
            mine = [row for row in latency if at(now) <= row["window_end"] and row["window_start"] < at(now + step)]
            rows += self.whole(given, now, now + step, clusters, slas, carried, mine)
        return sorted(rows, key=lambda row: [row[name] for name in self.table.key])


_MARGINS_S = {LOG_OFFSETS.name: 900, TOPIC_CONFIGS.name: 3_600}
"""How long before an interval its facts are read; commits from its start on."""


def _since(known: Facts, start: float) -> Facts:
    return {t: [r for r in rows if r["at"] >= at(start - _MARGINS_S.get(t.name, 0))] for t, rows in known.items()}
