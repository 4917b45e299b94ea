"""The facts that a plan gets out of a world, in the tables of the product. Knows what a broker answers, no truth.

Look-ups by time, and reading windows where points do not suffice, are done by the product's own code.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.simulation.broker import Broker, Client, Offsets, RecordTimes
from benchmarks.simulation.seeing import Plan, Run, edges
from benchmarks.simulation.visibility import kept
from benchmarks.simulation.world import CLUSTER, Commit, Life, Partition, Reader, World
from kafka_sla.model.tables import COMMITTED_OFFSETS, COMPACTED, LOG_OFFSETS, RECORD_RANGES, TOPIC_CONFIGS, Table
from kafka_sla.sources.kafka import fact_rows
from kafka_sla.sources.kafka.committed_positions import Reader as Follower
from kafka_sla.sources.kafka.committed_positions import ReaderNumbers, Track, Tracks
from kafka_sla.sources.kafka.fact_rows import Row, fact_table
from kafka_sla.sources.kafka.produced_timeline import Looking, produced_points
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.record_sampling import Contents
from kafka_sla.sources.kafka.timeline.offset_search import Rule
from kafka_sla.sources.kafka.timeline.transaction_markers import ends_of_records

Facts = dict[Table, pa.Table]
_BEFORE_MS = 3_600_000
"""How long before an interval commits are read."""


def facts(world: World, plan: Plan) -> Facts:
    """All that is landed of a world."""
    rows: dict[Table, list[Row]] = {t: [] for t in (LOG_OFFSETS, RECORD_RANGES, COMMITTED_OFFSETS, TOPIC_CONFIGS)}
    for run in plan.runs:
        points, ranges = _looked_up(world, plan, run)
        rows[LOG_OFFSETS] += points
        rows[RECORD_RANGES] += ranges
        if run.live:
            rows[LOG_OFFSETS] += _ends(world, run.asked)
            rows[COMMITTED_OFFSETS] += _polled(world, run.asked, "snapshot")
            rows[TOPIC_CONFIGS] += _configs(world, run.asked)
    rows[LOG_OFFSETS] += [row for at in plan.points for row in _ends(world, at, "files.import")]
    rows[COMMITTED_OFFSETS] += [row for at in plan.polls for row in _polled(world, at, "files.import")]
    if plan.exact:
        rows[LOG_OFFSETS] += list(_every_record(world))
        rows[RECORD_RANGES] += list(_every_void(world))
        rows[LOG_OFFSETS] += [row for at in edges(world) for row in _ends(world, at)]
    if plan.commit_log:
        rows[COMMITTED_OFFSETS] += [row for reader in world.readers for row in _logged(reader, plan)]
    return {table: fact_table(table, CLUSTER, found) for table, found in rows.items()}


def _logged(reader: Reader, plan: Plan) -> Iterator[Row]:
    """What the commit log keeps."""
    place = (reader.group, reader.partition.topic, reader.partition.number)
    for number, commit in enumerate(kept(reader, plan)):
        yield *place, commit.at, commit.offset, COMPACTED if plan.compacted_until and not number else "commit_log"


def _standing(reader: Reader, at: int) -> Commit | None:
    found = reader.standing(at + 1)
    return found if found and found.offset is not None else None


def _polled(world: World, at: int, source: str) -> Iterator[Row]:
    for reader in world.readers:
        if commit := _standing(reader, at):
            yield reader.group, reader.partition.topic, reader.partition.number, at, commit.offset, source


def _ends(world: World, at: int, source: str = fact_rows.SNAPSHOT) -> Iterator[Row]:
    """Log ends as the broker answers; a snapshot lands those of topics that groups read before transaction markers."""
    broker = Broker(world, at)
    ends = {tp: broker.end(tp) for tp in broker.lives}
    if source == fact_rows.SNAPSHOT:
        read = {TopicPartition(reader.partition.topic, reader.partition.number) for reader in world.readers}
        before_markers = ends_of_records(RecordTimes(broker), read, set(ends.items()))  # type: ignore[arg-type]
        ends = {tp: before_markers[tp, end] for tp, end in ends.items()}
    for tp, end in ends.items():
        yield *tp, at, broker.start(tp), end, source


def _configs(world: World, at: int) -> Iterator[Row]:
    broker = Broker(world, at)
    for config in world.configs:
        lives = [life for tp, life in broker.lives.items() if tp.topic == config.topic]
        if lives:
            kind = "LogAppendTime" if config.log_append_time else "CreateTime"
            yield (
                config.topic,
                at,
                lives[0].topic_id,
                len(lives),
                config.cleanup_policy,
                config.retention_ms,
                kind,
                (0,) * len(lives),
            )


def _polled_lives(world: World) -> Iterator[tuple[Partition, Life]]:
    """Lives whose log end was known at a window's end: nobody knows a record of another one."""
    for partition in world.partitions:
        yield from ((partition, life) for life in partition.lives if life.died > edges(world).start)


def _every_record(world: World) -> Iterator[Row]:
    for partition, life in _polled_lives(world):
        for offset in np.flatnonzero(life.record).tolist():
            stamp = int(life.stamp[offset])
            for o in (offset, offset + 1):
                yield partition.topic, partition.number, stamp, None, o, fact_rows.RECORD


def _every_void(world: World) -> Iterator[Row]:
    for partition, life in _polled_lives(world):
        for offset in np.flatnonzero(~life.record).tolist():
            at = int(life.appended[offset])
            yield partition.topic, partition.number, at, offset, offset + 1, 0, None, None


def _looked_up(world: World, plan: Plan, run: Run) -> tuple[list[Row], list[Row]]:
    """Points and ranges as a snapshot of the run finds them."""
    broker = Broker(world, run.asked)
    offsets, times = Offsets(broker), RecordTimes(broker)
    compacted = {config.topic for config in world.configs if "compact" in config.cleanup_policy}
    contents = Contents(Client(broker), lambda _: 0, plan.min_gap_ms)  # type: ignore[arg-type]
    looking = Looking(
        offsets,
        times,
        Rule(world.window_ms, plan.min_gap_ms, plan.max_gap_ms),
        plan.budget,  # type: ignore[arg-type]
        run.asked,
        offsets.ends(),
        compacted.__contains__,
        _tracks(world, plan, run, broker),
        lambda _: None,
        contents,
        lambda: run.asked,
    )
    points = list(fact_rows.produced(produced_points(looking, run.start, run.end)))
    return points, list(fact_rows.ranges(looking.ranges))


def _tracks(world: World, plan: Plan, run: Run, broker: Broker) -> Tracks:
    found: dict[Follower, Track] = {}
    for reader in world.readers:
        tp = TopicPartition(reader.partition.topic, reader.partition.number)
        if tp not in broker.lives:
            continue
        track = Track()
        if plan.commit_log:
            for commit in reader.commits:
                if run.start - _BEFORE_MS <= commit.at < run.end:
                    track.add(commit.at, commit.offset)
        elif standing := _standing(reader, run.asked):
            track.add(0, standing.offset)
        if len(track.times):
            found[Follower(reader.group, tp)] = track
    return Tracks.named(ReaderNumbers(), found)
