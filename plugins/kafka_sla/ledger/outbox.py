"""Notices of misses that wait to be sent, each sent once however many tasks try. Knows no mail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, exists, insert, or_, select, update

from kafka_sla.ledger.database import Database
from kafka_sla.ledger.schema import NOTICES, SLA_MISSES
from kafka_sla.model.entities import Miss

NoticeKind = Literal["opened", "recovered"]
MAIL = "mail"
ASSET = "asset"
"""Other people's DAGs that wait for an Airflow asset."""
_TIMES = ("start", "end", "opened_at", "worst_at")


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell: a miss as it was when the notice was queued."""

    kind: NoticeKind
    miss: Miss
    run_url: str | None = None
    thread: str = ""
    """Id of the miss under which the incident was first told; another than the miss's own when late facts moved its
    start. The outbox sets it."""
    channel: str = MAIL
    """Who is told; each channel is told on its own, so that one that fails makes no other tell twice."""


class Outbox:
    """The notices of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enqueue(self, notice: Notice) -> bool:
        """Queue a notice unless the incident was told already; a recovery only when its opening was. Was it queued?"""
        with self._database.writing(f"notices {notice.miss.sla}") as connection:
            told = _told(connection, notice)
            if any(row.kind == notice.kind for row in told) or (notice.kind == "recovered" and not told):
                return False
            thread = told[0].thread if told else notice.miss.id
            connection.execute(insert(NOTICES).values(**_row(notice, thread)))
            return True

    def deliver(
        self,
        send: Callable[[Notice], None],
        slas: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        *,
        but: Sequence[str] = (),
    ) -> int:
        """Send what waits, oldest first, each inside its own transaction; answers how many were sent. A notice that
        could not be sent waits for the next delivery; the others are sent before its error is raised. None: all, `but`
        those channels."""
        failed: dict[int, Exception] = {}
        sent = 0
        while True:
            with self._database.writing() as connection:
                row = connection.execute(_next(slas, channels, but, list(failed))).first()
                if row is None:
                    break
                try:
                    send(_notice(row))
                except Exception as error:
                    failed[row.seq] = error
                    continue
                connection.execute(update(NOTICES).where(NOTICES.c.seq == row.seq).values(sent_at=datetime.now(UTC)))
            sent += 1
        if failed:
            raise _as_one(list(failed.values()))
        return sent

    def waiting(self, slas: Sequence[str] | None = None) -> list[Notice]:
        """Notices not sent yet."""
        rows = select(NOTICES).where(NOTICES.c.sent_at.is_(None)).order_by(NOTICES.c.seq)
        if slas is not None:
            rows = rows.where(NOTICES.c.sla.in_(slas))
        with self._database.reading() as connection:
            return [_notice(row) for row in connection.execute(rows)]


def _told(connection: Connection, notice: Notice) -> list[Row[Any]]:
    """What the notice's channel heard of this miss, or of one that overlapped it in time and is no miss of its own any
    more: late facts moved the start of the same incident, and with it the id."""
    miss = notice.miss
    current = exists().where(SLA_MISSES.c.miss_id == NOTICES.c.miss_id)
    moved = (NOTICES.c.known_until > miss.start) & ~current
    if miss.end is not None:
        moved &= NOTICES.c.start_at < miss.end
    rows = select(NOTICES).where(NOTICES.c.sla == miss.sla, or_(NOTICES.c.miss_id == miss.id, moved))
    return list(connection.execute(rows.where(NOTICES.c.channel == notice.channel).order_by(NOTICES.c.seq)))


def _next(slas: Sequence[str] | None, channels: Sequence[str] | None, but: Sequence[str], failed: Sequence[int]) -> Any:
    """The oldest notice that waits and that nobody else is sending; never a recovery before its opening is sent."""
    opening = NOTICES.alias("opening")
    unsent = exists().where(
        opening.c.thread == NOTICES.c.thread,
        opening.c.channel == NOTICES.c.channel,
        opening.c.seq < NOTICES.c.seq,
        opening.c.sent_at.is_(None),
    )
    rows = select(NOTICES).where(NOTICES.c.sent_at.is_(None), NOTICES.c.seq.not_in(failed), ~unsent)
    rows = rows.where(NOTICES.c.channel.not_in(but))
    if slas is not None:
        rows = rows.where(NOTICES.c.sla.in_(slas))
    if channels is not None:
        rows = rows.where(NOTICES.c.channel.in_(channels))
    return rows.order_by(NOTICES.c.seq).limit(1).with_for_update(of=NOTICES, skip_locked=True)


def _as_one(errors: list[Exception]) -> Exception:
    return errors[0] if len(errors) == 1 else ExceptionGroup(f"{len(errors)} notices could not be sent", errors)


def _row(notice: Notice, thread: str) -> dict[str, Any]:
    miss = notice.miss
    return {
        "miss_id": miss.id,
        "kind": notice.kind,
        "channel": notice.channel,
        "sla": miss.sla,
        "thread": thread,
        "start_at": miss.start,
        "known_until": miss.end or miss.opened_at,
        "notice": json.dumps({"miss": asdict(miss), "run_url": notice.run_url}, default=datetime.isoformat),
        "queued_at": datetime.now(UTC),
    }


def _notice(row: Row[Any]) -> Notice:
    told = json.loads(row.notice)
    miss = told["miss"]
    for name in _TIMES:
        miss[name] = datetime.fromisoformat(miss[name]) if miss[name] else None
    return Notice(row.kind, Miss(**miss), told["run_url"], row.thread, row.channel)
