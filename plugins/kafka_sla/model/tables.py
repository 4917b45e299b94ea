"""Every table that this project writes: name, columns (Spark DDL), key, time column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

LATENCY_BUCKET_GAMMA = 1.02
"""Ratio of neighbouring histogram bucket edges: a bucket's middle is at most 1 % from any value in it."""
COMPACTED = "compacted_commit_log"
"""Source of a commit that may not be its group's first, although no earlier one is kept."""
POLL_CONFIRMED = "poll_confirmed"
"""Source of a position that was polled, and that a log of all commits proves to have held from `at` on."""
BEYOND_LOG_END = "beyond_log_end"
"""Source of a commit that is no position: its offset was beyond the log end, which was read after it."""
LARGEST_OFFSET = 2**48
"""A partition that gets a million records a second reaches it after nine years: what is larger is no offset."""
EVERY_COMMIT = ("commit_log", COMPACTED, BEYOND_LOG_END, "mm2_offsets", "spark_checkpoint")
"""Sources that have every commit, each at its own time. All others are polled now and then."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """Spark SQL type: STRING, INT, BIGINT, DOUBLE, BOOLEAN, TIMESTAMP (UTC, microseconds), MAP<INT, BIGINT>, or an ARRAY
    of BIGINT or TIMESTAMP."""
    nullable: bool
    comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table contract. `time` is the column that an interval selects rows by; `kind` says who may write it."""

    name: str
    kind: Literal["fact", "metric", "ledger"]
    key: tuple[str, ...]
    time: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def ddl(self) -> str:
        """Spark schema string of all columns."""
        return ", ".join(f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns)


def ddl_columns(text: str) -> tuple[Column, ...]:
    """Parse lines of `name TYPE [NOT NULL] -- comment`."""
    line = re.compile(r"(\w+)\s+([A-Z]+(?:<[^>]+>)?)( NOT NULL)?\s+-- (.+)")
    found = [line.fullmatch(row.strip()) for row in text.strip().splitlines()]
    return tuple(Column(m[1], m[2], m[3] is None, m[4]) for m in found if m)


LOG_OFFSETS = Table(
    "log_offsets",
    "fact",
    ("cluster", "topic", "partition", "at", "log_end_offset", "source"),
    "at",
    "Points of the produced timeline: every record with a smaller offset than log_end_offset was produced before `at`.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        topic STRING NOT NULL            -- topic
        partition INT NOT NULL           -- partition
        at TIMESTAMP NOT NULL            -- when, UTC
        log_start_offset BIGINT          -- first readable offset; null where the source does not have it
        log_end_offset BIGINT NOT NULL   -- offset the next record gets
        source STRING NOT NULL           -- snapshot (polled now), list_offsets (looked up by timestamp), record (a record's own timestamp), or an imported file's word
    """),
)

RECORD_RANGES = Table(
    "record_ranges",
    "fact",
    ("cluster", "topic", "partition", "at", "first_offset", "end_offset", "records", "earliest", "latest"),
    "at",
    "Ranges of offsets for which points do not suffice: timestamps run backwards there, or not every offset is a record.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        topic STRING NOT NULL            -- topic
        partition INT NOT NULL           -- partition
        at TIMESTAMP NOT NULL            -- end of the window that the range was read for, UTC
        first_offset BIGINT NOT NULL     -- first offset of the range
        end_offset BIGINT NOT NULL       -- offset after its last one
        records BIGINT                   -- records in it, 0: only markers of transactions and what aborted ones wrote; null: not read
        earliest TIMESTAMP               -- no record of it bears a smaller timestamp; null: not known
        latest TIMESTAMP                 -- no record of it bears a larger timestamp; null: not known
    """),
)

OPEN_TRANSACTIONS = Table(
    "open_transactions",
    "fact",
    ("cluster", "topic", "partition", "at"),
    "at",
    "Partitions that groups read, in which a snapshot saw a transaction that had been open for longer than a window.",
    ddl_columns("""
        cluster STRING NOT NULL              -- cluster name of the configuration
        topic STRING NOT NULL                -- topic
        partition INT NOT NULL               -- partition
        at TIMESTAMP NOT NULL                -- when it was seen, UTC
        last_stable_offset BIGINT NOT NULL   -- read_committed groups can read what lies before it
        log_end_offset BIGINT NOT NULL       -- the high watermark: read_uncommitted groups can read what lies before it
        producer_id BIGINT                   -- producer of the oldest open transaction; null: not known
        transactional_id STRING              -- its transactional.id; null: no coordinator lists it, or the login may not see it
        open_since TIMESTAMP                 -- timestamp of the transaction's first record in the partition; null: not known
    """),
)

COMMITTED_OFFSETS = Table(
    "committed_offsets",
    "fact",
    ("cluster", "group", "topic", "partition", "at", "committed_offset", "source"),
    "at",
    "Points of the committed timeline: from `at` on, committed_offset is the next offset the group reads.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        group STRING NOT NULL            -- consumer group
        topic STRING NOT NULL            -- topic
        partition INT NOT NULL           -- partition
        at TIMESTAMP NOT NULL            -- commit time (of sources that have every commit) or time it was seen, UTC
        committed_offset BIGINT          -- next offset to read; null: the offset was deleted or expired
        source STRING NOT NULL           -- every commit: commit_log (from __consumer_offsets), compacted_commit_log (one of these, the first that is kept; compaction may have removed earlier ones), mm2_offsets (a replication flow), spark_checkpoint, beyond_log_end (one of these that is no position: the log ended before it); polled, and proven by such a log to hold from `at` on: poll_confirmed; polled: snapshot, connect_rest, and any other word of an imported file
    """),
)

GROUP_STATES = Table(
    "group_states",
    "fact",
    ("cluster", "group", "at"),
    "at",
    "What a snapshot saw of each consumer group.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        group STRING NOT NULL            -- consumer group
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        type STRING NOT NULL             -- classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)
        state STRING NOT NULL            -- Kafka's word: Stable, Empty, Dead, PreparingRebalance, …
        members INT                      -- members; null where the broker does not report them
    """),
)

GROUP_MEMBERS = Table(
    "group_members",
    "fact",
    ("cluster", "group", "member", "topic", "at"),
    "at",
    "What a snapshot saw of each member of a consumer group: who reads which partitions, and where it runs.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        group STRING NOT NULL            -- consumer group
        member STRING NOT NULL           -- id that the broker gave to the member
        topic STRING NOT NULL            -- topic that it reads partitions of; empty: no partition is assigned to it
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        client STRING NOT NULL           -- its client.id
        host STRING NOT NULL             -- host that it connects from, as the broker sees it
        partitions ARRAY<BIGINT> NOT NULL -- partitions of the topic that are assigned to it
    """),
)

SHARE_LAGS = Table(
    "share_lags",
    "fact",
    ("cluster", "group", "topic", "partition", "at"),
    "at",
    "What a snapshot saw of each share group's partitions (KIP-932): a lag in records, never one in time.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        group STRING NOT NULL            -- share group
        topic STRING NOT NULL            -- topic
        partition INT NOT NULL           -- partition
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        start_offset BIGINT              -- the group is done with all before it, as the broker last kept it; null: it has not read yet
        log_end_offset BIGINT            -- offset the next record gets
        records_lag BIGINT               -- records that the group is not done with, as the broker counts them
        unknown_reason STRING            -- why the lag in records is null; null when it is known
        no_time_lag STRING NOT NULL      -- why there is no lag in time
    """),
)

TOPIC_CONFIGS = Table(
    "topic_configs",
    "fact",
    ("cluster", "topic", "at"),
    "at",
    "What a snapshot saw of each topic's configuration.",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        topic STRING NOT NULL            -- topic
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        topic_id STRING                  -- Kafka's topic id; changes when a topic is recreated
        partitions INT NOT NULL          -- partitions
        cleanup_policy STRING NOT NULL   -- delete, compact or compact,delete
        retention_ms BIGINT              -- retention.ms; null: unlimited
        message_timestamp_type STRING NOT NULL -- CreateTime or LogAppendTime
        leaders ARRAY<BIGINT>            -- id of the broker that leads each partition, from partition 0 on; -1: none did; null: not recorded
    """),
)

BROKER_REQUESTS = Table(
    "broker_requests",
    "fact",
    ("cluster", "broker", "request", "at"),
    "at",
    "Running totals of a broker's own request metrics, as its JMX exporter showed them (KIP-736).",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        broker INT NOT NULL              -- broker id
        request STRING NOT NULL          -- Kafka's word: FetchFollower (replicas), FetchConsumer
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        started_at TIMESTAMP             -- start of the broker's process: totals begin anew with it; null where the exporter does not report it
        requests BIGINT NOT NULL         -- requests answered so far
        total_ms DOUBLE NOT NULL         -- sum of their TotalTimeMs
        remote_ms DOUBLE NOT NULL        -- sum of their RemoteTimeMs: the wait in the purgatory
        local_ms DOUBLE NOT NULL         -- sum of their LocalTimeMs
    """),
)

REPLICA_FETCHES = Table(
    "replica_fetches",
    "fact",
    ("cluster", "follower", "leader", "fetcher_thread", "at"),
    "at",
    "Running totals of a follower's fetches from one leader, as the follower's JMX exporter showed them (KIP-736).",
    ddl_columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        follower INT NOT NULL            -- id of the broker that fetches
        leader INT NOT NULL              -- id of the broker that answers
        fetcher_thread INT NOT NULL      -- number of the fetcher thread: there is one unless num.replica.fetchers is raised
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        started_at TIMESTAMP             -- start of the follower's process; null where the exporter does not report it
        responses BIGINT NOT NULL        -- answers received so far
        io_wait_ms DOUBLE NOT NULL       -- time spent waiting for them so far
    """),
)

CONSUMER_LATENCY = Table(
    "consumer_latency",
    "metric",
    ("cluster", "group", "topic", "partition", "window_start"),
    "window_start",
    "How long records waited from being produced to being read and committed, per group-partition and window (KIP-489).",
    ddl_columns("""
        cluster STRING NOT NULL                 -- cluster name of the configuration
        group STRING NOT NULL                   -- consumer group
        topic STRING NOT NULL                   -- topic
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        records_consumed BIGINT NOT NULL        -- offsets the group moved over in the window, less those known to be no records
        records_latency_ms DOUBLE               -- latency of the last record consumed in the window
        records_latency_low_ms DOUBLE           -- its low bound
        records_latency_high_ms DOUBLE          -- its high bound; null: unbounded
        records_latency_max_ms DOUBLE           -- largest latency of the records consumed in the window
        records_latency_max_low_ms DOUBLE       -- its low bound
        records_latency_max_high_ms DOUBLE      -- its high bound; null: unbounded
        records_latency_avg_ms DOUBLE           -- mean latency of the records consumed in the window
        records_latency_avg_low_ms DOUBLE       -- its low bound
        records_latency_avg_high_ms DOUBLE      -- its high bound; null: unbounded
        latency_histogram MAP<INT, BIGINT>      -- records per logarithmic bucket i: latency in (1.02^(i-1), 1.02^i] ms, bucket 0 is [0, 1] ms
        negative_latency_records BIGINT NOT NULL -- records whose produced time is after their commit, even at best or by their own timestamp (clock skew); in no latency
        unknown_latency_records BIGINT NOT NULL -- records without any produced time; in no latency
        records_lag BIGINT                      -- log end offset less effective position, at the window's end
        records_lag_max BIGINT                  -- largest lag seen in the window
        backlog_age_ms DOUBLE                   -- age of the oldest record not yet consumed at the window's end; 0 when caught up
        backlog_age_low_ms DOUBLE               -- its low bound
        backlog_age_high_ms DOUBLE              -- its high bound; null: unbounded
        backlog_age_max_ms DOUBLE               -- largest backlog age in the window
        backlog_age_max_low_ms DOUBLE           -- its low bound
        backlog_age_max_high_ms DOUBLE          -- its high bound; null: unbounded
        assumed_offset BIGINT                   -- for a group without a committed offset here: the log end when it was first seen on the topic, or the partition was
        committed_offset BIGINT                 -- committed offset at the window's end; null: it has none
        effective_position BIGINT               -- max(committed offset, log start offset) at the window's end
        log_start_offset BIGINT                 -- log start offset known at the window's end
        log_end_offset BIGINT                   -- log end offset known at the window's end
        last_commit_at TIMESTAMP                -- time of the last commit before the window's end; of a polled or assumed position: since when it is known
        polled_only BOOLEAN NOT NULL            -- the position is known from polls only: the group may have moved since the last one, unseen, and low bounds allow for it
        append_delay_ms DOUBLE                  -- records of the window's time were at least this old when they were appended to the log; null: not known to be late
        stamped_ahead_ms DOUBLE                 -- records with timestamps in the window were appended at least this long before them (clock ahead); null: none known
        truncated_records BIGINT                -- records lost at the end of the log in the window, at least: an unclean leader election; null: none known
        method STRING                           -- the weakest evidence used: record, bracketed, observed (by polled log ends), interpolated, extrapolated; null when nothing was consumed
        unknown_reason STRING                   -- why the lag is null; null when it is known
    """),
)

STEADY_STATE = Table(
    "steady_state",
    "metric",
    ("sla", "cluster", "group", "topic", "partition", "window_start"),
    "window_start",
    "Per SLA: is the group-partition bootstrapping or steady, since when and why.",
    ddl_columns("""
        sla STRING NOT NULL                     -- SLA whose steady_state keys apply
        cluster STRING NOT NULL                 -- cluster name of the configuration
        group STRING NOT NULL                   -- consumer group
        topic STRING NOT NULL                   -- topic
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        state STRING NOT NULL                   -- at the window's end: steady, or bootstrapping; contradictory: in the window two programs seemed to commit
        since TIMESTAMP NOT NULL                -- instant of the last change of state
        reason STRING NOT NULL                  -- what changed it: first_commit, rewind, returned, topic_recreated; caught_up, grace_period_over, not_catching_up, contradiction_over
        steady_whole_window BOOLEAN NOT NULL      -- steady during the whole window: only such windows can break an SLA
        records_due BIGINT NOT NULL             -- records that were due in the window: max_latency after they were produced, read or not
        records_late BIGINT NOT NULL            -- of these, records that the group had not committed by then
        records_late_low BIGINT NOT NULL        -- its low bound
        records_late_high BIGINT NOT NULL       -- its high bound
        rewound_from BIGINT                     -- offset reached before the last step back, until the group is past it again
        rewound_at TIMESTAMP                    -- last rewind, if it is not longer ago than a progress deadline
        rewinds BIGINT                          -- rewinds until then, each within a progress deadline of the one before
        progress_at TIMESTAMP                   -- while bootstrapping: when the backlog last was smaller than ever since the beginning
        lowest_age_ms DOUBLE                    -- while bootstrapping: smallest backlog age since the beginning
        lowest_lag BIGINT                       -- while bootstrapping: smallest lag since the beginning
    """),
)

CHAIN_LATENCY = Table(
    "chain_latency",
    "metric",
    ("sla", "cluster", "stage", "window_start"),
    "window_start",
    "How long records took through several topics and groups in a row, per SLA with a chain, stage and window.",
    ddl_columns("""
        sla STRING NOT NULL                     -- SLA with the chain
        cluster STRING NOT NULL                 -- cluster name of the configuration
        stage INT NOT NULL                      -- 0: the whole chain; 1 and on: what this stage adds
        group STRING NOT NULL                   -- group of the stage; of the whole chain: that of the slowest stage
        topic STRING NOT NULL                   -- topic that it reads
        partition INT                           -- its partition on which records waited longest; null: no record did
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        slowest_stage INT                       -- stage that adds most, of the whole chain; null: of a stage, or nothing is known
        records_consumed BIGINT NOT NULL        -- records that the last stage committed in the window
        records_latency_max_ms DOUBLE           -- largest time that one of them took: from the first topic to the last commit; of a stage: from its topic to the next one, of the last one to its commit; the middle of the bounds
        records_latency_max_low_ms DOUBLE       -- its low bound
        records_latency_max_high_ms DOUBLE      -- its high bound; null: unbounded
        records_latency_avg_low_ms DOUBLE       -- low bound of their mean
        records_latency_avg_high_ms DOUBLE      -- high bound of their mean; null: unbounded
        backlog_age_ms DOUBLE                   -- age of the oldest record in the chain at the window's end, since it came into the first topic; of a stage: since it came into its topic; 0: none waits; the middle of the bounds
        backlog_age_low_ms DOUBLE               -- its low bound
        backlog_age_high_ms DOUBLE              -- its high bound; null: unbounded
        records_over_threshold BIGINT NOT NULL  -- of the records, those above max_latency by the middle of their bounds; of a stage: 0
        records_over_threshold_low BIGINT NOT NULL -- those that surely were
        records_over_threshold_high BIGINT NOT NULL -- those that may have been
        unknown_reason STRING                   -- why a high bound is missing; null: all are known
    """),
)

CONSUMER_STATUS = Table(
    "consumer_status",
    "metric",
    ("cluster", "group", "topic", "partition", "window_start"),
    "window_start",
    "Is the consumer alive and keeping up, by Burrow's rules over its last commits, at each window's end.",
    ddl_columns("""
        cluster STRING NOT NULL                 -- cluster name of the configuration
        group STRING NOT NULL                   -- consumer group
        topic STRING NOT NULL                   -- topic
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive: the instant of the evaluation
        status STRING NOT NULL                  -- OK, WARNING, STOPPED, STALLED, REWIND or NOTFOUND
        complete DOUBLE NOT NULL                -- share of the evaluated commits that are there, 0 to 1
        group_status STRING NOT NULL            -- of all its partitions: OK, WARNING, ERROR or NOTFOUND
        group_complete DOUBLE NOT NULL          -- of all its partitions, 0 to 1
        reason STRING NOT NULL                  -- the rule that decided, in words
        lag BIGINT                              -- log end offset less committed offset at the window's end; null while no log end offset is known
        log_end_offset BIGINT                   -- log end offset known at the window's end
        last_commit_at TIMESTAMP NOT NULL       -- newest evaluated commit
        last_seen_at TIMESTAMP NOT NULL         -- newest commit or poll that showed the group's position
        polled_only BOOLEAN NOT NULL            -- the position is known from polls only: the times of commits are those of the polls that first saw them
        commit_times ARRAY<TIMESTAMP> NOT NULL  -- the evaluated commits, oldest first: when
        commit_offsets ARRAY<BIGINT> NOT NULL   -- the offset of each
        commit_lags ARRAY<BIGINT> NOT NULL      -- the lag at each, not below 0; null while no log end offset was known
    """),
)

NON_CONSUMED = Table(
    "non_consumed",
    "metric",
    ("cluster", "group", "topic", "partition", "window_start"),
    "window_start",
    "Records that retention removed before the group read them, and when the next ones expire (KIP-490).",
    ddl_columns("""
        cluster STRING NOT NULL                 -- cluster name of the configuration
        group STRING NOT NULL                   -- consumer group
        topic STRING NOT NULL                   -- topic
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        non_consumed_low BIGINT                 -- offsets removed unread between polls, for the polls in the window, at least
        non_consumed_high BIGINT                -- at most
        non_consumed_total_low BIGINT           -- since the group-partition was first measured, at least
        non_consumed_total_high BIGINT          -- at most
        unread_records BIGINT                   -- readable offsets that the group has not read, at the window's end
        oldest_unread_at TIMESTAMP              -- when the oldest of them was produced, estimated; null without unread records
        unread_expires_at TIMESTAMP             -- earliest time at which retention may remove it; null: nothing unread, or unlimited retention
        unread_expires_in_ms DOUBLE             -- from the window's end until then; 0 when it is due
        cleanup_policy STRING                   -- delete, compact or compact,delete; null where it could not be read
        retention_ms BIGINT                     -- retention.ms; null: unlimited or unknown
        log_start_offset BIGINT                 -- log start offset at the last poll before the window's end
        committed_offset BIGINT                 -- committed offset at the window's end
        position_low BIGINT                     -- smallest offset committed since that poll, or held at it
        position_high BIGINT                    -- largest; null: nothing was committed when it was taken
        unknown_reason STRING                   -- why the counts of the window are null; null when they are known
    """),
)

REPLICATION_LAG = Table(
    "replication_lag",
    "metric",
    ("cluster", "flow", "topic", "partition", "window_start"),
    "window_start",
    "Records of a source partition that a replication flow has yet to copy, and how late it copied them (KIP-971).",
    ddl_columns("""
        cluster STRING NOT NULL                 -- source cluster
        flow STRING NOT NULL                    -- replication flow of the configuration
        topic STRING NOT NULL                   -- topic on the source cluster
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        target STRING NOT NULL                  -- target cluster
        target_topic STRING NOT NULL            -- topic on the target cluster
        replication_record_lag BIGINT           -- log end offset less (last replicated offset + 1), at the last refresh in the window; 0: all is replicated
        replication_record_lag_min BIGINT       -- smallest at a refresh in the window
        replication_record_lag_max BIGINT       -- largest
        replication_record_lag_avg DOUBLE       -- mean over the refreshes in the window
        refreshes INT NOT NULL                  -- refreshes in the window at which the lag is known
        stale_refreshes INT NOT NULL            -- refreshes at which the last replicated offset was older than its time to live
        last_replicated_offset BIGINT           -- last offset of the source partition that is on the target
        last_replicated_at TIMESTAMP            -- when that was seen
        log_end_offset BIGINT                   -- log end offset known at the window's end
        replication_latency_ms DOUBLE           -- of the last record replicated in the window: seen on the target less produced
        replication_latency_max_ms DOUBLE       -- largest
        replication_latency_avg_ms DOUBLE       -- mean
        unknown_reason STRING                   -- why the lag is null; null when it is known
    """),
)

FETCH_LATENCY = Table(
    "fetch_latency",
    "metric",
    ("cluster", "leader", "follower", "window_start"),
    "window_start",
    "How long fetches from a broker take without the wait in its purgatory, per follower and for consumers (KIP-736).",
    ddl_columns("""
        cluster STRING NOT NULL                 -- cluster name of the configuration
        leader INT NOT NULL                     -- id of the broker that answers
        follower STRING NOT NULL                -- who fetches: the id of a follower, or consumers
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        sampled_from TIMESTAMP                  -- the totals are compared from here
        sampled_until TIMESTAMP                 -- to here
        fetches BIGINT                          -- answered in that time
        total_ms DOUBLE                         -- mean round trip of a follower's fetch, the wait included; of consumers: TotalTimeMs at the leader
        wait_ms DOUBLE                          -- mean wait in the leader's purgatory that was taken off
        fetch_latency_ms DOUBLE                 -- mean true fetch latency: the round trip without the wait
        fetch_latency_low_ms DOUBLE             -- its low bound
        fetch_latency_high_ms DOUBLE            -- its high bound; null: unbounded
        leader_total_ms DOUBLE                  -- mean TotalTimeMs of such requests at the leader, over all its followers or consumers
        total_local_ms DOUBLE                   -- mean TotalLocalTime at the leader: TotalTimeMs less RemoteTimeMs
        method STRING                           -- solved (symmetric pairs), simple (round trip less the leader's mean wait) or leader (consumers)
        slow BOOLEAN                            -- this pair stands out among the cluster's pairs, or all are slow; null where that is not known
        verdict STRING NOT NULL                 -- of the cluster in this window: even, slow_broker, slow_pair, slow_all or unknown
        verdict_reason STRING NOT NULL          -- the verdict in words, with its figures
        verdict_broker INT                      -- the broker whose every pair is slow
        confidence DOUBLE                       -- of the verdict among those that were weighed, 0 to 1; null while it is unknown
        unknown_reason STRING                   -- why the latency is null; null when it is known
    """),
)

SLA_WINDOWS = Table(
    "sla_windows",
    "ledger",
    ("sla", "window_start"),
    "window_start",
    "The verdict on each SLA in each window.",
    ddl_columns("""
        sla STRING NOT NULL                     -- SLA name of the configuration
        cluster STRING NOT NULL                 -- cluster name of the configuration
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        verdict STRING NOT NULL                 -- good, bad, excluded or unknown
        is_certain BOOLEAN NOT NULL             -- the bounds agree with the verdict, as it was judged
        reason STRING                           -- why it is excluded or unknown, or which unread records expire too soon
        max_latency_ms BIGINT NOT NULL          -- the threshold that was applied
        min_time_to_expiry_ms BIGINT            -- the time to expiry that was required; null: none
        worst_latency_ms DOUBLE                 -- largest max(records latency, backlog age) of the steady partitions
        worst_latency_low_ms DOUBLE             -- its low bound
        worst_latency_high_ms DOUBLE            -- its high bound; null: unbounded
        worst_group STRING                      -- where
        worst_topic STRING                      -- where
        worst_partition INT                     -- where
        steady_partitions INT NOT NULL          -- partitions judged
        bootstrapping_partitions INT NOT NULL   -- partitions excluded
        unknown_partitions INT NOT NULL         -- partitions without data
        records_due BIGINT NOT NULL             -- records of the steady partitions that were due in the window, read or not; of a chain: records that its last stage committed
        records_late BIGINT NOT NULL            -- of these, records that were not read by then
        judged_verdict STRING                   -- the verdict before the window was excluded afterwards; null: it was not
        judged_reason STRING                    -- its reason
        records_late_low BIGINT NOT NULL        -- low bound of records_late
        records_late_high BIGINT NOT NULL       -- high bound of records_late
        records_of_unknown_state BIGINT NOT NULL -- records of partitions whose steady state or position is unknown: in no other count
    """),
)

SLA_MISSES = Table(
    "sla_misses",
    "ledger",
    ("miss_id",),
    "start_at",
    "Runs of bad windows at least `for` long.",
    ddl_columns("""
        miss_id STRING NOT NULL                 -- stable id: from the SLA and the first bad window
        sla STRING NOT NULL                     -- SLA name of the configuration
        cluster STRING NOT NULL                 -- cluster name of the configuration
        state STRING NOT NULL                   -- open, recovered, excluded (no longer judged), or removed (its SLA left the configuration)
        end_reason STRING                       -- why it is no longer judged; null while open, or when it has recovered
        start_at TIMESTAMP NOT NULL             -- start of the first bad window
        end_at TIMESTAMP                        -- end of the last bad window; null while open
        bad_until TIMESTAMP NOT NULL            -- end of the last bad window, also while open
        settled_at TIMESTAMP                    -- end of the window after which no bad window continues it; null while one may
        opened_at TIMESTAMP NOT NULL            -- end of the window in which the run became `for` long
        bad_windows INT NOT NULL                -- bad windows in the run
        is_certain BOOLEAN NOT NULL             -- all its bad windows are certain, with nothing unknown among them
        max_latency_ms BIGINT NOT NULL          -- the threshold that the worst window was judged by
        min_time_to_expiry_ms BIGINT            -- the time to expiry that was required then; null: none
        for_ms BIGINT NOT NULL                  -- how long windows had to be bad
        worst_latency_ms DOUBLE NOT NULL        -- worst latency of the run
        worst_latency_low_ms DOUBLE             -- its low bound
        worst_latency_high_ms DOUBLE            -- its high bound; null: unbounded
        worst_at TIMESTAMP NOT NULL             -- start of the worst window
        worst_group STRING NOT NULL             -- where
        worst_topic STRING NOT NULL             -- where
        worst_partition INT NOT NULL            -- where
        evidence STRING NOT NULL                -- JSON object of the figures that explain it
        exclusion STRING                        -- who excluded all of its time afterwards, and why; null: nobody did
    """),
)

EXCLUSIONS = Table(
    "exclusions",
    "ledger",
    ("exclusion_id",),
    "start_at",
    "Time of an SLA that people excluded afterwards, and what they took back of it: a row each, never changed.",
    ddl_columns("""
        exclusion_id STRING NOT NULL            -- id of the row
        sla STRING NOT NULL                     -- SLA name of the configuration
        cluster STRING NOT NULL                 -- cluster name of the configuration
        start_at TIMESTAMP NOT NULL             -- start of the time, UTC, whole windows
        end_at TIMESTAMP NOT NULL               -- its end, exclusive
        undoes STRING                           -- the exclusion that this row takes back; null: this row excludes
        reason STRING NOT NULL                  -- why
        author STRING NOT NULL                  -- who
        recorded_at TIMESTAMP NOT NULL          -- when
    """),
)

VALIDATION_RESULTS = Table(
    "validation_results",
    "ledger",
    ("load_id", "table_name", "expectation_id"),
    "interval_start",
    "The result of each expectation for each load, published or refused.",
    ddl_columns("""
        load_id STRING NOT NULL                 -- the load that was validated
        interval_start TIMESTAMP NOT NULL       -- start of its interval, UTC
        interval_end TIMESTAMP NOT NULL         -- end of its interval, exclusive
        table_name STRING NOT NULL              -- validated table
        expectation_id STRING NOT NULL          -- id of the expectation in expectations/<table>.json
        expectation STRING NOT NULL             -- what was expected, in words
        severity STRING NOT NULL                -- critical, warning or info
        success BOOLEAN NOT NULL                -- it held
        observed STRING                         -- what was observed, short
        unexpected_rows BIGINT                  -- rows that broke it; null for whole-table expectations
    """),
)

QUARANTINE = Table(
    "quarantine",
    "ledger",
    ("load_id", "table_name", "expectation_id", "row"),
    "interval_start",
    "Rows that broke an expectation, kept for inspection.",
    ddl_columns("""
        load_id STRING NOT NULL                 -- the load that was validated
        interval_start TIMESTAMP NOT NULL       -- start of its interval, UTC
        interval_end TIMESTAMP NOT NULL         -- end of its interval, exclusive
        table_name STRING NOT NULL              -- validated table
        expectation_id STRING NOT NULL          -- the expectation that the row broke
        severity STRING NOT NULL                -- critical, warning or info
        row STRING NOT NULL                     -- the row as a JSON object
    """),
)

TABLES: dict[str, Table] = {table.name: table for table in tuple(globals().values()) if isinstance(table, Table)}
"""Every contract of this module, in its order."""
FACTS = tuple(t for t in TABLES.values() if t.kind == "fact")
METRICS = tuple(t for t in TABLES.values() if t.kind == "metric")
