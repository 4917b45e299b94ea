"""Rows of a metric that is made by expressions, from facts given as rows; also interval by interval with carry-over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from kafka_sla.arrow import arrow_rows
from kafka_sla.job import Carried, Job, Replay
from kafka_sla.model import Cluster, Interval, Sla
from kafka_sla.tables import CONSUMER_LATENCY, LOG_OFFSETS, TOPIC_CONFIGS, Table
from spark_jobs import facts
from spark_jobs.inputs import Inputs
from tests.spark_jobs.conftest import Row, at

Facts = Mapping[Table, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Measuring:
    """One metric table, what makes it, and what it is made for."""

    spark: SparkSession
    table: Table
    measure: Callable[[Inputs], DataFrame]

    def whole(
        self, known: Facts, start: float, end: float, clusters: tuple[Cluster, ...], slas: tuple[Sla, ...] = (),
        carried: Sequence[Row] | None = None, latency: Sequence[Row] = (),
    ) -> list[Row]:  # fmt: skip
        """The rows of one interval, by key; `carried`: published rows of the window that ends at its start."""
        interval = Interval(at(start), at(end))
        before = Carried(at(start), "before") if carried is not None else None
        replays = tuple(Replay(cluster, before) for cluster in clusters)
        job = Job("load", interval, 60_000, replays, slas, {}, {}, {}, "", {}, 0)

        def fact(table: Table) -> DataFrame:
            return facts.selected(self._frame(table, known.get(table, [])), job)

        def carry(table: Table) -> DataFrame:
            return self._frame(table, carried or [] if table is self.table else [])

        found = self.measure(Inputs(job, fact, self._frame(CONSUMER_LATENCY, latency), carry)).toArrow().to_pylist()
        return sorted(found, key=lambda row: [row[name] for name in self.table.key])

    def in_pieces(
        self, known: Facts, start: float, end: float, step: float, clusters: tuple[Cluster, ...],
        slas: tuple[Sla, ...] = (), latency: Sequence[Row] = (),
    ) -> list[Row]:  # fmt: skip
        """The same rows from runs of `step` seconds, each of which reads the facts that `preparation` gives it only."""
        rows: list[Row] = []
        for now in np.arange(start, end, step).tolist():
            carried = [row for row in rows if row["window_end"] == at(now)] if now > start else None
            given = _since(known, now) if now > start else known
            mine = [row for row in latency if at(now) <= row["window_start"] < at(now + step)]
            rows += self.whole(given, now, now + step, clusters, slas, carried, mine)
        return sorted(rows, key=lambda row: [row[name] for name in self.table.key])

    def _frame(self, table: Table, rows: Sequence[Row]) -> DataFrame:
        return self.spark.createDataFrame(arrow_rows(table, rows))


_MARGINS_S = {LOG_OFFSETS.name: 900, TOPIC_CONFIGS.name: 3_600}
"""How long before an interval its facts are read; commits from its start on."""


def _since(known: Facts, start: float) -> Facts:
    return {t: [r for r in rows if r["at"] >= at(start - _MARGINS_S.get(t.name, 0))] for t, rows in known.items()}
