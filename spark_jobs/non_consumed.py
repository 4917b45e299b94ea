"""The table `non_consumed`: records that retention removed before a group read them, and when the next ones expire
(KIP-490). Expressions only. Formulas and bounds: docs/reference/non_consumed.md.

Between two looks at a partition its log start moved from a to b while the group stood at positions p. What lies below
the smallest p was read for sure, what lies above the largest was not: the loss is between max(0, b - max(a, largest))
and max(0, b - max(a, smallest)), however often and in which order either moved. Times are µs (BIGINT).
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame

from kafka_sla.job import Job
from kafka_sla.model import epoch_ms
from kafka_sla.tables import COMMITTED_OFFSETS, LOG_OFFSETS, NON_CONSUMED, TOPIC_CONFIGS
from spark_jobs import facts
from spark_jobs.counted_groups import any_of, counted_groups, text
from spark_jobs.inputs import Inputs

_KEY = ("cluster", "`group`", "topic", "`partition`")
_JOINED = ["cluster", "group", "topic", "partition"]
_AROUND_US = 1_000_000
"""A look takes a while and clocks differ: positions of one second around a look may have been held at it."""
_CONFIG_US = 3_600_000_000
"""A topic's configuration seen longer ago is not known: as far back as a run reads it."""


def wanted(job: Job) -> bool:
    """Only where somebody named groups of a topic, or promised something."""
    return bool(job.slas) or any(replay.cluster.non_consumed_offsets_groups for replay in job.replays)


def measure(inputs: Inputs) -> DataFrame:
    """One row per window and group-partition that is wanted, where `consumer_latency` has one."""
    rows = inputs.latency.where(counted_groups(inputs.job))
    counted = _counted(_between_looks(_events(inputs, rows), inputs.job))
    configs = _configs(inputs, inputs.job)
    return _contract(counted.join(configs, ["cluster", "topic", "window_end"], how="left"))


_COMMIT, _LOOK, _WINDOW = range(3)
"""In one instant a look may have seen a commit. Ends of windows, and looks at them, are 1 µs early: a commit of that
instant belongs to the next window."""
_FIGURES = "window_start, window_end, records_lag, backlog_age_ms, backlog_age_high_ms"


def _events(inputs: Inputs, rows: DataFrame) -> DataFrame:
    """Commits, looks at the log start, ends of windows, and what the published rows end with, as a last look."""
    groups, job, width = rows.selectExpr(*_KEY).distinct(), inputs.job, inputs.job.window_ms * 1_000
    commits = facts.commits_of(job, inputs.facts(COMMITTED_OFFSETS)).selectExpr(
        *_KEY, "unix_micros(at) AS at", f"{_COMMIT} AS kind", "committed_offset AS position"
    )
    looks = inputs.facts(LOG_OFFSETS).where("log_start_offset IS NOT NULL").where(_replayed(job)).selectExpr(
        "cluster", "topic", "`partition`", f"unix_micros(at) - IF(unix_micros(at) % {width} = 0, 1, 0) AS at",
        f"{_LOOK} AS kind", "log_start_offset AS log_start",
    )  # fmt: skip
    ends = rows.selectExpr(
        *_KEY, "unix_micros(window_end) - 1 AS at", f"{_WINDOW} AS kind", f"struct({_FIGURES}) AS figures"
    )
    known = inputs.carried(NON_CONSUMED).selectExpr(
        *_KEY, "unix_micros(window_end) - 1 AS at", f"{_LOOK} AS kind", "committed_offset AS position",
        "log_start_offset AS log_start", "true AS carried", "position_low AS low", "position_high AS high",
        "non_consumed_total_low AS lost_low", "non_consumed_total_high AS lost_high",
    ).join(groups, _JOINED, how="left_semi")  # fmt: skip
    together = ends.unionByName(commits.join(groups, _JOINED, how="left_semi"), allowMissingColumns=True)
    for part in (looks.join(groups, ["cluster", "topic", "partition"], how="inner"), known):
        together = together.unionByName(part, allowMissingColumns=True)
    return together


def _replayed(job: Job) -> str:
    """Looks after those that the published rows know, to the end of the interval."""
    after = [f"cluster = {text(r.cluster.name)} AND at > {_instant(r.carried.at)}" for r in job.replays if r.carried]
    whole = [f"cluster = {text(r.cluster.name)}" for r in job.replays if not r.carried]
    return f"at <= {_instant(job.interval.end)} AND ({any_of([*after, *whole])})"


def _instant(at: datetime) -> str:
    return f"timestamp_millis({epoch_ms(at)}L)"


_KEYS = ", ".join(_KEY)
_LIFE = f"PARTITION BY {_KEYS}, life ORDER BY at, kind"
_SLOT = f"PARTITION BY {_KEYS}, life, slot"
_BUCKET = f"PARTITION BY {_KEYS}, life, bucket ORDER BY at, kind ROWS UNBOUNDED PRECEDING"
"""A life ends with the deletion of the offset, a slot with a window, a bucket with the look that closes it."""


def _between_looks(events: DataFrame, job: Job) -> DataFrame:
    """Each event with the look before it (`previous`), and the smallest and largest position held since then.

    `held`: the position a second before a look, or at the start of its window, before which no look of it began.
    """
    deleted = f"IF(kind = {_COMMIT} AND position IS NULL, 1, 0)"
    near = f"OVER ({_SLOT} ORDER BY at RANGE BETWEEN {_AROUND_US} PRECEDING AND CURRENT ROW)"
    newest = "max(IF(position IS NULL, NULL, struct(at, position)))"
    in_slot = f"{_SLOT} ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND {_AROUND_US + 1} PRECEDING"
    in_life = f"PARTITION BY {_KEYS}, life ORDER BY slot RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    looks = f"sum(IF(kind = {_LOOK}, 1, 0)) OVER ({_LIFE} ROWS UNBOUNDED PRECEDING)"
    kept = ("at", "kind", "life", "slot", "log_start", "carried", "figures", "lost_low", "lost_high", "here")
    look = f"""CASE WHEN kind <> {_LOOK} THEN NULL WHEN carried THEN struct(log_start, low, high)
        ELSE struct(log_start, least(held, near_low) AS low, IF(held IS NULL, NULL, greatest(held, near_high)) AS high)
        END AS look"""
    return (
        events.selectExpr(
            "*", f"at DIV {job.window_ms * 1_000} AS slot",
            f"sum({deleted}) OVER (PARTITION BY {_KEYS} ORDER BY at, kind ROWS UNBOUNDED PRECEDING) AS life",
        )
        .selectExpr(
            "*", f"coalesce({newest} OVER ({in_slot}), {newest} OVER ({in_life})).position AS held",
            f"min(position) {near} AS near_low", f"max(position) {near} AS near_high",
            f"{looks} - IF(kind = {_LOOK}, 1, 0) AS bucket",
            f"last(position) IGNORE NULLS OVER ({_LIFE} ROWS UNBOUNDED PRECEDING) AS here",
        )
        .selectExpr(
            *_KEY, *kept, look,
            f"min(position) OVER ({_BUCKET}) AS since_low", f"max(position) OVER ({_BUCKET}) AS since_high",
        )
        .selectExpr(
            "*", f"last(look) IGNORE NULLS OVER ({_LIFE} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous"
        )
        .selectExpr(
            *_KEY, *kept, "previous.log_start AS known_start", "least(previous.low, since_low) AS low",
            "IF(previous.high IS NULL, NULL, greatest(previous.high, since_high)) AS high",
        )
    )  # fmt: skip


def _counted(events: DataFrame) -> DataFrame:
    """One row per window with what its looks found removed unread, and the totals until then."""
    lost = {
        which: f"""CASE WHEN carried THEN coalesce(lost_{which}, 0L)
            WHEN compared THEN coalesce(greatest(0L, log_start - greatest(known_start, {position})), 0L)
            ELSE 0L END AS lost_{which}"""
        for which, position in (("low", "coalesce(high, log_start)"), ("high", "coalesce(low, log_start)"))
    }
    total = f"OVER ({_LIFE} ROWS UNBOUNDED PRECEDING)"
    return (
        events.selectExpr("*", f"kind = {_LOOK} AND carried IS NULL AND known_start IS NOT NULL AS compared")
        .selectExpr(
            *_KEY, "at", "kind", "life", "slot", "figures", "low", "high", "known_start", "here", "compared",
            *lost.values(),
        )
        .selectExpr(
            *_KEY, "kind", "figures", "low", "high", "known_start", "here",
            f"sum(IF(compared, lost_low, NULL)) OVER ({_SLOT}) AS window_low",
            f"sum(IF(compared, lost_high, NULL)) OVER ({_SLOT}) AS window_high",
            f"sum(lost_low) {total} AS total_low", f"sum(lost_high) {total} AS total_high",
        )
        .where(f"kind = {_WINDOW}")
        .selectExpr(
            *_KEY, "figures.*", "low", "high", "known_start", "here",
            "window_low", "window_high", "total_low", "total_high",
        )
    )  # fmt: skip


def _configs(inputs: Inputs, job: Job) -> DataFrame:
    """cluster, topic, `window_end`: the configuration that was seen last, at most an hour before."""
    width, start, end = (ms * 1_000 for ms in (job.window_ms, epoch_ms(job.interval.start), epoch_ms(job.interval.end)))
    next_at = "lead(unix_micros(at)) OVER (PARTITION BY cluster, topic ORDER BY at)"
    first = f"greatest((seen + {width - 1}) DIV {width} * {width}, {start + width})"
    last = f"least((next_at - 1) DIV {width} * {width}, (seen + {_CONFIG_US}) DIV {width} * {width}, {end})"
    policy = "IF(cleanup_policy = 'delete,compact', 'compact,delete', cleanup_policy) AS cleanup_policy"
    return (
        inputs.facts(TOPIC_CONFIGS)
        .selectExpr(
            "cluster", "topic", "unix_micros(at) AS seen", f"{next_at} AS next_at", "cleanup_policy", "retention_ms"
        )
        .where(f"{first} <= {last}")
        .selectExpr("cluster", "topic", policy, "retention_ms", f"explode(sequence({first}, {last}, {width}L)) AS end")
        .selectExpr("cluster", "topic", "cleanup_policy", "retention_ms", "timestamp_micros(end) AS window_end")
    )


def _contract(rows: DataFrame) -> DataFrame:
    compacted = "coalesce(cleanup_policy = 'compact', false)"
    age = "CAST(coalesce(backlog_age_high_ms, backlog_age_ms) * 1000 AS BIGINT)"
    expires = f"""IF(records_lag > 0 AND NOT {compacted},
        unix_micros(window_end) - {age} + retention_ms * 1000, NULL)"""
    reason = f"""CASE
        WHEN {compacted} THEN 'compacted topics are out of scope: of their keys only the last values matter'
        WHEN window_low IS NOT NULL THEN NULL
        WHEN known_start IS NULL THEN 'the log start offset has not been looked at'
        ELSE 'the log start offset was not compared with an earlier look in this window' END"""
    values = {
        "non_consumed_low": "window_low", "non_consumed_high": "window_high",
        "non_consumed_total_low": "IF(known_start IS NULL, NULL, total_low)",
        "non_consumed_total_high": "IF(known_start IS NULL, NULL, total_high)",
    }  # fmt: skip
    values = {name: f"IF({compacted}, NULL, {value})" for name, value in values.items()} | {
        "unread_records": "records_lag",
        "oldest_unread_at": "IF(records_lag > 0, timestamp_micros(unix_micros(window_end)"
        " - CAST(backlog_age_ms * 1000 AS BIGINT)), NULL)",
        "unread_expires_at": "timestamp_micros(expires)",
        "unread_expires_in_ms": "IF(expires IS NULL, NULL, greatest(0D, (expires - unix_micros(window_end)) / 1000D))",
        "log_start_offset": "known_start",
        "committed_offset": "here",
        "position_low": "low",
        "position_high": "high",
        "unknown_reason": reason,
    }
    known = rows.selectExpr("*", f"{expires} AS expires")
    return known.selectExpr(*[f"{values.get(name, f'`{name}`')} AS `{name}`" for name in NON_CONSUMED.names])
