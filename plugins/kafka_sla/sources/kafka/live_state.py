"""What a pass sees: what is there now, and the commits of the interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from kafka.errors import AuthorizationError, UnknownTopicOrPartitionError

from kafka_sla.model.entities import epoch_ms
from kafka_sla.sources.kafka import fact_rows
from kafka_sla.sources.kafka.commit_records import Commits
from kafka_sla.sources.kafka.committed_positions import Ints, Tracks, positions_of
from kafka_sla.sources.kafka.consumer_offsets import TOPIC, LookupsRefused, read_commits
from kafka_sla.sources.kafka.fact_rows import Row
from kafka_sla.sources.kafka.protocol.client import TAKE_OVER_S
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.group_members import describe_members
from kafka_sla.sources.kafka.protocol.groups import see_groups
from kafka_sla.sources.kafka.protocol.share_groups import read_share_lags
from kafka_sla.sources.kafka.snapshot_scope import SnapshotScope


@dataclass(slots=True)
class Now:
    """What is there now. Empty when the pass is not live."""

    ends: list[Row] = field(default_factory=list)
    groups: list[Row] = field(default_factory=list)
    members: list[Row] = field(default_factory=list)
    shares: list[Row] = field(default_factory=list)
    listed: frozenset[str] = frozenset()
    configs: list[Row] = field(default_factory=list)
    committed_at: int = 0
    """When the positions were seen (ms)."""
    readers: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Numbers of those that have a position."""
    positions: Ints = field(default_factory=lambda: np.empty(0, np.int64))


def seen(scope: SnapshotScope, live: bool) -> tuple[Now, Commits | None]:
    """What is there now, and the commits. Both are read again while the log knows groups that no broker lists: a
    coordinator that is about to take over lists nothing, and does not say so."""
    for pause_s in (*TAKE_OVER_S, None):
        noted = len(scope.notes)
        now = _observe(scope) if live else Now()
        commits = _commits(scope, live, now)
        absent = sorted(commits.groups - now.listed) if live and commits else []
        if not absent:
            break
        if pause_s is None:
            scope.notes.append(
                f"{len(absent)} groups have commits, but no broker lists them now (for instance {absent[0]!r}): their"
                " states and present offsets are not in this snapshot; the next one reads them again"
            )
            break
        del scope.notes[noted:]
        scope.client.pause(pause_s)
    return now, commits


def _observe(scope: SnapshotScope) -> Now:
    groups, committed = see_groups(scope.client, scope.groups, scope.matching)
    committed_at = now_ms()
    if not groups:
        scope.notes.append(
            "no group matches, or none may be seen: correct the configuration, or grant DESCRIBE on the groups"
        )
    members = describe_members(scope.client, groups, scope.topics)
    lags, unread = read_share_lags(scope.client, groups, scope.matching)
    starts = scope.offsets.starts()  # before the ends: a start read later may lie beyond an end read earlier
    ends = scope.offsets.ends()
    ends_at = now_ms()
    scope.notes.extend([*committed.notes, *unread])
    readers, positions = positions_of(scope.numbers, committed.by_topic())
    return Now(
        ends=list(fact_rows.ends_seen(ends, starts, ends_at)),
        groups=list(fact_rows.groups_seen(groups, members, committed_at)),
        members=list(fact_rows.members_seen(members, scope.matching, committed_at)),
        shares=list(fact_rows.shares_seen(lags, ends, ends_at)),
        listed=frozenset(group.name for group in groups),
        configs=list(fact_rows.topics_seen(scope.topics, scope.configs, ends_at)),
        committed_at=committed_at,
        readers=readers,
        positions=positions,
    )


def _commits(scope: SnapshotScope, live: bool, now: Now) -> Commits | None:
    """The commit log around the interval; None, with a note, where it may not be read.

    Services that hide it answer that there is none. That is believed only while nobody has committed anything.
    """
    end = epoch_ms(scope.interval.end)
    try:
        commits = read_commits(scope.client, scope.numbers, scope.groups, scope.matching, scope.since, end, to_now=live)
    except (AuthorizationError, LookupsRefused, UnknownTopicOrPartitionError) as error:
        if isinstance(error, UnknownTopicOrPartitionError) and not len(now.positions):
            return Commits(Tracks.named(scope.numbers, {}))
        sample = "give the cluster sample_every"
        remedy = sample if isinstance(error, LookupsRefused) else f"grant READ on topic {TOPIC}, or {sample}"
        scope.notes.append(
            f"the commit log {TOPIC} may not be read ({words_of(error)}): committed offsets are known from snapshots of"
            f" now only, once a run instead of at every commit; {remedy}"
        )
        return None
    if strange := commits.unreadable.num_rows:
        scope.notes.append(
            f"{strange} records of {TOPIC} are laid out like no commit that Kafka 0.9 to 4.3 writes: they"
            " are set aside, unreadable_commit_records in the warehouse holds them for a day"
        )
    if commits.lost:
        scope.notes.append(
            f"{TOPIC} was compacted: what {commits.lost} readers committed before the first commit that is kept of each"
            " is lost; where that leaves open whether a consumer was bootstrapping, verdicts are unknown"
        )
    return commits


def now_ms() -> int:
    """The clock of this machine, epoch ms."""
    return epoch_ms(datetime.now(UTC))
