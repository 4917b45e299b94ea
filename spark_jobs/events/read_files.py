"""Files of facts, and of rows that were published before, as blocks of events: Arrow reads them, in Spark's tasks.

Knows the tables that a job reads and which of their rows it measures with; no metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.files import sizes_of
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import (
    BEYOND_LOG_END,
    COMMITTED_OFFSETS,
    COMPACTED,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    EVERY_COMMIT,
    LARGEST_OFFSET,
    LOG_OFFSETS,
    NON_CONSUMED,
    POLL_CONFIRMED,
    RECORD_RANGES,
    STEADY_STATE,
    TABLES,
    TOPIC_CONFIGS,
)
from kafka_sla.object_stores import reaching
from kafka_sla.parquet_files import batches, parquet_file
from kafka_sla.spark.job_spec import NEXT_POLL_US, Job, Replay
from kafka_sla.spark_jobs.events import layouts
from kafka_sla.spark_jobs.events.layouts import CERTAIN, EARLIER_LOST, LAYOUTS, LOOKED_UP, NAME, POLLED
from kafka_sla.spark_jobs.events.python_workers import BatchFunction
from kafka_sla.spark_jobs.events.shuffle import blocks_of
from kafka_sla.spark_jobs.events.sightings import carried_sightings, sightings_in
from kafka_sla.spark_jobs.events.task_ranges import given
from kafka_sla.spark_jobs.numeric.arrays import Bools, Ints
from kafka_sla.spark_jobs.numeric.positions import BEYOND_END, VALID, codes

FACTS = {
    LOG_OFFSETS.name: layouts.POINTS,
    RECORD_RANGES.name: layouts.RANGES,
    COMMITTED_OFFSETS.name: layouts.COMMITS,
    TOPIC_CONFIGS.name: layouts.CONFIGURATIONS,
}
PUBLISHED = {
    CONSUMER_LATENCY.name: layouts.LATENCY,
    STEADY_STATE.name: layouts.STATES,
    CONSUMER_STATUS.name: layouts.STATUS,
    NON_CONSUMED.name: layouts.UNREAD,
}
SEEN_IN = {layouts.COMMITS: sightings_in, layouts.LATENCY: carried_sightings}
"""Kinds of events that tell which groups read which topics."""
KINDS = FACTS | PUBLISHED
"""Table → kind of its events."""
_TASK_ROWS = 1_000_000
_BATCH_ROWS, _BATCH_PUBLISHED = 1_000_000, 100_000
"""Rows of facts are short, those of metrics hold lists."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some row groups of a file: every `of`-th one from `nth` on, or one of a file of `Job.older`."""

    table: str
    path: str
    nth: int = 0
    of: int = 1
    older: int | None = None

    def of_file(self, groups: int) -> list[int]:
        """Which of its so many row groups these are."""
        return list(range(self.nth, groups, self.of)) if self.older is None else [self.older]


def tasks_of(job: Job) -> int:
    """How many tasks the job's events are worth: a million to each, which take some hundred MB while they are measured.
    One, or an even number, as cores come in: an odd one would keep one of two waiting for the last."""
    tasks = 1 + job.measured_rows // _TASK_ROWS
    return tasks if tasks == 1 else tasks + tasks % 2


def shares(job: Job, share_rows: int = 2 * _TASK_ROWS) -> list[list[Part]]:
    """The job's files in shares of about so many rows, so that what Spark spends on each does not show: large files are
    divided, small ones are read together. All rows are taken to be equally long."""
    files = [Part(table, path) for table in FACTS for path in job.facts.get(table, [])]
    files += [Part(table, path) for table in PUBLISHED for path in job.carry.get(table, [])]
    parts = list(zip(files, sizes_of([one.path for one in files]), strict=True))
    parts += [(Part(t, one.path, older=one.group), one.bytes) for t in FACTS for one in job.older.get(t, [])]
    share_bytes = max(1, sum(size for _, size in parts) * share_rows // max(1, job.input_rows))
    found: list[list[Part]] = []
    room = 0
    for part, size in parts:
        of = 1 + size // share_bytes if part.older is None else 1
        if of > 1:
            found += [[replace(part, nth=nth, of=of)] for nth in range(of)]
            room = 0
        elif size <= room:
            found[-1].append(part)
            room -= size
        else:
            found.append([part])
            room = share_bytes - size
    return found


def reading(job: Job, parts: list[list[Part]], tasks: int) -> BatchFunction:
    """A function for `map_batches`: indexes of shares in, the blocks of their events out."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in given(batches):
            for part in parts[share]:
                for rows in _read(part):
                    kind, events = KINDS[part.table], _events(job, part, rows)
                    yield blocks_of(kind, events, tasks)
                    if kind in SEEN_IN:
                        yield blocks_of(layouts.SIGHTINGS, SEEN_IN[kind](events), tasks)

    return reaching([job.output], run)


def _read(part: Part) -> Iterator[pa.Table]:
    """Rows of a part in batches, with names as dictionaries."""
    with parquet_file(part.path, ("cluster", "topic", "group", "source")) as file:
        there = set(file.schema_arrow.names)
        groups = part.of_file(file.num_row_groups)
        columns = [name for name in _COLUMNS[part.table] if name in there]
        size = _BATCH_PUBLISHED if part.table in PUBLISHED else _BATCH_ROWS
        for batch in batches(file, columns, size, groups, use_threads=False):
            yield _whole(part.table, pa.Table.from_batches([batch]))


def _whole(table: str, rows: pa.Table) -> pa.Table:
    """Rows with nulls for the columns that the file lacks."""
    schema = arrow_schema(TABLES[table])
    for name in _COLUMNS[table]:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, schema.field(name).type))
    return rows


def _events(job: Job, part: Part, rows: pa.Table) -> pa.Table:
    """What the job measures with of these rows, in the layout of their kind."""
    table, is_older = part.table, part.older is not None
    layout = LAYOUTS[KINDS[table]]
    if table in PUBLISHED:  # of a long load one window is wanted
        rows = rows.filter(pa.array(_of_carry_over(job, rows)))
    columns = {
        LOG_OFFSETS.name: _points,
        RECORD_RANGES.name: _ranges,
        COMMITTED_OFFSETS.name: _commits,
        TOPIC_CONFIGS.name: _configurations,
        CONSUMER_LATENCY.name: _latency,
        STEADY_STATE.name: _states,
        CONSUMER_STATUS.name: _status,
        NON_CONSUMED.name: _unread,
    }[table](rows)
    columns |= {name: _names(rows, name) for name in ("cluster", "topic", "group") if name in rows.column_names}
    columns |= {"partition": rows["partition"]} if "partition" in rows.column_names else {}
    fields = [field for field in layout if field.name in columns]
    found = pa.table([_cast(columns[field.name], field.type) for field in fields], schema=pa.schema(fields))
    if table in PUBLISHED:
        return found
    wanted = _of_interval(job, rows, columns, is_older)
    if "offset" in found.column_names and table != COMMITTED_OFFSETS.name:
        wanted &= ~_impossible(found)
    return found if wanted.all() else found.filter(pa.array(wanted))


def _impossible(rows: pa.Table) -> Bools:
    """Rows with an offset that no log reaches."""
    offsets = [rows[name] for name in ("offset", "until", "log_start") if name in rows.column_names]
    over = [pc.fill_null(pc.greater(values, LARGEST_OFFSET), False).to_numpy() for values in offsets]
    return np.asarray(np.any(over, axis=0), dtype=np.bool_)


def _points(rows: pa.Table) -> dict[str, Any]:
    flags = {"list_offsets": LOOKED_UP, "record": 0}
    return {
        "at": _micros(rows, "at"),
        "offset": rows["log_end_offset"],
        "log_start": rows["log_start_offset"],
        "flags": _by_name(rows, "source", lambda word: flags.get(word, POLLED), np.uint8),
    }


def _ranges(rows: pa.Table) -> dict[str, Any]:
    times = {name: _micros(rows, name) for name in ("at", "earliest", "latest")}
    return {"offset": rows["first_offset"], "until": rows["end_offset"], "records": rows["records"], **times}


def _commits(rows: pa.Table) -> dict[str, Any]:
    beyond = _is(rows, "source", BEYOND_LOG_END.__eq__)
    beyond |= pc.fill_null(pc.greater(rows["committed_offset"], LARGEST_OFFSET), False).to_numpy()
    return {
        "at": _micros(rows, "at"),
        "offset": rows["committed_offset"],
        "flags": _by_name(rows, "source", _flags_of_commits, np.uint8),
        "invalid": np.where(beyond, BEYOND_END, VALID),
    }


def _flags_of_commits(source: str) -> int:
    polled = 0 if source in EVERY_COMMIT else POLLED
    certain = CERTAIN if source in (*EVERY_COMMIT, POLL_CONFIRMED) else 0
    return polled | certain | (EARLIER_LOST if source == COMPACTED else 0)


def _configurations(rows: pa.Table) -> dict[str, Any]:
    policies = rows["cleanup_policy"].combine_chunks()
    either_way = pc.if_else(pc.equal(policies, "delete,compact"), "compact,delete", policies)
    return {
        "at": _micros(rows, "at"),
        "cleanup_policy": pc.dictionary_encode(either_way),
        "retention_ms": rows["retention_ms"],
        "topic_id": pc.dictionary_encode(rows["topic_id"].combine_chunks()),
        "partitions": rows["partitions"],
    }


def _latency(rows: pa.Table) -> dict[str, Any]:
    return {
        "at": _micros(rows, "last_commit_at"),
        "offset": rows["committed_offset"],
        "assumed": rows["assumed_offset"],
        "log_start": rows["log_start_offset"],
        "log_end": rows["log_end_offset"],
        "polled": pc.fill_null(rows["polled_only"], True),
        "invalid": codes(rows["unknown_reason"]),
    }


def _states(rows: pa.Table) -> dict[str, Any]:
    times = ("since", "rewound_at", "progress_at")
    return {name: _micros(rows, name) if name in times else rows[name] for name in _OF_STATES}


def _status(rows: pa.Table) -> dict[str, Any]:
    times = rows["commit_times"].cast(pa.list_(pa.timestamp("us", "UTC")))
    return {
        "at": _micros(rows, "window_end"),
        "log_end": rows["log_end_offset"],
        "polled": rows["polled_only"],
        "seen": _micros(rows, "last_seen_at"),
        "times": times,
        "offsets": rows["commit_offsets"],
        "lags": rows["commit_lags"],
    }


def _unread(rows: pa.Table) -> dict[str, Any]:
    return {
        "at": _micros(rows, "window_end"),
        "offset": rows["committed_offset"],
        "log_start": rows["log_start_offset"],
        "low": rows["position_low"],
        "high": rows["position_high"],
        "lost_low": rows["non_consumed_total_low"],
        "lost_high": rows["non_consumed_total_high"],
    }


_OF_STATES = tuple(field.name for field in LAYOUTS[layouts.STATES] if field.name not in layouts.GROUP_PARTITION)
_COLUMNS = {
    LOG_OFFSETS.name: LOG_OFFSETS.names,
    RECORD_RANGES.name: RECORD_RANGES.names,
    COMMITTED_OFFSETS.name: COMMITTED_OFFSETS.names,
    TOPIC_CONFIGS.name: ("cluster", "topic", "at", "cleanup_policy", "retention_ms", "topic_id", "partitions"),
} | {
    table: ("cluster", "group", "topic", "partition", "window_end", "load_id", *columns)
    for table, columns in {
        CONSUMER_LATENCY.name: (
            "last_commit_at",
            "committed_offset",
            "assumed_offset",
            "log_start_offset",
            "log_end_offset",
            "polled_only",
            "unknown_reason",
        ),
        STEADY_STATE.name: _OF_STATES,
        CONSUMER_STATUS.name: (
            "last_seen_at",
            "polled_only",
            "log_end_offset",
            "commit_times",
            "commit_offsets",
            "commit_lags",
        ),
        NON_CONSUMED.name: (
            "committed_offset",
            "log_start_offset",
            "position_low",
            "position_high",
            "non_consumed_total_low",
            "non_consumed_total_high",
        ),
    }.items()
}
"""What is read of the files."""


def _of_interval(job: Job, rows: pa.Table, columns: dict[str, Any], is_older: bool) -> Bools:
    """Facts up to the interval's end, and polls of the log somewhat later: they tell what cannot have been in it. Of
    commits those from each cluster's carry-over on, all of topics that are replayed anew, and of older files only
    these."""
    at: Ints = columns["at"].to_numpy()
    end = epoch_ms(job.interval.end) * 1_000
    is_commit = "invalid" in columns
    wanted: Bools = at <= end
    if is_commit:  # what polls find at the end was committed before
        wanted = (at < end) | (wanted & (columns["flags"] & CERTAIN == 0))
    elif "topic_id" in columns:
        wanted = at <= end + NEXT_POLL_US
    elif "flags" in columns:
        wanted |= (at <= end + NEXT_POLL_US) & (columns["flags"] & POLLED != 0)
    found: Bools = np.zeros(rows.num_rows, dtype=np.bool_)
    for replay in job.replays:
        since = np.ones(rows.num_rows, dtype=np.bool_)
        if replay.carried and is_commit:
            since = at >= epoch_ms(replay.commits_since or replay.carried.at) * 1_000
        if is_older or replay.anew:
            since = _is(rows, "topic", replay.anew.__contains__) | (since & (not is_older))
        found |= since & _selected(replay, rows)
    return wanted & found


def _of_carry_over(job: Job, rows: pa.Table) -> Bools:
    """Published rows of the window that ends where the replay of their cluster begins."""
    end: Ints = _micros(rows, "window_end").to_numpy()
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    for replay in job.replays:
        if replay.carried:
            own = pc.equal(rows["load_id"], replay.carried.load_id).to_numpy()
            own &= (end == epoch_ms(replay.carried.at) * 1_000) & _selected(replay, rows)
            found |= own & ~_is(rows, "topic", replay.anew.__contains__) if replay.anew else own
    return found


def _selected(replay: Replay, rows: pa.Table) -> Bools:
    """Rows of the cluster whose topic and group its patterns select."""
    one = _is(rows, "cluster", replay.cluster.name.__eq__) & _is(rows, "topic", replay.cluster.topics.matches)
    return one & _is(rows, "group", replay.cluster.groups.matches) if "group" in rows.column_names else one


def _is(rows: pa.Table, name: str, test: Callable[[str], bool]) -> Bools:
    """Which rows' names pass a test."""
    found: Bools = _by_name(rows, name, test, np.bool_)
    return found


def _by_name(rows: pa.Table, name: str, value_of: Callable[[str], Any], dtype: Any) -> Any:
    """What a function says of each row's name; it is asked once a batch of each."""
    names = _names(rows, name)
    values = np.array([value_of(word) for word in names.dictionary.to_pylist()], dtype=dtype)
    one = not names.null_count and len(values) and (values == values[0]).all()
    return np.full(len(names), values[0]) if one else values[names.indices.to_numpy()]


def _names(rows: pa.Table, name: str) -> pa.DictionaryArray:
    column = rows[name].combine_chunks()
    column = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    return column.cast(NAME)


def _micros(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows[name].cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _cast(values: Any, to: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return (pa.array(values) if isinstance(values, np.ndarray) else values).cast(to)
