"""The partitions of one SLA over time as a matrix of worst latencies. Reads nothing, draws nothing."""

from __future__ import annotations

import numpy as np

from kafka_sla.sla.windows.cells import PartitionKey
from kafka_sla.web.queries.schemas import HeatMap
from kafka_sla.web.queries.series import Pieces
from kafka_sla.web.queries.timeline import Floats

ROWS = 120
"""Partitions drawn; of more than these the worst."""


def heat_map(drawn: Pieces) -> HeatMap:
    """The worst partitions first."""
    names, matrix = _matrix(drawn)
    worst = np.nan_to_num(np.nanmax(matrix, axis=1, initial=-1.0, where=~np.isnan(matrix)), nan=-1.0)
    order = sorted(range(len(names)), key=lambda row: (-worst[row], names[row]))[:ROWS]
    return HeatMap(
        sla=drawn.sla.name,
        start=drawn.interval.start,
        end=drawn.interval.end,
        step_ms=drawn.step_ms,
        at_ms=drawn.steps,
        threshold_ms=drawn.thresholds,
        partitions=["{} {}-{}".format(*names[row]) for row in order],
        worst_latency_ms=[[None if v != v else round(v, 1) for v in matrix[row].tolist()] for row in order],
        omitted=len(names) - len(order),
    )


def _matrix(drawn: Pieces) -> tuple[list[PartitionKey], Floats]:
    """A row per partition, a column per step; NaN where nothing is known."""
    cells = [piece.cells() for piece in drawn.found]
    names = sorted({name for mine in {id(mine): mine for mine, _ in cells}.values() for name in mine})
    rows = {name: row for row, name in enumerate(names)}
    matrix = np.full((len(names), len(drawn.steps)), np.nan)
    indexes = {id(mine): np.array([rows[name] for name in mine], dtype=np.int64) for mine, _ in cells}
    for step, (mine, worst) in zip(drawn.indexes.tolist(), cells, strict=True):
        index = indexes[id(mine)]
        matrix[index, step] = np.fmax(matrix[index, step], worst)
    return names, matrix
