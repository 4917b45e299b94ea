"""The windows of `sla_windows`: rows while their day is young, afterwards one packed row a day. Judges nothing.

A year of minutes is half a million rows an SLA; a packed day of them takes a tenth of their bytes and one row. Whoever
reads asks both with the same statement. Whoever writes has the days that it touches put back as rows first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    LargeBinary,
    MetaData,
    Row,
    Select,
    StaticPool,
    Table,
    Text,
    and_,
    create_engine,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy.sql.visitors import iterate

from kafka_sla.errors import DamagedWindows
from kafka_sla.ledger.storage.database import UtcTime
from kafka_sla.ledger.storage.schema import METADATA, SLA_WINDOWS
from kafka_sla.model import tables
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Interval, SlaWindow, Verdict, floor_time
from kafka_sla.parquet_files import write_options
from kafka_sla.sla.rollups import DAY_MS

WINDOW_DAYS = Table(
    "sla_window_days",
    METADATA,
    Column("sla", Text, primary_key=True),
    Column("day", UtcTime, primary_key=True),
    Column("first_start", UtcTime, nullable=False),
    Column("last_end", UtcTime, nullable=False),
    Column("verdicts", Text, nullable=False),
    Column("windows", LargeBinary, nullable=False),
    Column("crc32", BigInteger, nullable=False),
)
"""Windows that start on a day of UTC, as a Parquet file; `verdicts` are those that they were judged with, as words."""

JUDGED = func.coalesce(SLA_WINDOWS.c.judged_verdict, SLA_WINDOWS.c.verdict)
"""The verdict of a window whatever was excluded afterwards."""
WINDOW_FIELDS = tuple(field.name for field in fields(SlaWindow) if field.name != "window")

_DAY = timedelta(days=1)
_DAYS_AT_ONCE = 32
"""Packed days that are held in memory at once as rows."""


def window_of(row: Row[Any]) -> SlaWindow:
    """A row of `sla_windows`."""
    of_row = row._mapping  # made anew each time it is asked for
    values = {name: of_row[name] for name in WINDOW_FIELDS}
    return SlaWindow(window=Interval(row.window_start, row.window_end), **values | {"reason": row.reason or ""})


# reading


def windows_between(connection: Connection, sla: str, interval: Interval) -> list[SlaWindow]:
    """The windows that start in the interval, in time order."""
    t = SLA_WINDOWS.c
    wanted = select(SLA_WINDOWS).where(t.sla == sla, t.window_start >= interval.start, t.window_start < interval.end)
    found = [window_of(row) for row in rows_of(connection, wanted, [sla], interval)]
    return sorted(found, key=lambda window: window.window.start)


def rows_of(
    connection: Connection, wanted: Select[Any], slas: Sequence[str] | None, interval: Interval
) -> list[Row[Any]]:
    """What a statement over `sla_windows` answers of the rows, then of packed days, some at a time: sums and groups
    come in several parts. It asks for windows that start in the interval; `slas`: None for all."""
    days = _days(slas).where(WINDOW_DAYS.c.day > interval.start - _DAY, WINDOW_DAYS.c.day < interval.end)
    packed = connection.execute(days.order_by(WINDOW_DAYS.c.sla, WINDOW_DAYS.c.day)).all()
    found = list(connection.execute(wanted).all())
    for begin in range(0, len(packed), _DAYS_AT_ONCE):
        found += _asked(connection, wanted, [(row.sla, row.day) for row in packed[begin : begin + _DAYS_AT_ONCE]])
    return found


def first_start(connection: Connection, sla: str, verdict: Verdict, since: datetime) -> datetime | None:
    """Start of the first window from that time on which was judged so."""
    t, d = SLA_WINDOWS.c, WINDOW_DAYS.c
    wanted = select(t.window_start).where(t.sla == sla, JUDGED.in_([verdict]), t.window_start >= since)
    wanted = wanted.order_by(t.window_start).limit(1)
    days = _days([sla]).where(d.verdicts.contains(verdict), d.day > since - _DAY).order_by(d.day)
    candidates = (connection.execute(wanted).scalar(), _first_answer(connection, wanted, days))
    return min((at for at in candidates if at), default=None)


def has_windows_since(connection: Connection, sla: str, since: datetime) -> bool:
    """Do any windows of an SLA end after that time?"""
    t, d = SLA_WINDOWS.c, WINDOW_DAYS.c
    rows = select(t.sla).where(t.sla == sla, t.window_start >= since).limit(1)
    days = select(d.sla).where(d.sla == sla, d.last_end > since).limit(1)
    return any(connection.execute(one).first() is not None for one in (rows, days))


def newest(connection: Connection, sla: str, wanted: Select[Any]) -> Row[Any] | None:
    """The newest window of an SLA in the columns of a statement."""
    t = SLA_WINDOWS.c
    of_rows = connection.execute(select(func.max(t.window_start)).where(t.sla == sla)).scalar_one()
    last = wanted.where(t.sla == sla).order_by(t.window_start.desc()).limit(1)
    if day := newest_packed(connection, [sla], of_rows).get(sla):
        return _asked(connection, last, [(sla, day)])[0]
    return connection.execute(last).first()


def newest_packed(connection: Connection, slas: Sequence[str], after: datetime | None) -> dict[str, datetime]:
    """The newest packed day of each SLA that has one after that time."""
    d = WINDOW_DAYS.c
    days = select(d.sla, func.max(d.day).label("day")).where(d.sla.in_(slas)).group_by(d.sla)
    found = connection.execute(days.where(d.day > after) if after else days).all()
    return {row.sla: row.day for row in found}


def judged_spans(connection: Connection) -> dict[str, Interval]:
    """Every SLA that has windows, and the time from its first window to its last."""
    t, d = SLA_WINDOWS.c, WINDOW_DAYS.c
    parts = [
        *connection.execute(select(t.sla, func.min(t.window_start), func.max(t.window_end)).group_by(t.sla)).all(),
        *connection.execute(select(d.sla, func.min(d.first_start), func.max(d.last_end)).group_by(d.sla)).all(),
    ]
    found: dict[str, Interval] = {}
    for sla, start, end in parts:
        one = found.get(sla, Interval(start, end))
        found[sla] = Interval(min(one.start, start), max(one.end, end))
    return found


def damaged_days(connection: Connection, sla: str) -> list[Interval]:
    """Of each day of an SLA whose packed windows cannot be read the time from the first of them to the last."""
    d, found = WINDOW_DAYS.c, []
    for row in connection.execute(select(d.day, d.first_start, d.last_end).where(d.sla == sla).order_by(d.day)).all():
        try:
            _unpacked(connection, sla, row.day)
        except DamagedWindows:
            found.append(Interval(row.first_start, row.last_end))
    return found


def _days(slas: Sequence[str] | None) -> Select[Any]:
    """Which days of these SLAs are packed."""
    days = select(WINDOW_DAYS.c.sla, WINDOW_DAYS.c.day)
    return days if slas is None else days.where(WINDOW_DAYS.c.sla.in_(slas))


def _first_answer(connection: Connection, wanted: Select[Any], days: Select[Any]) -> Any:
    """The first value that the statement finds in one of the days."""
    answers = (_asked(connection, wanted, [(row.sla, row.day)]) for row in connection.execute(days).all())
    return next((found[0][0] for found in answers if found), None)


def _asked(connection: Connection, wanted: Select[Any], days: Iterable[tuple[str, datetime]]) -> list[Row[Any]]:
    """What a statement answers of packed days: what it names of them is a table in a SQLite of this process meanwhile,
    without keys, for it is asked once."""
    named = {part for whole in (wanted, *wanted.selected_columns) for part in iterate(whole)}
    columns = [column for column in SLA_WINDOWS.c if column in named]
    names = [c.name for c in columns]
    here = Table(SLA_WINDOWS.name, MetaData(), *(Column(c.name, c.type) for c in columns))
    engine = create_engine("sqlite://", poolclass=StaticPool)
    try:
        with engine.begin() as memory:
            here.create(memory)
            put = str(insert(here).compile(engine))
            for sla, day in days:
                memory.exec_driver_sql(put, list(_sqlite_rows(_unpacked(connection, sla, day, names))))
            return list(memory.execute(wanted).all())
    finally:
        engine.dispose()


def _sqlite_rows(windows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows with times as `UtcTime` keeps them in SQLite."""
    times = pa.types.is_timestamp
    texts = (c.cast(pa.timestamp("us")).cast(pa.string()) if times(c.type) else c for c in windows.columns)
    return zip(*(column.to_pylist() for column in texts), strict=True)


# packing


def pack_day(connection: Connection, sla: str, day: datetime) -> bool:
    """Pack the rows that start on this day; were there any?"""
    t, span = SLA_WINDOWS.c, Interval(day, day + _DAY)
    mine = and_(t.sla == sla, t.window_start >= span.start, t.window_start < span.end)
    if connection.execute(select(t.sla).where(mine).limit(1)).first() is None:
        return False
    unpack_days(connection, sla, span)
    rows = connection.execute(select(SLA_WINDOWS).where(mine).order_by(t.window_start)).all()
    windows = arrow_rows(tables.SLA_WINDOWS, [dict(row._mapping) for row in rows])
    judged = {row.judged_verdict or row.verdict for row in rows}
    sink = pa.BufferOutputStream()
    pq.write_table(windows, sink, **write_options(windows.schema))
    packed = sink.getvalue().to_pybytes()
    connection.execute(
        insert(WINDOW_DAYS).values(
            sla=sla,
            day=day,
            first_start=rows[0].window_start,
            last_end=max(row.window_end for row in rows),
            verdicts=" ".join(sorted(judged)),
            windows=packed,
            crc32=zlib.crc32(packed),
        )
    )
    connection.execute(delete(SLA_WINDOWS).where(mine))
    return True


def days_with_rows(connection: Connection, until: datetime) -> Iterator[tuple[str, datetime]]:
    """SLAs and the days before that time of which rows may be left, oldest first."""
    t = SLA_WINDOWS.c
    spans = select(t.sla, func.min(t.window_start), func.max(t.window_start)).where(t.window_start < until)
    for sla, first, last in connection.execute(spans.group_by(t.sla).order_by(t.sla)).all():
        day = floor_time(first, DAY_MS)
        while day <= last:
            yield sla, day
            day += _DAY


def unpack_days(connection: Connection, sla: str, span: Interval, replaced: Interval | None = None) -> None:
    """Put the packed days that the span touches back as rows; those of which every window is replaced are not needed,
    be they readable or not."""
    d = WINDOW_DAYS.c
    touched = and_(d.sla == sla, d.day > span.start - _DAY, d.day < span.end)
    for row in connection.execute(select(d.day, d.first_start, d.last_end).where(touched)).all():
        if not (replaced and replaced.covers(Interval(row.first_start, row.last_end))):
            connection.execute(insert(SLA_WINDOWS), _unpacked(connection, sla, row.day).to_pylist())
    connection.execute(delete(WINDOW_DAYS).where(touched))


def _unpacked(
    connection: Connection, sla: str, day: datetime, columns: Sequence[str] = tables.SLA_WINDOWS.names
) -> pa.Table:
    """Columns of the windows of a day; a column that the packed day lacks is null."""
    d = WINDOW_DAYS.c
    packed, crc32 = connection.execute(select(d.windows, d.crc32).where(d.sla == sla, d.day == day)).one()
    if zlib.crc32(packed) != crc32:
        raise DamagedWindows(sla, day)
    file = pq.ParquetFile(pa.BufferReader(packed))
    found = file.read([name for name in columns if name in file.schema_arrow.names])
    for name in columns:
        if name not in found.column_names:
            found = found.append_column(name, pa.nulls(found.num_rows))
    return found.select(columns)
