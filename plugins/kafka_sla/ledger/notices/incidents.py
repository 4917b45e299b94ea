"""Notices of misses that share a cause, as one message. Knows no mail, and not what makes a cause a shared one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import exists, select

from kafka_sla.ledger.notices.notice_queue import Batch
from kafka_sla.ledger.notices.outbox import MAIL, Notice, notice_of, stored_notices
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import NOTICES
from kafka_sla.model.entities import Miss

IncidentNotice = Batch[Notice]
"""The notices of one run and channel that belong to one incident."""


class Incidents:
    """The incidents of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, misses: Sequence[Miss]) -> dict[str, str]:
        """The incident under which each miss was mailed, by id; those that were not are not there."""
        t = NOTICES.c
        mailed = t.miss_id.in_([miss.id for miss in misses]), t.incident.is_not(None), t.channel == MAIL
        return {row.miss_id: row.incident for row in self._database.rows(select(t.miss_id, t.incident).where(*mailed))}

    def reported_with(self, miss: Miss) -> list[Miss]:
        """Other misses, as they were when they were mailed, of the incident under which this one was."""
        t, own = NOTICES.c, NOTICES.alias("own")
        same = exists().where(own.c.miss_id == miss.id, own.c.channel == MAIL, own.c.incident == t.incident)
        rows = stored_notices().where(same, t.channel == MAIL, t.kind == "opened", t.miss_id != miss.id)
        return [notice_of(row).miss for row in self._database.rows(rows.order_by(t.sla, t.seq))]
