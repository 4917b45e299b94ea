"""What grows while a year of five-minute runs passes: files, plans, pages, the database, a run and a night.

Days that are over are stored as the nights leave them, one load of a few group-partitions each; that this is what 288
runs and their nights leave is counted first. Around the days that are printed all group-partitions are there: the day
that the pages read, and the runs and the night after it.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import create_engine, inspect, text

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets
from benchmarks.speed_history import RUN, inventory, load_id_of, measured_hour, shifted, store_run
from benchmarks.speed_table import megabytes, say, seconds, table, timed
from kafka_sla.cli.console.context import Workplace
from kafka_sla.config.store import Store
from kafka_sla.files import write_rows
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.sla_stats import measured_spans
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.load_sums import Piece
from kafka_sla.model.entities import Interval, Sla, SlaWindow
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS, METRICS
from kafka_sla.pipeline import steps
from kafka_sla.pipeline.judged_time import attainments, judged_time
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, Rollup

_PRINTED = (1, 7, 30, 90, 180, 365)
_FEW = 10
"""Group-partitions of the days that nobody reads."""
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_RUNS = 12
"""Real runs after a printed day."""
_NIGHTLY = 7
"""Days between two nights where no day is printed: a night with nothing to merge changes little."""
_COUNTED_ANEW = ("store_states", "iceberg_tables", "fact_loads", "configurations")
"""Tables that count what happened, and not days."""
_SLAS = "\n".join(
    f"  - {{name: group {n} in time, cluster: {CLUSTER}, group: group-{n:05}, max_latency: 30s}}" for n in range(4)
)
_CONFIGURATION = f"""
clusters: {{{CLUSTER}: {{}}}}
slas:
  - {{name: all in time, cluster: {CLUSTER}, group: /.*/, topic: /.*/, max_latency: 30s}}
{_SLAS}
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the ledger holds of one day."""

    start: datetime
    windows: Mapping[str, Sequence[SlaWindow]]
    slots: Mapping[str, Sequence[Rollup]]
    load_sums: Mapping[str, Mapping[Piece, bytes]]


@dataclass(frozen=True, slots=True)
class Year:
    """A store that grows, and what it is made of."""

    place: Workplace
    first: datetime
    all: Mapping[str, pa.Table]
    """Rows of one hour, by table."""
    shape: Shape

    @property
    def store(self) -> Store:
        return self.place.store

    @property
    def few(self) -> dict[str, pa.Table]:
        return {name: _few(rows) for name, rows in self.all.items()}

    def day(self, number: int) -> Interval:
        return Interval(self.first + (number - 1) * _DAY, self.first + number * _DAY)


def grown(days: int = 365, group_partitions: int = 1_000) -> str:
    """So many days, printed at some of them."""
    with tempfile.TemporaryDirectory(prefix="kafka_sla-year-") as folder:
        measured = _workplace(Path(folder, "measured"))
        hour = measured_hour(measured, shape := Shape(group_partitions))
        said = [r for r in Ledger(measured.store).validations.results(Interval(START, START + _HOUR)) if r["success"]]
        first = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + 2 * _DAY
        alike = _alike(Path(folder), hour, said, first)
        year = Year(_workplace(Path(folder, "year")), first, hour, shape)
        printed = [day for day in _PRINTED if day < days] + [days]
        columns = _passed(year, said, printed)
    lines = [(what, *(column[what] for column in columns)) for what in columns[0]]
    return alike + "\n\n" + table(["after days", *(f"{day}" for day in printed)], lines)


def _workplace(folder: Path) -> Workplace:
    folder.mkdir()
    (folder / "kafka_sla.yml").write_text(_CONFIGURATION)
    return Workplace(folder / "kafka_sla.yml", folder / "store")


def _few(rows: pa.Table) -> pa.Table:
    if "group" not in rows.column_names:
        return rows
    return rows.filter((pc.field("group") == "group-00000") & (pc.field("partition") < _FEW))


# a day of runs, and a day in one load


def _alike(folder: Path, hour: Mapping[str, pa.Table], said: Sequence[Mapping[str, object]], first: datetime) -> str:
    """That a day which is stored at once is what is left of 288 runs; RuntimeError unless it is."""
    few = {name: _few(rows) for name, rows in hour.items()}
    day, shape = Interval(first, first + _DAY), Shape(_FEW)
    counts = []
    for name, stored in (("runs", _runs_of_day), ("once", _day_at_once)):
        place = _workplace(folder / name)
        with timed(f"a day, {name}", {}):
            stored(place, shape, day, few, said)
            for nights in (1, 2, 9):
                Lake(place.store).maintain(day.end + nights * _DAY)
        counts.append(_counts(place.store))
    runs, once = counts
    if differing := {what for what in runs.keys() | once.keys() if runs[what] != once[what]} - set(_COUNTED_ANEW):
        raise RuntimeError({what: (runs[what], once[what]) for what in differing})
    head = ["of one day", "288 runs, settled", "stored at once"]
    return table(head, [(what, runs[what], once[what]) for what in sorted(runs) if runs[what] or once[what]])


def _counts(store: Store) -> Counter[str]:
    found = Counter({kind: count for kind, (count, _) in inventory(store).items()})
    metadata = found.pop("Iceberg metadata")
    say(f"{metadata} files of Iceberg metadata")
    return found + Counter(_rows(store))


def _runs_of_day(
    place: Workplace, shape: Shape, day: Interval, hour: Mapping[str, pa.Table], said: Sequence[Mapping[str, object]]
) -> None:
    for part in day.pieces(RUN):
        _run(place, shape, part, hour, said)
    for part in day.pieces(_HOUR):
        _judge(place, part)


def _run(
    place: Workplace, shape: Shape, part: Interval, hour: Mapping[str, pa.Table], said: Sequence[Mapping[str, object]]
) -> None:
    """What a run stores, as its steps do."""
    ledger = Ledger(place.store)
    ledger.validations.store(_said(said, part))
    names = store_run(place.store, shape, part.start, hour)
    Lake(place.store).show(part, names)
    ledger.observed_time.add(CLUSTER, [part.end])


def _judge(place: Workplace, part: Interval) -> None:
    for _, found in steps.evaluate_all(place.settings, place.store, [s.name for s in place.settings.slas], part):
        if isinstance(found, Exception):
            raise found


def _day_at_once(
    place: Workplace, shape: Shape, day: Interval, hour: Mapping[str, pa.Table], said: Sequence[Mapping[str, object]]
) -> None:
    _load(place.store, shape, day, hour, said)
    _judge(place, day)


def _load(
    store: Store, shape: Shape, span: Interval, hour: Mapping[str, pa.Table], said: Sequence[Mapping[str, object]]
) -> None:
    """One load with a file an hour, as merging leaves a day, and facts with a file a day."""
    lake, ledger, load_id = Lake(store), Ledger(store), load_id_of(span.start)
    lake.land({LOG_OFFSETS.name: log_offsets(shape, span), COMMITTED_OFFSETS.name: committed_offsets(shape, span)})
    files: dict[str, list[str]] = {of.name: [] for of in METRICS}
    for name, rows in hour.items():
        for part in span.pieces(_HOUR) if rows.num_rows else ():
            files[name].append(f"{lake.stage_dir(load_id)}/{name}/{part.start:%H}.parquet")
            write_rows(files[name][-1], shifted(rows, part, span.start))
    ledger.validations.store(_said(said, span))
    names = lake.add_load(load_id, span, files)
    ledger.publications.publish([CLUSTER], span, load_id, ledger.ingestions.readable_seq(CLUSTER))
    lake.show(span, names)
    ledger.observed_time.add(CLUSTER, [part.end for part in span.pieces(RUN)])


def _said(said: Sequence[Mapping[str, object]], span: Interval) -> list[dict[str, object]]:
    mine = {"load_id": load_id_of(span.start), "interval_start": span.start, "interval_end": span.end}
    return [{**row, **mine} for row in said]


# the year


def _passed(year: Year, said: Sequence[Mapping[str, object]], printed: Sequence[int]) -> list[dict[str, str]]:
    judged: Judged | None = None
    rest: Interval | None = None
    columns = []
    for number in range(1, printed[-1] + 1):
        is_printed = number in printed
        span = rest or year.day(number)
        whole = is_printed and span == year.day(number)
        _load(year.store, year.shape if whole else Shape(_FEW), span, year.all if whole else year.few, said)
        if judged is None:
            _judge(year.place, span)
            judged = _judged(year, span)
        else:
            _repeat(year, judged, span, whole=span == year.day(number))
        rest = None
        if number % _NIGHTLY == 0 and not is_printed:
            Lake(year.store).maintain(span.end + _HOUR)
        if is_printed:
            columns.append(_printed(year, number, said))
            rest = Interval(year.day(number + 1).start + _RUNS * RUN, year.day(number + 1).end)
        say(f"day {number}")
    return columns


def _judged(year: Year, day: Interval) -> Judged:
    ledger, names = Ledger(year.store), [sla.name for sla in year.place.settings.slas]
    load_id = load_id_of(day.start)
    pieces = [Piece(load_id, width, s.start) for width in (DAY_MS, HOUR_MS, SLOT_MS) for s in day.windows(width)]
    return Judged(
        day.start,
        {name: ledger.verdicts.windows(name, day) for name in names},
        {name: ledger.rollups.whole(name, SLOT_MS, day) for name in names},
        {of.name: found for of in METRICS if (found := ledger.load_sums.read(of.name, pieces))},
    )


def _repeat(year: Year, judged: Judged, span: Interval, *, whole: bool) -> None:
    """The verdicts, rollups and sums of the day that was judged, moved to these hours of another one."""
    moved, ledger = year.first + (span.start - year.first) // _DAY * _DAY - judged.start, Ledger(year.store)
    for sla in year.place.settings.slas:
        windows = [replace(w, window=_moved(w.window, moved)) for w in judged.windows[sla.name]]
        slots = [replace(slot, span=_moved(slot.span, moved)) for slot in judged.slots[sla.name]]
        ledger.verdicts.replace(sla, span, [w for w in windows if span.covers(w.window)], lambda *_: [])
        ledger.rollups.replace(sla.name, span, [slot for slot in slots if span.covers(slot.span)], SLOT_MS)
    if whole:
        load_id = load_id_of(span.start)
        for name, sums in judged.load_sums.items():
            mine = {Piece(load_id, piece.width_ms, piece.start + moved): packed for piece, packed in sums.items()}
            ledger.load_sums.put(load_id, {name: mine})


def _moved(span: Interval, by: timedelta) -> Interval:
    return Interval(span.start + by, span.end + by)


def _printed(year: Year, number: int, said: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """What there is after that day, and what the pages, the next runs and a night take."""
    found = _sizes(year.store)
    day = year.day(number)
    found |= {what: _seconds(_best(ask)) for what, ask in _questions(year, day).items()}
    after = year.day(number + 1)
    runs = list(Interval(after.start, after.start + _RUNS * RUN).pieces(RUN))
    storing, judging = [], []
    for part in runs:
        storing.append(_took(partial(_run, year.place, year.shape, part, year.all, said)))
        judging.append(_took(partial(_judge, year.place, part)))
    found["a run stores"] = _seconds(median(storing))
    found[f"a run judges {len(year.place.settings.slas)} SLAs"] = _seconds(median(judging))
    found["a night"] = _seconds(_took(lambda: Lake(year.store).maintain(after.end + _DAY + _HOUR)))
    say(f"day {number}: {found}")
    return found


def _questions(year: Year, day: Interval) -> dict[str, Callable[[], object]]:
    """What pages ask of lake and ledger, each time opened anew, as after another run."""
    slas, store, hour = year.place.settings.slas, year.store, Interval(day.start + _HOUR, day.start + 2 * _HOUR)
    slices, month = Ledger(store).publications.slices([CLUSTER], hour), Interval(day.end - 30 * _DAY, day.end)
    names, window_ms = [sla.name for sla in slas], year.place.settings.window_ms
    return {
        "an hour of it: plan": lambda: Lake(store).published_files(CONSUMER_LATENCY, slices),
        "an hour of it: all of a page": lambda: measured_spans(
            Lake(store), Ledger(store), slas[0], hour, window_ms, window_ms
        ),
        "verdicts and periods of the overview": lambda: _overview(Ledger(store), slas, day.end),
        "a month's attainment": lambda: judged_time(Ledger(store), names, month),
    }


def _overview(ledger: Ledger, slas: Sequence[Sla], now: datetime) -> None:
    newest = ledger.queries.newest_verdicts([sla.name for sla in slas], now - _HOUR)
    attainments(ledger, [(sla, newest[sla.name].end) for sla in slas], newest=True)


def _seconds(took: float) -> str:
    return seconds(took) if took >= 1 else f"{took:.3f} s"


def _best(ask: Callable[[], object], times: int = 3) -> float:
    return min(_took(ask) for _ in range(times))


def _took(work: Callable[[], object]) -> float:
    """Seconds of processor time, of all threads: others keep the machine busy, too."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _sizes(store: Store) -> dict[str, str]:
    found = inventory(store)
    metadata = found.pop("Iceberg metadata")
    trash = found.pop("trash", (0, 0))
    rows = _rows(store)
    largest = {name: f"{rows[name]:,}" for name in _LARGEST}
    return {
        "files of rows": f"{sum(count for count, _ in found.values()):,}",
        "Iceberg metadata, files": f"{metadata[0]:,}",
        "Iceberg metadata": megabytes(metadata[1]),
        "trash, files": f"{trash[0]:,}",
        "database": megabytes(_database_bytes(store)),
        **{f"rows of {name}": count for name, count in largest.items()},
    }


_LARGEST = (
    "sla_windows",
    "sla_window_days",
    "sla_rollups",
    "load_sums",
    "validation_results",
    "fact_loads",
    "publications",
)


def _database_bytes(store: Store) -> int:
    engine = create_engine(store.url)
    with engine.connect() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    engine.dispose()
    return Path(str(store.url.database)).stat().st_size


def _rows(store: Store) -> dict[str, int]:
    engine = create_engine(store.url)
    with engine.connect() as connection:
        names = inspect(connection).get_table_names()
        found = {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in names}
    engine.dispose()
    return found
