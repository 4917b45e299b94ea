"""One pass over one cluster: what Kafka knows of an interval, as facts. Knows no store, no schedule and no Spark."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from kafka.errors import AuthorizationError, KafkaError

from kafka_sla.kafka import fact_rows
from kafka_sla.kafka.client import TAKE_OVER_S, Client
from kafka_sla.kafka.commit_log import TOPIC, Commits, read_commits
from kafka_sla.kafka.contents import Contents
from kafka_sla.kafka.diagnosis import words_of
from kafka_sla.kafka.fact_rows import Row, fact_table
from kafka_sla.kafka.groups import see_groups
from kafka_sla.kafka.kept import kept_rows, kept_tracks, standing
from kafka_sla.kafka.markers import before_markers, transactional_topics
from kafka_sla.kafka.members import count_members
from kafka_sla.kafka.offsets import Offsets
from kafka_sla.kafka.positions import Reader, Track
from kafka_sla.kafka.produced import Looking, produced_points
from kafka_sla.kafka.record_times import RecordTimes
from kafka_sla.kafka.share_groups import read_share_lags
from kafka_sla.kafka.timeline import Rule
from kafka_sla.kafka.topics import Topic, TopicConfig, TopicPartition, read_configs, read_topics
from kafka_sla.model import Cluster, Connection, Interval, KeptPosition, LookUps, Patterns, epoch_ms
from kafka_sla.tables import (
    COMMITTED_OFFSETS,
    GROUP_STATES,
    LOG_OFFSETS,
    RECORD_RANGES,
    SHARE_LAGS,
    TOPIC_CONFIGS,
    UNCHANGED,
)

LOOK_BACK = timedelta(hours=1)
"""How long before an interval its commits are read too, where nothing is known, so that the last one before it is."""

_READER = 3
"""Values of a row that name the reader: group, topic, partition."""
_OBJECTS = 100_000
"""New objects after which Python looks for cycles of dead ones. A pass makes millions that live to its end: to look
after every 700, as usual, took a third of its time."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Facts that fit their table contracts, and raw commits for Spark to decode."""

    log_offsets: pa.Table
    record_ranges: pa.Table
    committed_offsets: pa.Table
    group_states: pa.Table
    share_lags: pa.Table
    topic_configs: pa.Table
    commit_records: pa.Table
    """key, value (null: a tombstone), appended_at of offset commits from the look back before the interval to its
    end."""
    notes: tuple[str, ...]
    """What could not be read and why, for people."""
    look_ups: int


@dataclass(slots=True)
class _Now:
    """What is there now. Empty when the pass is not live."""

    ends: list[Row] = field(default_factory=list)
    groups: list[Row] = field(default_factory=list)
    shares: list[Row] = field(default_factory=list)
    listed: frozenset[str] = frozenset()
    configs: list[Row] = field(default_factory=list)
    committed: list[Row] = field(default_factory=list)
    positions: dict[Reader, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one pass is about and asks with."""

    client: Client
    interval: Interval
    groups: Patterns
    matching: Patterns
    """Which topics."""
    topics: Mapping[str, Topic]
    configs: Mapping[str, TopicConfig]
    offsets: Offsets
    notes: list[str]
    since: int
    """From when on commits are read (ms)."""

    def may_be_compacted(self, topic: str) -> bool:
        """True also where the settings may not be read."""
        return topic not in self.configs or self.configs[topic].compacted


def snapshot(
    cluster: Cluster, connection: Connection, interval: Interval, *, window_ms: int, groups: Patterns,
    topics: Patterns, live: bool, look_ups: LookUps, progress: Progress | None = None,
    kept: Sequence[KeptPosition] = (), look_back: timedelta = LOOK_BACK,
) -> Snapshot:  # fmt: skip
    """Everything that Kafka can tell of the interval. Raises KafkaUnreachable when it cannot be asked.

    `live` also observes what is there now: commits first and ends second, so that lag may be overstated but is never
    negative. Without it the answer depends on Kafka's logs alone, not on when it is asked. `kept` are positions of
    consumers of this cluster that are not in its commit log: they become facts too, and are looked at as closely.
    Commits are read from `look_back` before the interval on.
    """
    rule = Rule(window_ms, look_ups.floor_ms, look_ups.max_gap_ms)
    with _rarely_looking_for_garbage(), Client(cluster, connection) as client:
        try:
            scope = _scope(client, interval, groups, topics, epoch_ms(interval.start - look_back))
            return _read(scope, rule, look_ups.per_pass, live, kept, progress or _silent)
        except KafkaError as error:
            raise client.unreachable(
                f"{words_of(error)}; run it again, and see the broker's log if that does not help"
            ) from error


@contextmanager
def _rarely_looking_for_garbage() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _scope(client: Client, interval: Interval, groups: Patterns, matching: Patterns, since: int) -> _Scope:
    topics = read_topics(client, matching)
    configs, notes = read_configs(client, topics)
    if not topics:
        notes.append(
            "no topic matches, or none may be seen: correct the configuration, or grant DESCRIBE on the topics"
        )
    return _Scope(client, interval, groups, matching, topics, configs, Offsets(client, topics), notes, since)


def _read(
    scope: _Scope, rule: Rule, per_slice: int, live: bool, kept: Sequence[KeptPosition], progress: Progress
) -> Snapshot:
    began, cluster = _now_ms(), scope.client.cluster.name
    now, commits = _seen(scope, live)
    progress(f"{len(scope.topics)} topics, {len(now.groups)} groups, {len(now.positions)} committed offsets")
    unchanged = _unchanged(scope, now, commits)
    times = RecordTimes(scope.client, scope.topics)
    there = set(scope.offsets.partitions)
    elsewhere = kept_tracks(kept, there)
    rows = [
        *_proven(now.committed, unchanged),
        *unchanged,
        *kept_rows(kept, there, epoch_ms(scope.interval.start - LOOK_BACK)),
    ]
    if live:
        rows += standing(elsewhere, epoch_ms(scope.interval.start), began)
    tracks = _tracks(scope, now, commits, unchanged) | elsewhere
    contents = Contents(scope.client, scope.offsets.leader, rule.floor_ms)
    looking = Looking(scope.offsets, times, rule, per_slice, began, scope.may_be_compacted, tracks, progress, contents)
    points = produced_points(looking, epoch_ms(scope.interval.start), epoch_ms(scope.interval.end))
    found = list(fact_rows.produced(points))
    return Snapshot(
        log_offsets=fact_table(LOG_OFFSETS, cluster, [*_ends_of_records(looking, now.ends), *found]),
        record_ranges=fact_table(RECORD_RANGES, cluster, fact_rows.ranges(looking.ranges)),
        committed_offsets=fact_table(COMMITTED_OFFSETS, cluster, rows),
        group_states=fact_table(GROUP_STATES, cluster, now.groups),
        share_lags=fact_table(SHARE_LAGS, cluster, now.shares),
        topic_configs=fact_table(TOPIC_CONFIGS, cluster, now.configs),
        commit_records=(commits or Commits()).table(),
        notes=(*scope.notes, *scope.offsets.notes(), *times.notes(), *contents.notes(), *_unfinished(looking)),
        look_ups=scope.offsets.look_ups + times.look_ups + contents.look_ups,
    )


def _seen(scope: _Scope, live: bool) -> tuple[_Now, Commits | None]:
    """What is there now, and the commits. Both are read again while the log knows groups that no broker lists: a
    coordinator that is about to take over lists nothing, and does not say so."""
    for pause_s in (*TAKE_OVER_S, None):
        noted = len(scope.notes)
        now = _observe(scope) if live else _Now()
        commits = _commits(scope, live)
        absent = sorted(commits.groups() - now.listed) if live and commits else []
        if not absent:
            break
        if pause_s is None:
            scope.notes.append(
                f"{len(absent)} groups have commits, but no broker lists them now (for instance {absent[0]!r}): their"
                " states and present offsets are not in this snapshot; the next one looks again"
            )
            break
        del scope.notes[noted:]
        scope.client.pause(pause_s)
    return now, commits


def _observe(scope: _Scope) -> _Now:
    groups, committed = see_groups(scope.client, scope.groups, scope.matching)
    committed_at = _now_ms()
    if not groups:
        scope.notes.append(
            "no group matches, or none may be seen: correct the configuration, or grant DESCRIBE on the groups"
        )
    members = count_members(scope.client, groups)
    lags, unread = read_share_lags(scope.client, groups, scope.matching)
    starts = scope.offsets.starts()  # before the ends: a start read later may lie beyond an end read earlier
    ends = scope.offsets.ends()
    ends_at = _now_ms()
    scope.notes.extend([*committed.notes, *unread])
    return _Now(
        ends=list(fact_rows.ends_seen(ends, starts, ends_at)),
        groups=list(fact_rows.groups_seen(groups, members, committed_at)),
        shares=list(fact_rows.shares_seen(lags, ends, ends_at)),
        listed=frozenset(group.name for group in groups),
        configs=list(fact_rows.topics_seen(scope.topics, scope.configs, ends_at)),
        committed=list(fact_rows.committed_seen(committed.offsets, committed_at)),
        positions={Reader(group, tp): at for group, seen in committed.offsets.items() for tp, at in seen.items()},
    )  # fmt: skip


def _commits(scope: _Scope, live: bool) -> Commits | None:
    """The commit log around the interval; None, with a note, where it may not be read."""
    end = epoch_ms(scope.interval.end)
    try:
        commits = read_commits(scope.client, scope.groups, scope.matching, scope.since, end, to_now=live)
    except AuthorizationError as error:
        scope.notes.append(
            f"the commit log {TOPIC} may not be read ({words_of(error)}): committed offsets are known from snapshots of"
            f" now only, at five-minute steps instead of at every commit; grant READ on topic {TOPIC}"
        )
        return None
    if commits.unreadable:
        scope.notes.append(
            f"{commits.unreadable} records of {TOPIC} are laid out like no commit that Kafka 0.9 to 4.3 writes: they"
            " are set aside, unreadable_commit_records in the folder of the load holds them"
        )
    if commits.lost:
        scope.notes.append(
            f"{TOPIC} was compacted: what {commits.lost} readers committed before the first commit that is kept of each"
            " is lost; where that leaves open whether a consumer was bootstrapping, verdicts are unknown"
        )
    if commits.held_back:
        scope.notes.append(
            f"{commits.held_back} partitions of {TOPIC} end in a transaction that is still open: commits behind it are"
            " read by the next pass"
        )
    return commits


def _unchanged(scope: _Scope, now: _Now, commits: Commits | None) -> list[Row]:
    """Rows for readers without a commit in what was read: where they are now is where they were at its start, as the
    commit log proves. Mere polls would leave open whether they moved."""
    if commits is None or commits.held_back:
        return []
    return [
        (reader.group, *reader.tp, scope.since, position, UNCHANGED)
        for reader, position in now.positions.items()
        if reader not in commits.tracks and reader not in commits.later
    ]


def _proven(seen: list[Row], unchanged: list[Row]) -> Iterator[Row]:
    """The positions of now, those of readers without commits as what the commit log proves to be unchanged."""
    silent = {row[:_READER] for row in unchanged}
    for row in seen:
        yield (*row[:-1], UNCHANGED) if row[:_READER] in silent else row


def _tracks(scope: _Scope, now: _Now, commits: Commits | None, unchanged: list[Row]) -> dict[Reader, Track]:
    """Positions over time: from commits, and for readers without any from where they are now."""
    if commits is None:
        return {reader: _standing(0, position) for reader, position in now.positions.items()}
    still = {Reader(group, TopicPartition(*tp)): _standing(at, position) for group, *tp, at, position, _ in unchanged}
    return {**commits.tracks, **still}


def _standing(since: int, position: int) -> Track:
    track = Track()
    track.add(since, position)
    return track


def _ends_of_records(looking: Looking, rows: list[Row]) -> Iterator[Row]:
    """The ends that were seen, before the markers of transactions where groups read."""
    ends = {TopicPartition(topic, partition): end for topic, partition, _, _, end, _ in rows}
    transactional = transactional_topics(looking.times, {reader.tp for reader in looking.tracks}, ends)
    for topic, partition, at, start, end, source in rows:
        told = {end: end}
        if topic in transactional:
            told = before_markers(looking.times, TopicPartition(topic, partition), told)
        yield topic, partition, at, start, told[end], source


def _unfinished(looking: Looking) -> list[str]:
    if not looking.unfinished:
        return []
    return [
        f"{looking.unfinished} gaps were left wide because {looking.per_slice} look-ups per hour were spent;"
        " raise look_ups.per_pass or select fewer topics"
    ]


def _now_ms() -> int:
    return epoch_ms(datetime.now(UTC))


def _silent(_: str) -> None:
    """Progress that nobody watches."""
