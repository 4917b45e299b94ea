"""What people noted about misses: who looks after one, and comments, each kept with who and when. Judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import BigInteger, Column, Connection, Integer, Row, Select, String, Table, Text, insert, select

from kafka_sla.ledger.storage.database import Database, UtcTime
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.model.entities import Miss

NoteKind = Literal["acknowledged", "comment"]
MISS_NOTES = Table(
    "miss_notes",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    Column("sla", Text, nullable=False, index=True),
    Column("miss_id", String(64), nullable=False),
    Column("start_at", UtcTime, nullable=False),
    Column("known_until", UtcTime, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("author", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that somebody noted about a miss."""

    kind: NoteKind
    author: str
    text: str
    at: datetime


class Triage:
    """The notes of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def comment(self, miss: Miss, author: str, text: str) -> None:
        """Keep a comment about a miss as it is known now."""
        with self._writing(miss) as connection:
            connection.execute(insert(MISS_NOTES).values(_row(miss, "comment", author, text)))

    def acknowledge(self, miss: Miss, author: str, text: str = "") -> None:
        """Acknowledge a miss as it is known now. Without a text it happens once, however many people click at once."""
        with self._writing(miss) as connection:
            notes = _by_miss(connection.execute(_notes_of([miss])).all(), [miss])[miss.id]
            if text or all(note.kind != "acknowledged" for note in notes):
                connection.execute(insert(MISS_NOTES).values(_row(miss, "acknowledged", author, text)))

    def notes(self, misses: Sequence[Miss]) -> dict[str, list[Note]]:
        """By id of the miss, in the order in which they were written; those of one that late facts moved stay its own:
        they are of the time that it covers."""
        return _by_miss(self._database.rows(_notes_of(misses)), misses)

    def _writing(self, miss: Miss) -> AbstractContextManager[Connection]:
        return self._database.writing(f"notes {miss.sla}")


def _notes_of(misses: Sequence[Miss]) -> Select[Any]:
    """The notes of the SLAs of these misses, in the order in which they were written."""
    return select(MISS_NOTES).where(MISS_NOTES.c.sla.in_({miss.sla for miss in misses})).order_by(MISS_NOTES.c.seq)


def _by_miss(rows: Sequence[Row[Any]], misses: Sequence[Miss]) -> dict[str, list[Note]]:
    notes = {miss.id: list[Note]() for miss in misses}
    for row in rows:
        for miss in misses:
            overlaps = row.known_until > miss.start and (miss.end is None or row.start_at < miss.end)
            if miss.sla == row.sla and (miss.id == row.miss_id or (row.miss_id not in notes and overlaps)):
                notes[miss.id].append(Note(row.kind, row.author, row.text, row.at))
    return notes


def _row(miss: Miss, kind: NoteKind, author: str, text: str) -> dict[str, Any]:
    return {
        "sla": miss.sla,
        "miss_id": miss.id,
        "start_at": miss.start,
        "known_until": miss.end or miss.opened_at,
        "kind": kind,
        "author": author,
        "text": text,
        "at": datetime.now(UTC),
    }
