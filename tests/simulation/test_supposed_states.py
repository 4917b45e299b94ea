"""Steady states of SLAs that are only supposed are those that measuring gives, in worlds made of one number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.simulation import kernel
from benchmarks.simulation.facts import facts
from benchmarks.simulation.making import world
from benchmarks.simulation.seeing import plan
from benchmarks.simulation.slas import slas_of
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline.steady_spans import SteadySpans, of_pair, steady_rows
from kafka_sla.spark_jobs.steady_state import SteadyRules

KEY = ("sla", "group", "topic", "partition", "window_start")
SAME = (*KEY, "state", "since", "reason", "steady_whole_window")


@pytest.mark.parametrize("seeds", [range(0, 30), range(710, 740)])
def test_supposed_states_are_the_measured_ones(seeds: range, tmp_path: Path) -> None:
    rows = bootstrapping = 0
    for seed in seeds:
        made = world(seed)
        slas = slas_of(made)
        (into := tmp_path / str(seed)).mkdir()
        landed = kernel.files(into, facts(made, plan(made)))
        measured = kernel.measured(into, landed, made.start, made.end, made.window_ms, slas)
        if not measured:
            continue
        job = kernel.job(into, landed, made.start, made.end, made.window_ms, ())
        spans = SteadySpans(job, [SteadyRules.of(sla) for sla in slas])
        latency = measured[CONSUMER_LATENCY]
        pairs = set(zip(latency["group"].to_pylist(), latency["topic"].to_pylist(), strict=True))
        found = []
        for pair in sorted(pairs):
            of = of_pair(latency, pair)
            found += [steady_rows(sla.name, of, spans.of(SteadyRules.of(sla), pair, of)) for sla in slas]
        ours, theirs = _rows(pa.concat_tables(found)), _rows(measured[STEADY_STATE])
        assert [[row[name] for name in SAME] for row in theirs] == [[row[name] for name in SAME] for row in ours], seed
        rows += len(ours)
        bootstrapping += int(np.count_nonzero([not row["steady_whole_window"] for row in ours]))
    assert rows > 2_000 and bootstrapping > 200


def _rows(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by([(name, "ascending") for name in KEY]).to_pylist()  # type: ignore[no-any-return]
