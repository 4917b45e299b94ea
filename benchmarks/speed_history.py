"""Files and bytes that a day of history takes, and what the nightly settling does to them.

One measured stretch of the day gives the rows; they are stored interval by interval, through the same doors as runs do.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets
from benchmarks.speed_recompute import store_facts, workplace
from benchmarks.speed_table import megabytes, say, seconds, table, timed
from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.local_run import Run, execute
from kafka_sla.config.store import Store
from kafka_sla.files import bytes_of, files_below, write_rows
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.table_maintenance import MaintenanceResult
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS, METRICS

RUN = timedelta(minutes=5)
_HOUR = Interval(START, START + timedelta(hours=1))


def day(intervals: int = 288, group_partitions: int = 1_000) -> str:
    """A day of five-minute runs, before and after the nights that tidy it."""
    shape = Shape(group_partitions)
    with tempfile.TemporaryDirectory(prefix="kafka_sla-history-") as folder:
        measured = measured_hour(workplace(Path(folder, "measured")), shape)
        store = Store.embedded(Path(folder, "day"))
        spent: dict[str, float] = {}
        with timed(f"storing {intervals} runs", spent):
            for number in range(intervals):
                start = START + number * RUN
                store_run(store, shape, start, measured)
                if start.minute == 0:
                    say(f"stored {start:%H:%M}")
        before, read_before = inventory(store), _read_seconds(store, intervals)
        with timed("settling", spent):
            nights = [Lake(store).maintain(datetime.now(UTC) + timedelta(days=days)) for days in (2, 4, 6)]
        after, read_after = inventory(store), _read_seconds(store, intervals)
    rows = [
        (kind, f"{before[kind][0]:,}", megabytes(before[kind][1]), f"{after[kind][0]:,}", megabytes(after[kind][1]))
        for kind in sorted(before)
    ]
    head = ["what", "files", "bytes", "files after the nights", "bytes after the nights"]
    return (
        f"{intervals} five-minute runs of {group_partitions:,} group-partitions. Storing one takes"
        f" {seconds(spent[f'storing {intervals} runs'] / intervals)} besides Spark; three nights of settling took"
        f" {seconds(spent['settling'])}: {_all(nights, 'merged_loads')} loads became one,"
        f" {_all(nights, 'compacted_files')} files of facts became one a day and table,"
        f" {_all(nights, 'expired_snapshots')} snapshots of tables were forgotten,"
        f" {_all(nights, 'trashed_files')} files went to the trash."
        " Reading an hour of `consumer_latency`:"
        f" {seconds(read_before)} before, {seconds(read_after)} after.\n\n" + table(head, rows)
    )


def _all(nights: Sequence[MaintenanceResult], what: str) -> str:
    return f"{sum(getattr(night, what) for night in nights):,}"


def measured_hour(place: Workplace, shape: Shape) -> dict[str, pa.Table]:
    """Published rows of one hour of every metric table."""
    store_facts(place, shape, 1 / 24)
    execute(place, Run(_HOUR, (CLUSTER,), place.settings.slas, live=False))
    lake = Lake(place.store)
    return {of.name: lake.published(of.name, _HOUR) for of in METRICS}


def store_run(store: Store, shape: Shape, start: datetime, measured: Mapping[str, pa.Table]) -> list[str]:
    """What a run stores of its interval: facts, the files of its load, and the row that publishes it. Answers which
    tables have rows of it."""
    interval, lake = Interval(start, start + RUN), Lake(store)
    load_id = load_id_of(start)
    lake.land(
        {LOG_OFFSETS.name: log_offsets(shape, interval), COMMITTED_OFFSETS.name: committed_offsets(shape, interval)}
    )
    files = {}
    for name, hour in measured.items():
        files[name] = [f"{lake.stage_dir(load_id)}/{name}/part-0.parquet"]
        write_rows(files[name][0], shifted(hour, interval, start))
    names = lake.add_load(load_id, interval, files)
    Ledger(store).publications.publish([CLUSTER], interval, load_id, Ledger(store).ingestions.readable_seq(CLUSTER))
    return names


def load_id_of(start: datetime) -> str:
    """The load that begins then."""
    return f"{int(start.timestamp()):032x}"


def shifted(hour: pa.Table, interval: Interval, start: datetime) -> pa.Table:
    """The rows of the same minutes of the measured hour, moved to this part of an hour of a load that starts then."""
    moved = interval.start.replace(minute=0) - START
    part = Interval(interval.start - moved, interval.end - moved)
    rows = hour.filter((pc.field("window_start") >= part.start) & (pc.field("window_start") < part.end))
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(at, field, pc.add(rows[field.name], pa.scalar(moved, pa.duration("us"))))
    stamp = pa.scalar(start, pa.timestamp("us", "UTC"))
    rows = rows.append_column("interval_start", pa.repeat(stamp, rows.num_rows))
    return rows.append_column("load_id", pa.repeat(pa.scalar(load_id_of(start)), rows.num_rows))


def inventory(store: Store) -> defaultdict[str, tuple[int, int]]:
    """Files and bytes in the warehouse by what they hold."""
    files: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for path in files_below(store.warehouse):
        kind = _kind(path.removeprefix(store.warehouse + "/"))
        files[kind] += 1
        size[kind] += bytes_of([path])
    return defaultdict(lambda: (0, 0), {kind: (files[kind], size[kind]) for kind in files})


def _kind(path: str) -> str:
    first, *rest = path.split("/")
    if first == "facts":
        return f"facts: {rest[0]}"
    if first == "staging":
        return f"metrics: {rest[1]}"
    if first == "trash":
        return "trash"
    return "Iceberg metadata"


def _read_seconds(store: Store, intervals: int) -> float:
    """The last whole hour of the day, as a page would read it."""
    hour = max(1, intervals // 12) - 1
    spent: dict[str, float] = {}
    with timed("reading an hour", spent):
        start = START + timedelta(hours=hour)
        Lake(store).published(CONSUMER_LATENCY.name, Interval(start, start + timedelta(hours=1)), [CLUSTER])
    return spent["reading an hour"]
