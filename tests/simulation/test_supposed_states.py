"""Steady states of SLAs that are only supposed are those that measuring gives, in worlds made of one number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.simulation import kernel
from benchmarks.simulation.assumed import committed_only
from benchmarks.simulation.facts import facts
from benchmarks.simulation.making import world
from benchmarks.simulation.seeing import plan
from benchmarks.simulation.slas import slas_of
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline.steady_spans import SteadySpans, of_pair, steady_rows

KEY = ("sla", "group", "topic", "partition", "window_start")


def judged_as(row: dict[str, object]) -> list[object]:
    """What a verdict depends on: a contradictory row is not judged either, and why a row is steady does not matter."""
    is_steady = row["state"] == "steady"
    return [*(row[name] for name in KEY), is_steady, row["steady_whole_window"]]


def of_doubt(row: dict[str, object]) -> bool:
    """Whether compaction may have left its beginning out is asked of those that begin with a first commit."""
    return row["state"] == "bootstrapping" and row["reason"] == "first_commit"


@pytest.mark.parametrize("seeds", [range(0, 30), range(710, 740)])
def test_supposed_states_are_the_measured_ones(seeds: range, tmp_path: Path) -> None:
    rows = bootstrapping = 0
    for seed in seeds:
        made = world(seed)
        slas = tuple(replace(sla, allowed_lag=0) for sla in slas_of(made))  # as proposals have it
        (into := tmp_path / str(seed)).mkdir()
        landed = kernel.files(into, facts(made, plan(made)))
        measured = kernel.measured(into, landed, made.start, made.end, made.window_ms, slas)
        if not measured:
            continue
        measured = committed_only(measured)
        job = kernel.job(into, landed, made.start, made.end, made.window_ms, ())
        spans = SteadySpans(job, [sla.steady_state for sla in slas])
        latency = measured[CONSUMER_LATENCY]
        pairs = set(zip(latency["group"].to_pylist(), latency["topic"].to_pylist(), strict=True))
        found = []
        for pair in sorted(pairs):
            of = of_pair(latency, pair)
            found += [steady_rows(sla.name, of, spans.of(sla.steady_state, pair, of)) for sla in slas]
        ours, theirs = _rows(pa.concat_tables(found)), _rows(measured[STEADY_STATE])
        assert list(map(judged_as, theirs)) == list(map(judged_as, ours)), seed
        assert list(map(of_doubt, theirs)) == list(map(of_doubt, ours)), seed
        rows += len(ours)
        bootstrapping += int(np.count_nonzero([not row["steady_whole_window"] for row in ours]))
    assert rows > 2_000 and bootstrapping > 200


def _rows(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by([(name, "ascending") for name in KEY]).to_pylist()  # type: ignore[no-any-return]
