"""One pass over one cluster: what Kafka knows of an interval, as facts."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
from kafka.errors import KafkaError

from kafka_sla.model.entities import Cluster, Connection, Interval, KeptPosition, OffsetLookups, Patterns, epoch_ms
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    GROUP_MEMBERS,
    GROUP_STATES,
    LOG_OFFSETS,
    OPEN_TRANSACTIONS,
    RECORD_RANGES,
    SHARE_LAGS,
    TOPIC_CONFIGS,
)
from kafka_sla.sources.kafka import fact_rows
from kafka_sla.sources.kafka.commit_records import Commits
from kafka_sla.sources.kafka.committed_positions import Reader, Tracks, beyond_end
from kafka_sla.sources.kafka.external_positions import kept_rows, kept_tracks, standing
from kafka_sla.sources.kafka.fact_rows import Row, fact_table
from kafka_sla.sources.kafka.live_state import now_ms, seen
from kafka_sla.sources.kafka.produced_timeline import Looking, produced_points
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import what_to_do, words_of
from kafka_sla.sources.kafka.protocol.record_timestamps import RecordTimes
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.record_sampling import Contents
from kafka_sla.sources.kafka.snapshot_scope import SnapshotScope, scope_of
from kafka_sla.sources.kafka.timeline.offset_search import Rule
from kafka_sla.sources.kafka.timeline.open_transactions import describe_open_transactions
from kafka_sla.sources.kafka.timeline.transaction_markers import ends_of_records
from kafka_sla.sources.kafka.unchanged_positions import positions_seen, tracks, unchanged
from kafka_sla.text.formatting import plural, span

LOOK_BACK = timedelta(hours=1)
"""How long before an interval its commits are read too, where nothing is known, so that the last one before it is."""

_OBJECTS = 100_000
"""New objects after which Python looks for cycles of dead ones. A pass makes millions that live to its end: to look
after every 700, as usual, took a third of its time."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Facts that fit their table contracts."""

    log_offsets: pa.Table
    record_ranges: pa.Table
    open_transactions: pa.Table
    committed_offsets: pa.Table
    """What was seen, and what is known from elsewhere."""
    commits: pa.Table
    """Rows of `committed_offsets` too: what the commit log tells, from the look back before the interval to its end."""
    unreadable_commits: pa.Table
    """Records of the commit log that are laid out like no commit that is known."""
    group_states: pa.Table
    group_members: pa.Table
    share_lags: pa.Table
    topic_configs: pa.Table
    sees_topics: bool
    """Whether there is a topic that matches and may be seen: nothing is measured without."""
    sees_consumers: bool
    """Whether a group may be seen, or the log of all commits, or positions are known from elsewhere. A pass that is not
    live does not look for groups, and says True."""
    notes: tuple[str, ...]
    """What could not be read and why, for people."""
    offset_lookups: int


def snapshot(
    cluster: Cluster,
    connection: Connection,
    interval: Interval,
    *,
    window_ms: int,
    groups: Patterns,
    topics: Patterns,
    live: bool,
    offset_lookups: OffsetLookups,
    progress: Progress | None = None,
    kept: Sequence[KeptPosition] = (),
    look_back: timedelta = LOOK_BACK,
) -> Snapshot:
    """Everything that Kafka can tell of the interval. Raises KafkaUnreachable when it cannot be asked.

    `live` also observes what is there now: commits first and ends second, so that lag may be overstated but is never
    negative. Without it the answer depends on Kafka's logs alone, not on when it is asked. `kept` are positions of
    consumers of this cluster that are not in its commit log: they become facts too, and are looked at as closely.
    Commits are read from `look_back` before the interval on.
    """
    rule = Rule(window_ms, offset_lookups.min_gap_ms, offset_lookups.max_gap_ms)
    with _rarely_looking_for_garbage(), Client(cluster, connection) as client:
        try:
            scope = scope_of(client, interval, groups, topics, epoch_ms(interval.start - look_back))
            return _read(scope, rule, offset_lookups.max_per_hour, live, kept, progress or _silent)
        except KafkaError as error:
            advice = what_to_do(error, "run it again, and see the broker's log if that does not help")
            raise client.unreachable(f"{words_of(error)}; {advice}") from error


@contextmanager
def _rarely_looking_for_garbage() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _read(
    scope: SnapshotScope, rule: Rule, per_slice: int, live: bool, kept: Sequence[KeptPosition], progress: Progress
) -> Snapshot:
    began, cluster = now_ms(), scope.client.cluster.name
    now, commits = seen(scope, live)
    progress(f"{len(scope.topics)} topics, {len(now.groups)} groups, {len(now.positions)} committed offsets")
    there = scope.offsets.ends()  # after the commits: what lies beyond was no position
    scope.offsets.find_without_times(there)
    still = unchanged(now, commits)
    times = RecordTimes(scope.client, scope.topics)
    elsewhere = kept_tracks(kept, there)
    rows = [*kept_rows(kept, there, epoch_ms(scope.interval.start - LOOK_BACK))]
    if live:
        rows += standing(elsewhere, epoch_ms(scope.interval.start), began)
    followed = tracks(now, commits, still, scope.since, scope.numbers) | Tracks.named(scope.numbers, elsewhere)
    beyond = beyond_end(followed, there)
    contents = Contents(scope.client, scope.offsets.leader, rule.min_gap_ms)
    looking = Looking(
        scope.offsets,
        times,
        rule,
        per_slice,
        began,
        there,
        scope.may_be_compacted,
        followed,
        progress,
        contents,
        now_ms,
    )
    points = produced_points(looking, epoch_ms(scope.interval.start), epoch_ms(scope.interval.end))
    found = list(fact_rows.produced(points))
    transactions, unknown_producers = _open_transactions(looking, live)
    known = (commits or Commits(followed)).marked({reader.tp: end for reader, (_, end) in beyond.items()})
    seen_now = positions_seen(cluster, now, still, scope.since, scope.numbers, there)
    return Snapshot(
        log_offsets=fact_table(LOG_OFFSETS, cluster, [*_ends_of_records(looking, now.ends), *found]),
        record_ranges=fact_table(RECORD_RANGES, cluster, fact_rows.ranges(looking.ranges)),
        open_transactions=fact_table(OPEN_TRANSACTIONS, cluster, transactions),
        committed_offsets=pa.concat_tables([seen_now, fact_table(COMMITTED_OFFSETS, cluster, rows)]),
        commits=known.offsets,
        unreadable_commits=known.unreadable,
        group_states=fact_table(GROUP_STATES, cluster, now.groups),
        group_members=fact_table(GROUP_MEMBERS, cluster, now.members),
        share_lags=fact_table(SHARE_LAGS, cluster, now.shares),
        topic_configs=fact_table(TOPIC_CONFIGS, cluster, now.configs),
        sees_topics=bool(scope.topics),
        sees_consumers=bool(not live or now.groups or kept or commits is not None),
        notes=(
            *scope.notes,
            *_beyond_end(beyond),
            *scope.offsets.notes(),
            *_without_times(scope.offsets.without_times),
            *times.notes(),
            *contents.notes(),
            *unknown_producers,
            *_long_open(transactions),
            *_unfinished(looking),
        ),
        offset_lookups=scope.offsets.offset_lookups + times.offset_lookups + contents.offset_lookups,
    )


def _ends_of_records(looking: Looking, rows: list[Row]) -> Iterator[Row]:
    """The ends that were seen, before the markers of transactions where groups read."""
    ends = {(TopicPartition(topic, partition), end) for topic, partition, _, _, end, _ in rows}
    told = ends_of_records(looking.times, looking.read, ends)
    for topic, partition, at, start, end, source in rows:
        yield topic, partition, at, start, told[TopicPartition(topic, partition), end], source


def _open_transactions(looking: Looking, live: bool) -> tuple[list[Row], list[str]]:
    """Rows of the partitions in which a transaction has been open for longer than a window, and notes on what could not
    be read. Only a live pass can see them."""
    held_back = looking.contents.held_back if live else {}
    leaders = {tp: leader for tp in held_back if (leader := looking.offsets.leader(tp)) is not None}
    if not leaders:
        return [], []
    opened, notes = describe_open_transactions(looking.contents.client, leaders)
    first_records = looking.times.at((tp, transaction.start_offset) for tp, transaction in opened.items())
    now, rows = now_ms(), []
    for tp, offsets in sorted(held_back.items()):
        transaction = opened.get(tp)
        first = first_records.get((tp, transaction.start_offset)) if transaction else None
        if first is None or first.timestamp <= now - looking.rule.window_ms:
            producer = (transaction.producer_id, transaction.transactional_id) if transaction else (None, None)
            rows.append((*tp, now, *offsets, *producer, first.timestamp if first else None))
    return rows, notes


def _long_open(rows: Sequence[Row]) -> list[str]:
    """In words, with the transaction that has been open for longest."""
    if not rows:
        return []
    topic, partition, at, _, _, producer, _, since = min(rows, key=lambda row: (row[-1] is None, row[-1] or 0))
    open_for = "" if since is None else f", open for {span(at - since)}"
    return [
        f"{plural(len(rows), 'partition')} with a transaction that has been open for longer than a window (for instance"
        f" {topic}-{partition}, producer id {producer}{open_for}): read_committed groups wait before it"
    ]


def _beyond_end(beyond: Mapping[Reader, tuple[int, int]]) -> list[str]:
    """In words, with an example."""
    if not beyond:
        return []
    reader, (highest, end) = min(beyond.items())
    return [
        f"{len(beyond)} readers committed offsets beyond the log end: these are no positions, and where the readers"
        f" stand is unknown until they commit others (for instance {highest} of group {reader.group!r}"
        f" in {reader.tp.topic}-{reader.tp.partition}, which ends at {end}); reset their offsets"
    ]


def _without_times(partitions: Set[TopicPartition]) -> list[str]:
    if not partitions:
        return []
    example = min(partitions)
    return [
        f"offsets cannot be looked up by time in {len(partitions)} partitions (for instance {example.topic}, partition"
        f" {example.partition}): log ends are known from polls only; give the cluster sample_every"
    ]


def _unfinished(looking: Looking) -> list[str]:
    if not looking.unfinished:
        return []
    return [
        f"{looking.unfinished} gaps were left wide because {looking.per_slice} offset lookups per hour were spent;"
        " raise offset_lookups.max_per_hour or select fewer topics"
    ]


def _silent(_: str) -> None:
    """Progress that nobody watches."""
