"""Are the records of transactions counted, and nothing else? Knows rows of `consumer_latency`, and no facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.seeing import Plan
from benchmarks.simulation.truth import WindowTruth
from benchmarks.simulation.visibility import Visibility
from benchmarks.simulation.world import World


def countable(world: World, plan: Plan, visible: Visibility) -> bool:
    """Every record and marker of the runs' time was read, as its broker had written it."""
    partition = visible.reader.partition
    life = partition.lives[0]
    transactional = world.config(partition.topic).transactional and not visible.voids
    kept = len(partition.lives) == 1 and visible.skew_ms == 0 and not life.compacts and not len(life.moved_at)
    all_runs = bool(plan.runs) and "seen: runs are missing" not in plan.features
    return transactional and kept and all_runs and plan.commit_log and not plan.compacted_until


def counted(
    plan: Plan, visible: Visibility, truth: WindowTruth, start: int, row: Mapping[str, Any]
) -> Iterator[Failure]:
    """A window whose records were all written in the runs' time, if it does not count as many as were consumed."""
    reader = visible.reader
    standing = reader.standing(start)
    first = reader.partition.lives[0].log_end(plan.runs[0].start)
    if standing is None or standing.offset is None or standing.offset < first:
        return
    if row["records_consumed"] != len(truth.latencies):
        yield Failure(
            "records of transactions are counted",
            "records_consumed",
            reader.name,
            start,
            str(len(truth.latencies)),
            str(row["records_consumed"]),
        )
