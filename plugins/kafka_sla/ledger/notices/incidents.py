"""Notices of misses that share a cause, as one message. Knows no mail, and not what makes a cause a shared one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import exists, select

from kafka_sla.ledger.notices.notice_queue import Batch
from kafka_sla.ledger.notices.outbox import MAIL, Notice, Outbox, notice_of, stored_notices
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import NOTICES
from kafka_sla.model.entities import Miss

NameCauses = Callable[[Sequence[Notice]], Sequence[str]]
"""From notices of opened misses to a name for the cause of each: those with the same name are one message."""


IncidentNotice = Batch[Notice]
"""The notices of one run and channel that belong to one incident."""


class Incidents:
    """The incidents of the ledger."""

    def __init__(self, database: Database, outbox: Outbox) -> None:
        self._database, self._outbox = database, outbox

    def deliver(
        self,
        send: Callable[[IncidentNotice], None],
        name_causes: NameCauses,
        slas: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        *,
        but: Sequence[str] = (),
    ) -> int:
        """As `Outbox.deliver`, but with one message for all notices that share a cause; answers how many notices were
        sent. A recovery belongs to the incident under which its miss was reported."""
        return self._outbox.queue.deliver_together(send, name_causes, slas, channels, but=but)

    def repeat(self, send: Callable[[IncidentNotice], None], slas: Sequence[str], channels: Sequence[str]) -> int:
        """Tell these channels again what they were told that opened and is still open; answers how many notices."""
        return self._outbox.queue.repeat_together(send, slas, channels)

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
