"""What a load's rows add up to, by slot, hour and day: packed, for good, under the load that they are of. Knows neither
what is in a packed sum nor which load is visible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import BigInteger, Column, Connection, LargeBinary, String, Table, Text, and_, delete, func, insert, or_
from sqlalchemy import select as selected

from kafka_sla.ledger.rollups import SLOTS_KEPT
from kafka_sla.ledger.storage.database import Database, UtcTime, delete_each
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.model.entities import Interval
from kafka_sla.sla.rollups import SLOT_MS

LOAD_SUMS = Table(
    "load_sums",
    METADATA,
    Column("table_name", Text, primary_key=True),
    Column("width_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("start_at", UtcTime, primary_key=True),
    Column("load_id", String(64), primary_key=True),
    Column("sums", LargeBinary, nullable=False),
)


class Piece(NamedTuple):
    """A slot, an hour or a day of a load."""

    load_id: str
    width_ms: int
    start: datetime

    @property
    def span(self) -> Interval:
        return Interval(self.start, self.start + timedelta(milliseconds=self.width_ms))


class LoadSums:
    """The packed sums of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, load_id: str, sums: Mapping[str, Mapping[Piece, bytes]]) -> None:
        """Keep the sums of a load, by table; those that it had before are replaced. Slots are kept for days."""
        t = LOAD_SUMS.c
        rows = [
            {
                "table_name": table,
                "width_ms": piece.width_ms,
                "start_at": piece.start,
                "load_id": load_id,
                "sums": packed,
            }
            for table, pieces in sums.items()
            for piece, packed in pieces.items()
        ]
        pieces = {piece for mine in sums.values() for piece in mine}
        if not pieces:
            return
        first, last = min(piece.start for piece in pieces), max(piece.start for piece in pieces)
        widths = {piece.width_ms for piece in pieces}
        same = and_(t.table_name.in_(sums), t.width_ms.in_(widths), t.start_at >= first, t.start_at <= last)
        with self._database.writing("load sums") as connection:
            connection.execute(delete(LOAD_SUMS).where(same, t.load_id == load_id))
            connection.execute(insert(LOAD_SUMS), rows)
            for table in sums:
                _forget_old_slots(connection, table)

    def read(self, table: str, pieces: Collection[Piece]) -> dict[Piece, bytes]:
        """Those of the pieces that are kept."""
        t, wanted = LOAD_SUMS.c, set(pieces)
        ranges = [
            and_(t.width_ms == width, t.start_at >= span.start, t.start_at < span.end)
            for width, span in _ranges(pieces)
        ]
        rows = selected(t.load_id, t.width_ms, t.start_at, t.sums).where(t.table_name == table, or_(*ranges))
        found = self._database.rows(rows) if ranges else []
        return {piece: row.sums for row in found if (piece := Piece(*row[:3])) in wanted}

    def drop(self, load_ids: Collection[str]) -> None:
        """Forget what these loads add up to."""
        with self._database.writing("load sums") as connection:
            delete_each(connection, delete(LOAD_SUMS), LOAD_SUMS.c.load_id, load_ids)


def _ranges(pieces: Collection[Piece]) -> list[tuple[int, Interval]]:
    """The pieces of each width that follow each other as one span."""
    found: list[tuple[int, Interval]] = []
    for width, start in sorted({(piece.width_ms, piece.start) for piece in pieces}):
        span = Piece("", width, start).span
        if found and found[-1][0] == width and found[-1][1].end == span.start:
            found[-1] = (width, Interval(found[-1][1].start, span.end))
        else:
            found.append((width, span))
    return found


def _forget_old_slots(connection: Connection, table: str) -> None:
    t = LOAD_SUMS.c
    slots = and_(t.table_name == table, t.width_ms == SLOT_MS)
    newest = connection.execute(selected(func.max(t.start_at)).where(slots)).scalar_one()
    if newest:
        connection.execute(delete(LOAD_SUMS).where(slots, t.start_at < newest - SLOTS_KEPT))
