"""Positions that groups are assumed to have on partitions where they have no committed offset.

A group that reads a topic has to read all of its partitions. Where it has committed nothing, it is assumed to stand at
the log end of the moment when it was first seen on the topic, or when the partition was: later records are its duty,
earlier ones are not. This ends with its first commit there; after a deletion, it begins with its next sighting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kafka_sla.spark_jobs.events.columns import ints
from kafka_sla.spark_jobs.events.layouts import CARRIED, CERTAIN, POLLED
from kafka_sla.spark_jobs.events.sort import Sorted, TaskEvents
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.positions import VALID
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, value_at

Applies = Callable[[str, str, str], bool]
"""Whether a group (cluster, group, topic) has to read all partitions of a topic."""
CarriedAt = Callable[[str, str], int | None]
"""When the replay of a topic (cluster, topic) begins, in µs; None: it has no carried rows."""


@dataclass(frozen=True, slots=True)
class AssumedPositions:
    """Events with one assumed position per group of `events.groups`, and until when each holds (µs; FAR: no end)."""

    events: TaskEvents
    until: Ints


@dataclass(frozen=True, slots=True)
class _Spans:
    """Times in which a group has no committed offset on a partition; one entry each, µs."""

    place: Ints
    group: Ints
    at: Ints
    until: Ints
    certain: Bools

    def take(self, index: Ints) -> _Spans:
        return _Spans(*(getattr(self, name)[index] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class _Readers:
    """Groups and the topics that they read, one entry each."""

    group: Ints
    first_place: Ints
    places: Ints
    """How many partitions of the topic follow from `first_place` on."""
    seen: list[Ints]
    """Sorted times of sightings in the replayed facts."""
    certain: Bools
    carried_at: Ints
    """FAR: no carried row knows the group on this topic."""


def assume_positions(events: TaskEvents, applies: Applies, carried_at: CarriedAt, end: int) -> AssumedPositions | None:
    """The assumed positions that hold before `end` (µs); None without any."""
    readers = _readers(events, applies, carried_at)
    found = _without_commit(events, readers)
    again = _after_deletions(events, readers)
    spans = _Spans(*(np.concatenate([getattr(of, name) for of in (found, again)]) for name in _Spans.__slots__))
    spans = spans.take(np.flatnonzero((spans.at < spans.until) & (spans.at < end)))
    return _as_events(events, spans) if len(spans.at) or len(events.assumed.place) else None


def _readers(events: TaskEvents, applies: Applies, carried_at: CarriedAt) -> _Readers:
    rows = events.sightings
    names = list(zip(*(rows[name].to_pylist() for name in ("cluster", "topic", "group")), strict=True))
    at, flags = ints(rows, "at"), rows["flags"].to_numpy()
    of_reader: dict[tuple[str, str, str], list[int]] = {}
    for row, key in enumerate(names):
        of_reader.setdefault(key, []).append(row)
    first, count = _topics(events.places)
    groups = {name: number for number, name in enumerate(events.groups.to_pylist())}
    known = [key for key in sorted(of_reader) if key[:2] in first and applies(key[0], key[2], key[1])]
    index = [np.array(of_reader[key], dtype=np.int64) for key in known]
    carried = [bool((flags[of] & CARRIED).any()) for of in index]
    since = [carried_at(*key[:2]) if is_carried else None for key, is_carried in zip(known, carried, strict=True)]
    return _Readers(
        np.array([groups[key[2]] for key in known], dtype=np.int64),
        np.array([first[key[:2]] for key in known], dtype=np.int64),
        np.array([count[key[:2]] for key in known], dtype=np.int64),
        [np.sort(at[of][flags[of] & CARRIED == 0]) for of in index],
        np.array([bool((flags[of] & CERTAIN).any()) for of in index], dtype=np.bool_),
        np.array([FAR if moment is None else moment for moment in since], dtype=np.int64),
    )


def _topics(places: pa.Table) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """First row of each topic among sorted topic-partitions, and how many it has."""
    first: dict[tuple[str, str], int] = {}
    count: dict[tuple[str, str], int] = {}
    for row, key in enumerate(zip(places["cluster"].to_pylist(), places["topic"].to_pylist(), strict=True)):
        first.setdefault(key, row)
        count[key] = count.get(key, 0) + 1
    return first, count


def _without_commit(events: TaskEvents, readers: _Readers) -> _Spans:
    """From the first sighting of each group on, or the first point of each partition, until the first commit there."""
    reader = np.repeat(np.arange(len(readers.group)), readers.places)
    start = np.cumsum(readers.places) - readers.places
    place = readers.first_place[reader] + np.arange(len(reader)) - start[reader]
    group, seen = readers.group[reader], np.array([of[0] if len(of) else FAR for of in readers.seen], dtype=np.int64)
    point = _first_points(events)[place]
    carried = readers.carried_at[reader]
    is_new = (carried < FAR) & (point >= carried)
    at = np.maximum(np.where(is_new, -FAR, seen[reader]), point)
    own = _first_of(events.commits, len(events.groups), place, group)
    is_known = _first_of(events.assumed, len(events.groups), place, group) < FAR
    at = np.where(is_known, FAR, at)
    return _Spans(place, group, at, own, readers.certain[reader])


def _after_deletions(events: TaskEvents, readers: _Readers) -> _Spans:
    """From the first sighting after a deleted offset on, until the next commit there."""
    commits, points = events.commits, _first_points(events)
    at, group, offset = (ints(commits.rows, name) for name in ("at", "group", "offset"))
    of_place = (
        {
            (place, int(readers.group[n])): n
            for n in range(len(readers.group))
            for place in range(int(readers.first_place[n]), int(readers.first_place[n] + readers.places[n]))
        }
        if (offset == NONE).any()
        else {}
    )
    rows: list[tuple[int, int, int, int, bool]] = []
    for row in np.flatnonzero(offset == NONE).tolist():
        place, number = int(commits.place[row]), int(group[row])
        reader = of_place.get((place, number))
        if reader is None:
            continue
        seen = readers.seen[reader]
        following = int(np.searchsorted(seen, at[row], side="right"))
        has_next = row + 1 < len(at) and commits.place[row + 1] == place and group[row + 1] == number
        until = int(at[row + 1]) if has_next else int(FAR)
        if following < len(seen):
            begin = max(int(seen[following]), int(points[place]))
            rows.append((place, number, begin, until, bool(readers.certain[reader])))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return _Spans(columns[0], columns[1], columns[2], columns[3], columns[4] > 0)


def _first_points(events: TaskEvents) -> Ints:
    """Per topic-partition the time of its first point; FAR without one."""
    first = np.full(events.places.num_rows, FAR)
    np.minimum.at(first, events.points.place, ints(events.points.rows, "at"))
    return first


def _first_of(commits: Sorted, groups: int, place: Ints, group: Ints) -> Ints:
    """The time of the first of these commits of each group on each partition; FAR without one."""
    if not len(commits.place):
        return np.full(len(place), FAR)
    key = commits.place * groups + ints(commits.rows, "group")
    first = np.flatnonzero(begins(key))
    found = np.minimum(np.searchsorted(key[first], place * groups + group), len(first) - 1)
    at = ints(commits.rows, "at")[first][found]
    return np.where(key[first][found] == place * groups + group, at, FAR)


def _as_events(events: TaskEvents, spans: _Spans) -> AssumedPositions:
    """One group for each span, those of carried positions included: a group may have several on a partition."""
    carried = events.assumed
    group = ints(carried.rows, "group")
    until = _first_of(events.commits, len(events.groups), carried.place, group)
    point = last_until(events.points.place, ints(events.points.rows, "at"), spans.place, spans.at)
    offset = value_at(ints(events.points.rows, "offset"), point)
    place = np.concatenate([carried.place, spans.place])
    name = np.concatenate([group, spans.group])
    at = np.concatenate([ints(carried.rows, "at"), spans.at])
    order = np.lexsort((at, name, place))
    flags = np.where(spans.certain, CERTAIN, POLLED).astype(np.uint8)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    columns = {
        "group": number,
        "at": at,
        "offset": np.concatenate([ints(carried.rows, "offset"), offset]),
        "flags": np.concatenate([carried.rows["flags"].to_numpy(), flags]),
        "invalid": np.concatenate([carried.rows["invalid"].to_numpy(), np.full(len(spans.at), VALID)]).astype(np.int8),
    }
    commits = pa.table({n: columns[n] for n in events.commits.rows.column_names}).take(pa.array(order))
    of_carried = carried.rows.set_column(
        carried.rows.column_names.index("group"), "group", pa.array(number[: len(carried.place)])
    )
    by_group = np.lexsort((number[: len(carried.place)], carried.place))
    wanted = np.unique(place)
    made = replace(
        events,
        groups=events.groups.take(pa.array(name[order])),
        points=events.points.only(np.isin(events.points.place, wanted)),
        ranges=events.ranges.only(np.isin(events.ranges.place, wanted)),
        commits=Sorted(commits, place[order]),
        carried=Sorted(of_carried.take(pa.array(by_group)), carried.place[by_group]),
        status=events.status.between(0, 0),
        unread=events.unread.between(0, 0),
    )
    return AssumedPositions(made, np.concatenate([until, spans.until])[order])
