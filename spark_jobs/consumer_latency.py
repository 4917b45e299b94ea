"""The table `consumer_latency`: latency, lag and backlog age per group-partition and window (KIP-489). Columns only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_columns
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.metrics import Metric
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.claims import Skews
from kafka_sla.spark_jobs.numeric.histogram import histograms
from kafka_sla.spark_jobs.numeric.positions import REASONS, VALID
from kafka_sla.spark_jobs.numeric.produced_timeline import METHODS
from kafka_sla.spark_jobs.windows.segments import Segments, Steps
from kafka_sla.spark_jobs.windows.window_grid import Ends, GridRows

NO_LOG_END = "no log end offset is known in this window"
_REASONS = (*REASONS, NO_LOG_END)


def measure(chunk: Chunk, step: Steps, parts: Segments, grid: GridRows, end: Ends) -> pa.Table:
    """One row per group-partition and window, in the columns of `tables.CONSUMER_LATENCY`.

    Latency of a record: commit time of the first commit beyond it, less its produced time (KIP-489, "Proposed
    Changes"); the bounds follow design "Bounds, not guesses".
    """
    total = len(grid.gp)
    row = grid.of_commit[parts.commit]
    consumed = _sum(row, parts.records, total)
    begun = _begun(chunk, step, grid, end)
    passed_over = _passed_over(chunk, step, grid, end)
    latency = _unseen(_latency(row, parts, total), step, grid, end, begun, passed_over)
    lag_max = np.maximum(np.where(end.known, end.lag, NONE), _lag_before_commits(chunk, step, grid, total))
    backlog = {
        "": _worse(latency["records_latency_max_ms"], np.where(end.has_age, end.age_ms, np.nan)),
        "low_": _worse(_unread(row, parts, total), np.where(end.has_age, end.held_low_ms, np.nan)),
        "high_": _worse(latency["records_latency_max_high_ms"], np.where(end.has_age, end.age_high_ms, np.nan)),
    }
    backlog["high_"] = np.fmax(backlog["high_"], passed_over)
    backlog["high_"][begun] = np.inf
    columns: dict[str, pa.Array] = {
        **{name: chunk.keys.column(name).combine_chunks().take(pa.array(grid.gp)) for name in chunk.keys.column_names},
        "window_start": _times(grid.start),
        "window_end": _times(grid.end),
        "records_consumed": pa.array(consumed),
        **{name: _floats(values) for name, values in latency.items()},
        **_counts(row, parts, total),
        "records_lag": _offsets(end.lag, end.known),
        "records_lag_max": _offsets(lag_max, lag_max != NONE),
        "backlog_age_ms": _floats(np.where(end.has_age, end.age_ms, np.nan)),
        "backlog_age_low_ms": _floats(np.where(end.has_age, end.age_low_ms, np.nan)),
        "backlog_age_high_ms": _floats(np.where(end.has_age, end.age_high_ms, np.nan)),
        **{f"backlog_age_max_{which}ms": _floats(values) for which, values in backlog.items()},
        "assumed_offset": pa.nulls(total, pa.int64()),
        "committed_offset": _offsets(chunk.offset[grid.last], chunk.offset[grid.last] != NONE),
        "effective_position": _offsets(end.effective, end.known),
        "log_start_offset": _offsets(end.log_start, end.log_start != NONE),
        "log_end_offset": _offsets(end.log_end, end.log_end != NONE),
        "last_commit_at": _times(chunk.at[grid.last]),
        "polled_only": pa.array(chunk.polled[grid.last]),
        "append_delay_ms": _known_skew(chunk.timeline.append_delays, chunk, grid),
        "stamped_ahead_ms": _known_skew(chunk.timeline.stamped_ahead, chunk, grid),
        "truncated_records": _truncated_records(chunk, grid),
        "method": _method(row, parts, total),
        "unknown_reason": _reasons(end),
    }
    return arrow_columns(CONSUMER_LATENCY, columns)


def _latency(row: Ints, parts: Segments, total: int) -> dict[str, Floats]:
    """Latest, largest and mean latency of each row with bounds, over the records that have one."""
    known = ~np.isnan(parts.first_ms)
    good = ~parts.negative & known
    of_unknown = row[~parts.negative & ~known]
    row, n = row[good], parts.records[good]
    first, last, low, high = parts.first_ms[good], parts.last_ms[good], parts.low_ms[good], parts.high_ms[good]
    perishable = parts.perishable[good]
    weight = _sum(row, n, total)
    ending = np.flatnonzero(np.append(row[1:] != row[:-1], True)) if len(row) else np.zeros(0, dtype=np.int64)
    result = {
        "records_latency_ms": _place(row[ending], last[ending], total),
        "records_latency_low_ms": _place(row[ending], low[ending], total),
        "records_latency_high_ms": _place(row[ending], high[ending], total),
        "records_latency_max_ms": _max(row, first, total),
        "records_latency_max_low_ms": _least(row, low, perishable, total),
        "records_latency_max_high_ms": _max(row, high, total),
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, value in (("", (first + last) / 2), ("low_", low), ("high_", high)):
            result[f"records_latency_avg_{name}ms"] = _sum(row, value * n, total) / weight
    doubted = np.unique(row[perishable])  # any of a row's records may be all that is left
    for name in ("records_latency", "records_latency_avg"):
        result[f"{name}_low_ms"][doubted] = -_max(row, -low, total)[doubted]
        result[f"{name}_high_ms"][doubted] = result["records_latency_max_high_ms"][doubted]
    result["records_latency_max_high_ms"][of_unknown] = np.inf  # one of them may have waited longer than all others
    return result


def _unread(row: Ints, parts: Segments, total: int) -> Floats:
    """How long a record was unread in each row, at least: a commit ends that, and is exact where all are known."""
    good = ~parts.negative & ~np.isnan(parts.first_ms)
    return _least(row[good], parts.unread_ms[good], parts.perishable[good], total)


def _least(row: Ints, low: Floats, perishable: Bools, total: int) -> Floats:
    """The largest low bound of each row, of records that were surely there; of the others one was, at least."""
    surely = _max(row[~perishable], low[~perishable], total)
    return np.where(np.isnan(surely), -_max(row[perishable], -low[perishable], total), surely)


def _begun(chunk: Chunk, step: Steps, grid: GridRows, end: Ends) -> Ints:
    """Rows with the first that is known of a group-partition, where it had begun before, in another life of the topic
    for instance, those before which compaction of the commit log left a gap, and those in which it had no position:
    what else it did in that window, nobody knows."""
    opens = step.void | step.after_void | step.recreated | (chunk.gap_before & ~chunk.polled)
    opens |= step.first & (chunk.gap_before | (chunk.offset > 0))
    row = np.concatenate([grid.of_commit[opens & ~chunk.carried], np.flatnonzero(end.invalid != VALID)])
    return np.asarray(row[row != NONE], dtype=np.int64)


def _passed_over(chunk: Chunk, step: Steps, grid: GridRows, end: Ends) -> Floats:
    """How long records may have waited that were removed by the time a commit of the row passed them, or may have
    passed them unseen: whether they were read before is not known. NaN without any."""
    commit = np.flatnonzero(step.overtaken & (grid.of_commit != NONE))
    left = np.flatnonzero(end.unseen & end.known & (end.effective > chunk.offset[grid.last]))
    row = np.concatenate([grid.of_commit[commit], left])
    at = np.concatenate([chunk.at[commit], grid.end[left]])
    epoch = np.concatenate([step.epoch[commit], step.epoch[grid.last[left]]])
    offset = np.concatenate([step.reach[commit], chunk.offset[grid.last[left]]])
    found = chunk.timeline.produced(epoch, offset, grid.end[row])
    return _max(row, np.where(found.low > -FAR, (at - found.low) / 1_000.0, np.inf), len(grid.gp))


def _unseen(
    latency: dict[str, Floats], step: Steps, grid: GridRows, end: Ends, begun: Ints, passed_over: Floats
) -> dict[str, Floats]:
    """Bounds of windows in which nobody saw all commits: they hold for whatever was consumed in the window.

    What polls saw after its start may have been consumed before it, and after the last poll more may have been. In the
    rows `begun` nothing is known of what was before the first poll, or the first commit that compaction left.
    """
    largest = latency["records_latency_max_high_ms"]
    later = np.where(end.known, end.age_high_ms, np.inf)
    largest = np.where(end.unseen & ~np.isnan(largest), np.fmax(largest, later), largest)
    largest = np.where(np.isnan(largest), largest, np.fmax(largest, passed_over))
    largest[begun] = np.where(np.isnan(largest[begun]), np.nan, np.inf)
    doubted = end.unseen.copy()
    doubted[begun] = True
    doubted[grid.of_commit[(step.start_unknown | step.overtaken) & (grid.of_commit != NONE)]] = True
    result = latency | {"records_latency_max_high_ms": largest}
    for name in ("records_latency", "records_latency_avg"):
        low, high = latency[f"{name}_low_ms"], latency[f"{name}_high_ms"]
        result[f"{name}_low_ms"] = np.where(doubted, np.minimum(low, 0), low)
        result[f"{name}_high_ms"] = np.where(doubted & ~np.isnan(high), largest, high)
    return result


def _counts(row: Ints, parts: Segments, total: int) -> dict[str, pa.Array]:
    """Histogram, and the records that are in no histogram."""
    unknown = ~parts.negative & np.isnan(parts.first_ms)
    good = ~parts.negative & ~unknown
    offsets, buckets, counts = histograms(
        row[good], parts.first_ms[good], parts.last_ms[good], parts.records[good], total
    )
    maps = pa.MapArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(buckets), pa.array(counts))
    return {
        "latency_histogram": maps,
        "negative_latency_records": pa.array(_sum(row[parts.negative], parts.records[parts.negative], total)),
        "unknown_latency_records": pa.array(_sum(row[unknown], parts.records[unknown], total)),
    }


def _lag_before_commits(chunk: Chunk, step: Steps, grid: GridRows, total: int) -> Ints:
    """Largest lag just before each commit of a row, from the last log end offset known at that instant; -1 without."""
    t = chunk.timeline
    inside = (grid.of_commit != NONE) & step.known & (chunk.offset != NONE)
    inside &= step.end > step.begin
    epoch = step.epoch[inside]
    latest = t.last_until(epoch, chunk.at[inside])
    seen = t.offset[np.clip(latest, 0, None)] if len(t.at) else np.full(len(latest), NONE)
    log_end = np.maximum(np.where(latest >= t.lo[epoch], seen, NONE), step.end[inside])
    result = np.full(total, NONE)
    np.maximum.at(result, grid.of_commit[inside], log_end - step.begin[inside])
    return result


def _sum(row: Ints, values: Any, total: int) -> Any:
    """Sum of values per row; integers stay exact."""
    result = np.zeros(total, dtype=values.dtype)
    np.add.at(result, row, values)
    return result


def _max(row: Ints, values: Floats, total: int) -> Floats:
    result = np.full(total, np.nan)
    np.fmax.at(result, row, values)
    return result


def _place(row: Ints, values: Floats, total: int) -> Floats:
    result = np.full(total, np.nan)
    result[row] = values
    return result


def _worse(latency: Floats, age: Floats) -> Floats:
    """A backlog is as old as the record that was then consumed last: the larger of the two."""
    return np.fmax(latency, age)


def _floats(values: Floats) -> pa.Array:
    """Rounded to µs; NaN (unknown) and inf (unbounded) become null."""
    return pa.array(np.round(values, 3), mask=~np.isfinite(values))


def _offsets(values: Ints, known: Bools) -> pa.Array:
    return pa.array(values, mask=~known)


def _times(values: Ints) -> pa.Array:
    return pa.array(values, type=pa.timestamp("us", "UTC"))


def _method(row: Ints, parts: Segments, total: int) -> pa.Array:
    """The weakest evidence among a row's segments."""
    worst = np.full(total, NONE)
    np.maximum.at(worst, row, parts.method)
    return pa.array(METHODS).take(pa.array(worst, mask=worst == NONE))


def _truncated_records(chunk: Chunk, grid: GridRows) -> pa.Array:
    """Records that were lost at the end of each row's log in its window, as far as polls show; null without any."""
    lost, partition = chunk.timeline.truncations, chunk.gp_partition[grid.gp]
    result = np.full(len(partition), NONE)
    for place, at, records in zip(lost.partition, lost.at, lost.until - lost.offset, strict=True):
        inside = (partition == place) & (grid.start < at) & (at <= grid.end)
        result[inside] = np.maximum(result[inside], records)
    return _offsets(result, result != NONE)


def _known_skew(skews: Skews, chunk: Chunk, grid: GridRows) -> pa.Array:
    """How far timestamps of each row's partition are known to be off in its window, ms; null where none are."""
    largest = skews.find_largest(chunk.gp_partition[grid.gp], grid.start, grid.end)
    return _floats(np.where(largest == NONE, np.nan, largest / 1_000.0))


def _reasons(end: Ends) -> pa.Array:
    """Why lag and backlog age are null."""
    no_end = _REASONS.index(NO_LOG_END)
    why = np.where(end.invalid != VALID, end.invalid, np.where(end.fresh, VALID, no_end))
    return pa.array(_REASONS, pa.string()).take(pa.array(why))


METRIC = Metric(CONSUMER_LATENCY)
