"""The table `chain_latency`: how long records took through several topics and groups in a row, and where. Bounds and
what they suppose: docs/reference/chain_latency.md.

One task follows all chains of a job: what a stage wrote may come from any partition that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kafka_sla.model.arrow_schemas import arrow_columns
from kafka_sla.model.entities import MeasuredSla, Patterns, Stage
from kafka_sla.model.tables import CHAIN_LATENCY, CONSUMER_LATENCY
from kafka_sla.spark.job_spec import CHAIN_MARGIN, Job, Replay, chain_reach
from kafka_sla.spark_jobs.events.chunks import Chunk, whole_chunk
from kafka_sla.spark_jobs.events.columns import flagged, ints
from kafka_sla.spark_jobs.events.frames import events
from kafka_sla.spark_jobs.events.layouts import CARRIED
from kafka_sla.spark_jobs.events.python_workers import BatchFunction, map_batches
from kafka_sla.spark_jobs.events.sort import TaskEvents, in_order
from kafka_sla.spark_jobs.metrics import Inputs, Metric
from kafka_sla.spark_jobs.numeric.arrays import NONE, Floats, Ints
from kafka_sla.spark_jobs.single_pass import scope_of
from kafka_sla.spark_jobs.windows.chain_waits import (
    ChainWaits,
    Measured,
    StageWaits,
    Worst,
    chain_waits,
    measure_positions,
    middle,
)
from kafka_sla.spark_jobs.windows.origins import StagePlaces

NO_POSITION = "the position of one of its groups is not known, or that of the log end"
OTHER_LIFE = "one of its topics was created again"
NO_INPUT = (
    "a topic got records while the stage before had read none: it holds records back, commits them before it has"
    " written what came of them, or somebody else writes there"
)
FURTHER_BACK = "records are older than they are followed"
WHY = (None, NO_POSITION, OTHER_LIFE, NO_INPUT, FURTHER_BACK)


def wanted(job: Job) -> bool:
    return any(sla.chain for sla in job.slas)


def measure(inputs: Inputs) -> DataFrame:
    """A row per SLA with a chain, stage (0: all of it) and window."""
    job = _of_chains(inputs.job)
    return map_batches(events(inputs.latency.sparkSession, job, 1), following(job), CHAIN_LATENCY.ddl)


def _of_chains(job: Job) -> Job:
    """The job with the facts of its chains only, from where records are followed on, and positions before."""
    slas = tuple(sla for sla in job.slas if sla.chain)
    since = job.interval.start - chain_reach(job.slas) - CHAIN_MARGIN
    replays = tuple(_replay(replay, slas, since) for replay in job.replays)
    carry = {CONSUMER_LATENCY.name: job.carry.get(CONSUMER_LATENCY.name, [])}
    return replace(job, slas=slas, replays=replays, carry=carry, older={})


def _replay(replay: Replay, slas: tuple[MeasuredSla, ...], since: datetime) -> Replay:
    own = [sla for sla in slas if sla.cluster == replay.cluster.name]

    def patterns(names: Callable[[MeasuredSla], Patterns]) -> Patterns:
        return Patterns(tuple(pattern for sla in own for pattern in names(sla).include))

    cluster = replace(replay.cluster, groups=patterns(lambda s: s.groups), topics=patterns(lambda s: s.topics))
    since = min(since, replay.carried.at if replay.carried else since)
    return replace(replay, cluster=cluster, commits_since=since, anew=())


def following(job: Job) -> BatchFunction:
    """A function of the blocks of all events: rows of the table."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = _as_observed(in_order(batches))
        chunk = whole_chunk(found)
        if not chunk.keys.num_rows:
            return  # no group was seen: there is no row, and the SLA says that there is no data
        places = [tuple(place.values()) for place in found.places.to_pylist()]
        known = measure_positions(chunk, scope_of(job))
        for sla in job.slas:
            stages = [_places(chunk, sla.cluster, stage, places) for stage in sla.chain]
            reach = sla.chain_reach // timedelta(microseconds=1)
            waits = chain_waits(known, stages, reach, sla.max_latency_ms)
            yield from _table(sla, known, waits).to_batches()

    return run


def _as_observed(events: TaskEvents) -> TaskEvents:
    """Without carried positions of group-partitions that facts tell of: what came before these is not followed."""
    rows = events.commits.rows
    carried = flagged(rows, CARRIED)
    keys = [kind.place * len(events.groups) + ints(kind.rows, "group") for kind in (events.commits, events.carried)]
    told = keys[0][~carried]
    kept = ~carried | ~np.isin(keys[0], told)
    return replace(events, commits=events.commits.only(kept), carried=events.carried.only(~np.isin(keys[1], told)))


def _places(chunk: Chunk, cluster: str, stage: Stage, places: list[tuple[str, str, int]]) -> StagePlaces:
    keys = zip(*(chunk.keys[name].to_pylist() for name in ("cluster", "group", "topic")), strict=True)
    gp = [number for number, key in enumerate(keys) if key == (cluster, stage.group, stage.topic)]
    known = set(chunk.gp_partition[gp].tolist())
    of_topic = [number for number, place in enumerate(places) if place[:2] == (cluster, stage.topic)]
    without = [number for number in of_topic if number not in known]
    return StagePlaces(np.array(gp, dtype=np.int64), np.array(without, dtype=np.int64))


def _table(sla: MeasuredSla, known: Measured, waits: ChainWaits) -> pa.Table:
    slowest = np.argmax([_longest_wait(stage) for stage in waits.stages], axis=0)
    window, nobody = np.arange(known.windows), np.maximum(waits.whole.records.high, waits.whole.backlog.high) <= 0
    whole = {
        "slowest_stage": pa.array(slowest + 1, mask=nobody),
        "group": pa.array([sla.chain[number].group for number in slowest.tolist()], pa.string()),
        "topic": pa.array([sla.chain[number].topic for number in slowest.tolist()], pa.string()),
        "partition": _known(np.array(waits.partition)[slowest, window]),
        "records_latency_avg_low_ms": _floats(waits.mean.low),
        "records_latency_avg_high_ms": _floats(waits.mean.high),
        "unknown_reason": pa.array(WHY, pa.string()).take(pa.array(waits.why)),
        **{
            f"records_over_threshold{which}": pa.array(count)
            for which, count in zip(("", "_low", "_high"), waits.over, strict=True)
        },
    }
    parts = [_rows(sla, known, waits, 0, waits.whole, whole)]
    for number, stage in enumerate(waits.stages):
        nothing = pa.array(np.zeros(known.windows, dtype=np.int64))
        own = {
            "group": pa.array([sla.chain[number].group] * known.windows, pa.string()),
            "topic": pa.array([sla.chain[number].topic] * known.windows, pa.string()),
            "partition": _known(waits.partition[number]),
            **{f"records_over_threshold{which}": nothing for which in ("", "_low", "_high")},
        }
        parts.append(_rows(sla, known, waits, number + 1, stage, own))
    return pa.concat_tables(parts)


def _rows(
    sla: MeasuredSla, known: Measured, waits: ChainWaits, number: int, of: StageWaits, more: dict[str, pa.Array]
) -> pa.Table:
    count, start = known.windows, known.scope.start + np.arange(known.windows) * known.scope.window
    nulls = {name: pa.nulls(count) for name in CHAIN_LATENCY.names}
    columns = {
        "sla": pa.array([sla.name] * count, pa.string()),
        "cluster": pa.array([sla.cluster] * count, pa.string()),
        "stage": pa.array([number] * count, pa.int32()),
        "window_start": pa.array(start, pa.timestamp("us", "UTC")),
        "window_end": pa.array(start + known.scope.window, pa.timestamp("us", "UTC")),
        "records_consumed": pa.array(waits.consumed),
        **_bounds("records_latency_max", of.records),
        **_bounds("backlog_age", of.backlog),
    }
    return arrow_columns(CHAIN_LATENCY, nulls | columns | more)


def _bounds(name: str, worst: Worst) -> dict[str, pa.Array]:
    values = {"_ms": middle(worst.low, worst.high), "_low_ms": worst.low, "_high_ms": worst.high}
    return {name + which: _floats(of) for which, of in values.items()}


def _longest_wait(stage: StageWaits) -> Floats:
    return np.maximum(middle(stage.records.low, stage.records.high), middle(stage.backlog.low, stage.backlog.high))


def _floats(values: Floats) -> pa.Array:
    """Rounded to µs; nothing and unbounded become null."""
    return pa.array(np.round(values, 3), mask=~np.isfinite(values))


def _known(values: Ints) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=values == NONE)


METRIC = Metric(CHAIN_LATENCY, wanted, measure)
