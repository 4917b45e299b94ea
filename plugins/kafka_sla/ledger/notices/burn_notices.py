"""Notices of burns of error budgets, each sent once however many tasks try, and those that share a cause as one
message. Knows no rate, no mail, and not what makes a cause a shared one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, and_, exists, insert, or_, select

from kafka_sla.ledger.notices.notice_queue import Batch, NoticeQueue, Waiting, lock_of
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import BURN_NOTICES, SLA_BURNS
from kafka_sla.model.entities import Miss
from kafka_sla.sla.burn import Burn

BurnNoticeKind = Literal["began", "over"]


@dataclass(frozen=True, slots=True)
class BurnNotice:
    """One thing to tell: a burn as it was when the notice was queued."""

    kind: BurnNoticeKind
    burn: Burn
    run_url: str | None
    channel: str
    thread: str = ""
    """Id of the burn under which it was first told; the queue sets it."""
    behind: Miss | None = None
    """The newest bad time before it began, explained as a miss is, however short; None where that is not known."""
    team: str | None = None
    """The SLA's when the burn was told to begin: a receiver may know the burn by it. None: a version that kept none."""
    known_until: datetime | None = field(default=None, compare=False)
    """How far the burn was known to reach, by now; the queue sets it."""


BurnMessage = Batch[BurnNotice]
"""The notices of one run, channel and severity that belong to one incident."""
_NOTICE = TypeAdapter(BurnNotice)


class BurnNotices:
    """The notices of burns of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.queue = NoticeQueue(database, _WAITING)
        """Delivers, alone or together, what waits."""

    def enqueue(self, notice: BurnNotice) -> bool:
        """Queue a notice unless it was told already; that a burn is over only when it was told to begin. Was it?"""
        burn = notice.burn
        with self._database.writing(lock_of(burn.sla)) as connection:
            told = _told(connection, notice)
            if any(row.kind == notice.kind for row in told) or (notice.kind == "over" and not told):
                return False
            if told:
                notice = replace(notice, team=_notice(told[0]).team)
            connection.execute(insert(BURN_NOTICES).values(_row(notice, told[0].thread if told else burn.id)))
            return True

    def end(self, began: BurnNotice, burn: Burn, run_url: str | None) -> bool:
        """Queue, under what was told to begin, that the burn it has become is over, unless that was queued, or it goes
        on by now. Was it queued?"""
        t = BURN_NOTICES.c
        with self._database.writing(lock_of(burn.sla)) as connection:
            of_it = t.sla == burn.sla, t.thread == began.thread, t.channel == began.channel
            told = connection.execute(select(t.kind, t.burn_id, _OPEN.label("goes_on")).where(*of_it)).all()
            if any(row.goes_on or row.kind == "over" for row in told):
                return False
            over = replace(began, kind="over", burn=burn, run_url=run_url)
            row = _row(over, began.thread) | {"burn_id": told[0].burn_id}
            connection.execute(insert(BURN_NOTICES).values(row))
            return True

    def reported(self, burns: Sequence[Burn]) -> dict[str, BurnNotice]:
        """Of the burns that some channel heard of, by id: the notice that told it first."""
        t = BURN_NOTICES.c
        rows = select(BURN_NOTICES).where(t.burn_id.in_([burn.id for burn in burns])).order_by(t.seq.desc())
        return {row.burn_id: _notice(row) for row in self._database.rows(rows)}


def _told(connection: Connection, notice: BurnNotice) -> list[Row[Any]]:
    """What the channel heard of this burn, or of one of its severity that overlapped it and is none any more."""
    t, burn = BURN_NOTICES.c, notice.burn
    moved = and_(t.known_until >= burn.start, ~exists().where(SLA_BURNS.c.burn_id == t.burn_id))
    if burn.end is not None:
        moved = and_(moved, t.start_at < burn.end)
    rows = select(BURN_NOTICES).where(t.sla == burn.sla, t.severity == burn.severity, t.channel == notice.channel)
    return list(connection.execute(rows.where(or_(t.burn_id == burn.id, moved)).order_by(t.seq)))


def _row(notice: BurnNotice, thread: str) -> dict[str, Any]:
    burn = notice.burn
    return {
        "burn_id": burn.id,
        "kind": notice.kind,
        "channel": notice.channel,
        "sla": burn.sla,
        "severity": burn.severity,
        "start_at": burn.start,
        "known_until": burn.end or burn.start,
        "thread": thread,
        "notice": _NOTICE.dump_json(notice).decode(),
        "queued_at": datetime.now(UTC),
    }


def _notice(row: Row[Any]) -> BurnNotice:
    return replace(_NOTICE.validate_json(row.notice), thread=row.thread, known_until=row.known_until)


_OPEN = exists().where(
    SLA_BURNS.c.sla == BURN_NOTICES.c.sla,
    SLA_BURNS.c.severity == BURN_NOTICES.c.severity,
    SLA_BURNS.c.end_at.is_(None),
    SLA_BURNS.c.start_at <= BURN_NOTICES.c.known_until,
)
"""The reported burn goes on, or what late facts have made of it."""
_WAITING = Waiting(BURN_NOTICES, select(BURN_NOTICES), _notice, "began", "over", _OPEN)
