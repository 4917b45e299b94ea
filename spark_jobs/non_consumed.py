"""The table `non_consumed`: records that retention removed before a group read them, and when the next ones expire
(KIP-490). Columns only. Formulas and bounds: docs/reference/non_consumed.md.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_columns
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import NON_CONSUMED
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events.chunks import CONFIG_US, Chunk
from kafka_sla.spark_jobs.events.columns import ints
from kafka_sla.spark_jobs.events.counted_groups import counted_groups
from kafka_sla.spark_jobs.metrics import Metric
from kafka_sla.spark_jobs.numeric.arrays import FAR, NEVER_MS, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.log_start_moves import COMMIT, POLL, WINDOW, Counted, LogStartEvents, counted
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, value_at
from kafka_sla.spark_jobs.windows.window_grid import JobSpan

_KEY = ("cluster", "group", "topic", "partition")
_OF_LATENCY = [*_KEY, "window_start", "window_end", "records_lag", "backlog_age_ms", "backlog_age_high_ms"]


def wanted(job: Job) -> bool:
    """Only where somebody named groups of a topic, or there are SLAs."""
    return bool(job.slas) or any(replay.cluster.non_consumed_offsets_groups for replay in job.replays)


def measure(chunk: Chunk, latency: pa.Table, gp: Ints, scope: JobSpan, job: Job) -> pa.Table:
    """One row per window and group-partition whose cluster, group and topic are to be counted, where `latency`, rows of
    `consumer_latency` by group-partition and window, has one; `gp`: the group-partition of each of these."""
    counts = counted_groups(job)
    places = [chunk.keys[name].to_pylist() for name in ("cluster", "group", "topic")]
    chosen = np.array([counts(*place) for place in zip(*places, strict=True)], dtype=np.bool_)[gp]
    rows, gp = latency.select(_OF_LATENCY).filter(pa.array(chosen)), gp[chosen]
    end = _micros(rows["window_end"])
    found = counted(_events(chunk, gp, end, scope, job), scope.window)
    return _contract(rows, end, found, *_configurations(chunk, gp, end))


def _events(chunk: Chunk, gp: Ints, end: Ints, scope: JobSpan, job: Job) -> LogStartEvents:
    """Commits, polls of the log start, ends of windows, and what the published rows end with, as a last poll."""
    measured = np.zeros(chunk.keys.num_rows, dtype=np.bool_)
    measured[gp] = True
    told = chunk.positions
    mine = measured[told.gp] & (told.at < scope.end)
    of, point = _polls(chunk, np.flatnonzero(measured), job)
    at = chunk.points.at[point]
    known = chunk.unread.rows.filter(pa.array(measured[chunk.unread.gp]))
    published = {
        name: ints(known, name) for name in ("at", "offset", "log_start", "low", "high", "lost_low", "lost_high")
    }
    renewed, began = _new_lives(chunk, np.flatnonzero(measured))
    silent = _silent(chunk, scope) & measured[chunk.gp]
    parts: list[dict[str, Any]] = [
        {"gp": renewed, "at": began, "kind": COMMIT},
        {"gp": chunk.gp[silent], "at": chunk.at[silent], "kind": COMMIT},
        {"gp": told.gp[mine], "at": told.at[mine], "kind": COMMIT, "position": told.offset[mine]},
        {"gp": of, "at": at - (at % scope.window == 0), "kind": POLL, "log_start": chunk.points.log_start[point]},
        {"gp": gp, "at": end - 1, "kind": WINDOW},
        {
            "gp": chunk.unread.gp[measured[chunk.unread.gp]],
            "kind": POLL,
            "carried": True,
            **published,
            "at": published["at"] - 1,
            "position": published["offset"],
        },
    ]
    nothing: dict[str, Any] = {"carried": False}
    return LogStartEvents(
        *(
            np.concatenate(
                [np.broadcast_to(part.get(name, nothing.get(name, NONE)), len(part["gp"])) for part in parts]
            )
            for name in (field.name for field in fields(LogStartEvents))
        )
    )


def _silent(chunk: Chunk, scope: JobSpan) -> Bools:
    """Commits after a silence in which a lagging group-partition would expire: what is counted begins anew, told by the
    commits alone, so that a replay sees it without the rows of that time."""
    long_after: Bools = chunk.at - np.roll(chunk.at, 1) > scope.expire
    return long_after & ~begins(chunk.gp)


def _new_lives(chunk: Chunk, gp: Ints) -> tuple[Ints, Ints]:
    """Group-partitions whose topic was created again, and when: no position of before counts from then on."""
    t = chunk.timeline
    later = np.flatnonzero(~begins(t.epoch_partition))
    own = [gp[chunk.gp_partition[gp] == place] for place in t.epoch_partition[later].tolist()]
    count = np.array([len(each) for each in own], dtype=np.int64)
    return np.concatenate([gp[:0], *own]), np.repeat(t.epoch_at[later], count)


def _polls(chunk: Chunk, gp: Ints, job: Job) -> tuple[Ints, Ints]:
    """Of each poll of a group's partition, after those that the published rows know: group-partition and point."""
    replays = {replay.cluster.name: replay for replay in job.replays}
    first = np.searchsorted(chunk.points.place, chunk.gp_partition[gp], side="left")
    count = np.searchsorted(chunk.points.place, chunk.gp_partition[gp], side="right") - first
    places = zip(chunk.keys["cluster"].to_pylist(), chunk.keys["topic"].to_pylist(), strict=True)
    carried = [replays[cluster].carried_of(topic) for cluster, topic in places]
    begun = np.array([epoch_ms(one.at) * 1_000 if one else -FAR for one in carried], dtype=np.int64)
    of = np.repeat(gp, count)
    point = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
    new = (chunk.points.log_start[point] != NONE) & (chunk.points.at[point] > begun[of])
    return of[new], point[new]


def _configurations(chunk: Chunk, gp: Ints, end: Ints) -> tuple[pa.Array, pa.Array]:
    """Of each row the cleanup policy and the retention in ms that were seen last, at most an hour before."""
    known = chunk.configurations
    places = zip(chunk.keys["cluster"].to_pylist(), chunk.keys["topic"].to_pylist(), strict=True)
    topic = np.array([known.topics.get(place, NONE) for place in places], dtype=np.int64)[gp]
    last = last_until(known.topic, known.at, topic, end)
    seen = (last != NONE) & (end <= value_at(known.at, last) + CONFIG_US)
    found = known.rows.take(pa.array(last, mask=~seen))
    return found["cleanup_policy"].combine_chunks(), found["retention_ms"].combine_chunks()


def _contract(rows: pa.Table, end: Ints, found: Counted, policy: pa.Array, retention: pa.Array) -> pa.Table:
    compacted = pc.fill_null(pc.equal(policy.cast(pa.string()), "compact"), False).to_numpy(zero_copy_only=False)
    was_polled = found.known_start != NONE
    unread = pc.fill_null(pc.greater(rows["records_lag"], 0), False).to_numpy()
    age, earliest = (_micros_of(rows[name]) for name in ("backlog_age_ms", "backlog_age_high_ms"))
    retained = pc.fill_null(retention, NONE).to_numpy(zero_copy_only=False)
    oldest = np.where(earliest != NONE, earliest, age)
    forecast = unread & ~compacted & (oldest != NONE) & (retained != NONE) & (retained < NEVER_MS - end // 1_000)
    expires = end - oldest + np.where(forecast, retained, 0) * 1_000
    counted_here = found.compared & ~compacted
    columns: dict[str, Any] = {
        **{name: rows[name] for name in (*_KEY, "window_start", "window_end")},
        "non_consumed_low": _where(counted_here, found.window_low),
        "non_consumed_high": _where(counted_here, found.window_high),
        "non_consumed_total_low": _where(was_polled & ~compacted, found.total_low),
        "non_consumed_total_high": _where(was_polled & ~compacted, found.total_high),
        "unread_records": rows["records_lag"],
        "oldest_unread_at": _where(unread & (age != NONE), end - age),
        "unread_expires_at": _where(forecast, expires),
        "unread_expires_in_ms": _where(forecast, np.maximum(expires - end, 0) / 1_000),
        "cleanup_policy": policy,
        "retention_ms": retention,
        "log_start_offset": _where(was_polled, found.known_start),
        "committed_offset": _where(found.position != NONE, found.position),
        "position_low": _where(found.low != NONE, found.low),
        "position_high": _where(found.high != NONE, found.high),
        "unknown_reason": _reasons(compacted, found.compared, was_polled),
    }
    return arrow_columns(NON_CONSUMED, columns)


_REASONS = (
    "compacted topics are out of scope: of their keys only the last values matter",
    None,
    "the log start offset has not been polled",
    "the log start offset was not compared with an earlier poll in this window",
)


def _reasons(compacted: Bools, compared: Bools, was_polled: Bools) -> pa.Array:
    """Why the counts of a window are unknown; null where they are known."""
    return pa.array(_REASONS, pa.string()).take(pa.array(np.select([compacted, compared, ~was_polled], [0, 1, 2], 3)))


def _micros(times: pa.ChunkedArray) -> Ints:
    return np.asarray(times.cast(pa.int64()).to_numpy(), dtype=np.int64)


def _micros_of(ms: pa.ChunkedArray) -> Ints:
    """Whole µs; -1 for unknown."""
    return np.asarray(np.trunc(pc.fill_null(pc.multiply(ms, 1_000.0), -1.0).to_numpy()), dtype=np.int64)


def _where(known: Bools, values: Ints | Floats) -> pa.Array:
    return pa.array(values, mask=~known)


METRIC = Metric(NON_CONSUMED, wanted)
