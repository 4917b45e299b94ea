"""Which digests were mailed, so that each is mailed once however many tasks try. Knows no mail and no report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, insert, select

from kafka_sla.ledger.database import Database
from kafka_sla.ledger.schema import SENT_DIGESTS
from kafka_sla.model.entities import Digest, Interval


class SentDigests:
    """The digests of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def mail_once(self, digest: Digest, period: Interval, recipient: str, send: Callable[[], None]) -> bool:
        """Call `send` unless this digest of this period was mailed to the recipient; was it called? What fails is not
        recorded, and is sent by the next try."""
        key = _key(digest, period, recipient)
        with self._database.writing(f"digest {digest.name}") as connection:
            if connection.execute(_mine(key)).first():
                return False
            connection.execute(insert(SENT_DIGESTS).values(**key, sent_at=datetime.now(UTC)))
            send()
        return True

    def was_mailed(self, digest: Digest, period: Interval, recipient: str) -> bool:
        with self._database.reading() as connection:
            return connection.execute(_mine(_key(digest, period, recipient))).first() is not None


def _key(digest: Digest, period: Interval, recipient: str) -> dict[str, Any]:
    return {"digest": digest.name, "period_start": period.start, "recipient": recipient}


def _mine(key: dict[str, Any]) -> Select[Any]:
    return select(SENT_DIGESTS).where(*(SENT_DIGESTS.c[name] == value for name, value in key.items()))
