"""Turns worlds into the files that `kafka-sla import` reads: log offsets and committed offsets."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.stories.clock import LENGTH, MINUTE, SECOND, format_instant
from tests.stories.world import Group, Log, Observer, Reader, Topic, World

LOG_COLUMNS = ("cluster", "topic", "partition", "at", "log_start_offset", "log_end_offset", "source")
COMMIT_COLUMNS = ("cluster", "group", "topic", "partition", "at", "committed_offset", "source")
Row = tuple[object, ...]


def write_facts(folder: Path, worlds: Sequence[World]) -> tuple[Path, Path]:
    """Write `log_offsets.csv` and `committed_offsets.csv` of all worlds."""
    log, commits = folder / "log_offsets.csv", folder / "committed_offsets.csv"
    _write(log, LOG_COLUMNS, (row for world in worlds for row in log_rows(world)))
    _write(commits, COMMIT_COLUMNS, (row for world in worlds for row in commit_rows(world)))
    return log, commits


def _write(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(dict.fromkeys(rows))


def log_rows(world: World) -> Iterator[Row]:
    """What the observers of a world see of each partition's log, and what lookups by timestamp answer."""
    for topic in world.topics:
        for partition, log in enumerate(topic.logs):
            place = (world.name, topic.name, partition)
            for observer in world.observers or [Observer(15 * SECOND)]:
                for row in _polls(world, observer, log):
                    yield *place, *row
            if topic.stamp_skew is not None or topic.epoch_stamps:
                for row in _lookups(topic, log):
                    yield *place, *row


def _polls(world: World, observer: Observer, log: Log) -> Iterator[Row]:
    for moment in observer.moments():
        if log.exists(moment) and not _is_blind(world, moment):
            yield format_instant(observer.clock_at(moment)), log.start(moment), log.end(moment), observer.source


def _lookups(topic: Topic, log: Log) -> Iterator[Row]:
    """What a snapshot each five minutes learns by asking for the offsets of minutes: the first record stamped at or
    after a minute, or the log end at the time of the lookup where no record bears so late a timestamp."""
    interval = 5 * MINUTE
    for looked_up_at in range(interval, LENGTH + 1, interval):
        end = log.end(looked_up_at)
        for minute in range(looked_up_at - interval, looked_up_at + 1, MINUTE):
            offset = end if topic.epoch_stamps else min(end, log.end(minute - (topic.stamp_skew or 0)))
            yield format_instant(minute), "", offset, "list_offsets"


def commit_rows(world: World) -> Iterator[Row]:
    """What the groups of a world commit, or what polls see of it."""
    for group in world.groups:
        for partition, log in enumerate(group.topic.logs):
            if group.partitions is None or partition in group.partitions:
                commits = simulate_reader(group, partition, log)
                for moment, offset, source in _visible(world, group, commits):
                    place = (world.name, group.name, group.topic.name, partition)
                    yield *place, format_instant(moment), max(0, offset + group.offset_error), source


def _visible(world: World, group: Group, commits: list[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    if group.polled is None:
        yield from ((moment, offset, "commit_log") for moment, offset in commits if not _is_blind(world, moment))
        return
    for moment in range(0, LENGTH + 10 * MINUTE, group.polled):
        known = [offset for at, offset in commits if at <= moment]
        if known and not _is_blind(world, moment):
            yield moment, known[-1], "exporter"


def _is_blind(world: World, moment: int) -> bool:
    return any(begin <= moment < end for begin, end in world.is_blind)


def simulate_reader(group: Group, partition: int, log: Log) -> list[tuple[int, int]]:
    """The commits (moment, offset) of one group on one partition, in order; steps of a second."""
    since = max(group.since, log.created)
    reader = Reader(log, _first_position(group, log, since), group.speed_at_first, True, group.commit_every)
    events = sorted((e for e in group.events if e[1] in (None, partition)), key=lambda e: e[0])
    last_commit, last_offset = since - reader.commit_every + group.phase, None
    for second in range(since, LENGTH + 10 * MINUTE, SECOND):
        while events and events[0][0] <= second:
            moment, _, event = events.pop(0)
            event(reader, moment)
        if not reader.is_running or not log.exists(second):
            last_commit = second - reader.commit_every + group.phase
            continue
        end = log.end(second)
        reader.position = max(reader.position, log.start(second))
        reader.position = min(end, reader.position + _step(reader)) if reader.speed is not None else end
        if second - last_commit >= reader.commit_every:
            if group.commits_when_idle or reader.position != last_offset:
                reader.commit(second)
            last_commit, last_offset = second, reader.position
    return sorted(reader.commits, key=lambda commit: commit[0])


def _step(reader: Reader) -> int:
    """Records that it reads in a second."""
    return round(reader.speed or 0)


def _first_position(group: Group, log: Log, since: int) -> int:
    if isinstance(group.first_position, int):
        return group.first_position
    return log.end(since) if group.first_position == "end" else log.start(since)
