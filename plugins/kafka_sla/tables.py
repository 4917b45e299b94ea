"""Every table that this project writes: name, columns (Spark DDL), key, time column. Knows no engine, does no I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

LATENCY_BUCKET_GAMMA = 1.02
"""Ratio of neighbouring histogram bucket edges: a bucket's middle is at most 1 % from any value in it."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """Spark SQL type: STRING, INT, BIGINT, DOUBLE, BOOLEAN, TIMESTAMP (UTC, microseconds), MAP<INT, BIGINT>."""
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


def _columns(text: str) -> tuple[Column, ...]:
    """Parse lines of `name TYPE [NOT NULL] -- comment`."""
    line = re.compile(r"(\w+)\s+([A-Z]+(?:<[^>]+>)?)( NOT NULL)?\s+-- (.+)")
    found = [line.fullmatch(row.strip()) for row in text.strip().splitlines()]
    return tuple(Column(m[1], m[2], m[3] is None, m[4]) for m in found if m)


LOG_OFFSETS = Table(
    "log_offsets", "fact", ("cluster", "topic", "partition", "at", "log_end_offset", "source"), "at",
    "Points of the produced timeline: every record with a smaller offset than log_end_offset was produced before `at`.",
    _columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        topic STRING NOT NULL            -- topic
        partition INT NOT NULL           -- partition
        at TIMESTAMP NOT NULL            -- when, UTC
        log_start_offset BIGINT          -- first readable offset; null where the source does not tell
        log_end_offset BIGINT NOT NULL   -- offset the next record gets
        source STRING NOT NULL           -- snapshot (polled now), list_offsets (looked up by timestamp), record (a record's own timestamp), or an imported file's word
    """))  # fmt: skip

COMMITTED_OFFSETS = Table(
    "committed_offsets", "fact", ("cluster", "group", "topic", "partition", "at", "committed_offset", "source"), "at",
    "Points of the committed timeline: from `at` on, committed_offset is the next offset the group reads.",
    _columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        group STRING NOT NULL            -- consumer group
        topic STRING NOT NULL            -- topic
        partition INT NOT NULL           -- partition
        at TIMESTAMP NOT NULL            -- commit time (commit_log) or time it was seen (snapshot), UTC
        committed_offset BIGINT          -- next offset to read; null: the offset was deleted or expired
        source STRING NOT NULL           -- commit_log (every commit, from __consumer_offsets), snapshot (polled), or an imported file's word
    """))  # fmt: skip

GROUP_STATES = Table(
    "group_states", "fact", ("cluster", "group", "at"), "at",
    "What a snapshot saw of each consumer group.",
    _columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        group STRING NOT NULL            -- consumer group
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        type STRING NOT NULL             -- classic, consumer (KIP-848) or share
        state STRING NOT NULL            -- Kafka's word: Stable, Empty, Dead, PreparingRebalance, …
        members INT                      -- members; null where the broker does not tell
    """))  # fmt: skip

TOPIC_CONFIGS = Table(
    "topic_configs", "fact", ("cluster", "topic", "at"), "at",
    "What a snapshot saw of each topic's configuration.",
    _columns("""
        cluster STRING NOT NULL          -- cluster name of the configuration
        topic STRING NOT NULL            -- topic
        at TIMESTAMP NOT NULL            -- when it was seen, UTC
        topic_id STRING                  -- Kafka's topic id; changes when a topic is recreated
        partitions INT NOT NULL          -- partitions
        cleanup_policy STRING NOT NULL   -- delete, compact or compact,delete
        retention_ms BIGINT              -- retention.ms; null: unlimited
        message_timestamp_type STRING NOT NULL -- CreateTime or LogAppendTime
    """))  # fmt: skip

CONSUMER_LATENCY = Table(
    "consumer_latency", "metric", ("cluster", "group", "topic", "partition", "window_start"), "window_start",
    "How long records waited from being produced to being read and committed, per group-partition and window (KIP-489).",
    _columns("""
        cluster STRING NOT NULL                 -- cluster name of the configuration
        group STRING NOT NULL                   -- consumer group
        topic STRING NOT NULL                   -- topic
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC, epoch-aligned
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        records_consumed BIGINT NOT NULL        -- offsets the group moved over in the window
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
        negative_latency_records BIGINT NOT NULL -- records whose produced time is after their commit even at best (clock skew); in no latency
        unknown_latency_records BIGINT NOT NULL -- records without any produced time; in no latency
        records_lag BIGINT                      -- log end offset less effective position, at the window's end
        records_lag_max BIGINT                  -- largest lag seen in the window
        backlog_age_ms DOUBLE                   -- age of the oldest record not yet consumed at the window's end; 0 when caught up
        backlog_age_low_ms DOUBLE               -- its low bound
        backlog_age_high_ms DOUBLE              -- its high bound; null: unbounded
        backlog_age_max_ms DOUBLE               -- largest backlog age in the window
        backlog_age_max_low_ms DOUBLE           -- its low bound
        backlog_age_max_high_ms DOUBLE          -- its high bound; null: unbounded
        committed_offset BIGINT                 -- committed offset at the window's end
        effective_position BIGINT               -- max(committed offset, log start offset) at the window's end
        log_start_offset BIGINT                 -- log start offset known at the window's end
        log_end_offset BIGINT                   -- log end offset known at the window's end
        last_commit_at TIMESTAMP                -- time of the last commit before the window's end
        method STRING                           -- the weakest evidence used: record, bracketed, interpolated, extrapolated; null when nothing was consumed
        unknown_reason STRING                   -- why lag and backlog age are null; null when known
    """))  # fmt: skip

STEADY_STATE = Table(
    "steady_state", "metric", ("sla", "cluster", "group", "topic", "partition", "window_start"), "window_start",
    "Per SLA: is the group-partition bootstrapping or steady, since when and why.",
    _columns("""
        sla STRING NOT NULL                     -- SLA whose caught_up_within, grace and expire_group apply
        cluster STRING NOT NULL                 -- cluster name of the configuration
        group STRING NOT NULL                   -- consumer group
        topic STRING NOT NULL                   -- topic
        partition INT NOT NULL                  -- partition
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        state STRING NOT NULL                   -- steady, or bootstrapping, at the window's end
        since TIMESTAMP NOT NULL                -- instant of the last change of state
        reason STRING NOT NULL                  -- what changed it: first_commit, rewind, offset_reset, returned, topic_recreated; caught_up, grace_over
        steady_throughout BOOLEAN NOT NULL      -- steady during the whole window: only such windows can break an SLA
        records_over BIGINT NOT NULL            -- records consumed in the window with a latency above max_latency
    """))  # fmt: skip

SLA_WINDOWS = Table(
    "sla_windows", "ledger", ("sla", "window_start"), "window_start",
    "The verdict on each SLA in each window.",
    _columns("""
        sla STRING NOT NULL                     -- SLA name of the configuration
        cluster STRING NOT NULL                 -- cluster name of the configuration
        window_start TIMESTAMP NOT NULL         -- start of the window, UTC
        window_end TIMESTAMP NOT NULL           -- end of the window, exclusive
        verdict STRING NOT NULL                 -- good, bad, excused or unknown
        certain BOOLEAN NOT NULL                -- the bounds agree with the verdict
        reason STRING                           -- why it is excused or unknown
        max_latency_ms BIGINT NOT NULL          -- the threshold that was applied
        worst_latency_ms DOUBLE                 -- largest max(records latency, backlog age) of the steady partitions
        worst_latency_low_ms DOUBLE             -- its low bound
        worst_latency_high_ms DOUBLE            -- its high bound; null: unbounded
        worst_group STRING                      -- where
        worst_topic STRING                      -- where
        worst_partition INT                     -- where
        steady_partitions INT NOT NULL          -- partitions judged
        bootstrapping_partitions INT NOT NULL   -- partitions excused
        unknown_partitions INT NOT NULL         -- partitions without data
        records_consumed BIGINT NOT NULL        -- records consumed by the steady partitions
        records_over BIGINT NOT NULL            -- of these, records above the threshold
    """))  # fmt: skip

SLA_MISSES = Table(
    "sla_misses", "ledger", ("miss_id",), "start_at",
    "Runs of bad windows at least `for` long.",
    _columns("""
        miss_id STRING NOT NULL                 -- stable id: from the SLA and the first bad window
        sla STRING NOT NULL                     -- SLA name of the configuration
        cluster STRING NOT NULL                 -- cluster name of the configuration
        state STRING NOT NULL                   -- open or closed
        start_at TIMESTAMP NOT NULL             -- start of the first bad window
        end_at TIMESTAMP                        -- end of the last bad window; null while open
        opened_at TIMESTAMP NOT NULL            -- end of the window in which the run became `for` long
        bad_windows INT NOT NULL                -- bad windows in the run
        certain BOOLEAN NOT NULL                -- all its bad windows are certain
        max_latency_ms BIGINT NOT NULL          -- the threshold that was broken
        worst_latency_ms DOUBLE NOT NULL        -- worst latency of the run
        worst_latency_low_ms DOUBLE             -- its low bound
        worst_latency_high_ms DOUBLE            -- its high bound; null: unbounded
        worst_at TIMESTAMP NOT NULL             -- start of the worst window
        worst_group STRING NOT NULL             -- where
        worst_topic STRING NOT NULL             -- where
        worst_partition INT NOT NULL            -- where
        evidence STRING NOT NULL                -- JSON object of the figures that explain it
    """))  # fmt: skip

VALIDATION_RESULTS = Table(
    "validation_results", "ledger", ("load_id", "table_name", "expectation_id"), "interval_start",
    "What each expectation said of each load, published or refused.",
    _columns("""
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
    """))  # fmt: skip

QUARANTINE = Table(
    "quarantine", "ledger", ("load_id", "table_name", "expectation_id", "row"), "interval_start",
    "Rows that broke an expectation, kept to be looked at.",
    _columns("""
        load_id STRING NOT NULL                 -- the load that was validated
        interval_start TIMESTAMP NOT NULL       -- start of its interval, UTC
        interval_end TIMESTAMP NOT NULL         -- end of its interval, exclusive
        table_name STRING NOT NULL              -- validated table
        expectation_id STRING NOT NULL          -- the expectation that the row broke
        severity STRING NOT NULL                -- critical, warning or info
        row STRING NOT NULL                     -- the row as a JSON object
    """))  # fmt: skip

TABLES: dict[str, Table] = {
    t.name: t
    for t in (LOG_OFFSETS, COMMITTED_OFFSETS, GROUP_STATES, TOPIC_CONFIGS, CONSUMER_LATENCY, STEADY_STATE,
              SLA_WINDOWS, SLA_MISSES, VALIDATION_RESULTS, QUARANTINE)
}  # fmt: skip
FACTS = tuple(t for t in TABLES.values() if t.kind == "fact")
METRICS = tuple(t for t in TABLES.values() if t.kind == "metric")
