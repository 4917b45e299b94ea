"""The SQL table of partitions that SLAs do not judge at present, as of the newest judged window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Column, Table, Text, delete, func, insert, select

from kafka_sla.ledger.storage.database import Database, UtcTime
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.sla.unjudged_partitions import UnjudgedPartitions

UNJUDGED_PARTITIONS = Table(
    "unjudged_partitions",
    METADATA,
    Column("sla", Text, primary_key=True),
    Column("group", Text, primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("reason", Text, primary_key=True),
    Column("partitions", Text, nullable=False),
    Column("since", UtcTime, nullable=False),
)
JUDGED_UNTIL = Table(
    "judged_until", METADATA, Column("sla", Text, primary_key=True), Column("as_of", UtcTime, nullable=False)
)
"""End of the newest window that `unjudged_partitions` describes, so that a rerun of the past does not overwrite it."""


class UnjudgedPartitionsTable:
    """Reads and replaces the unjudged partitions of SLAs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace(self, slas: Sequence[str], as_of: datetime, parts: Sequence[UnjudgedPartitions]) -> None:
        """Store the unjudged partitions of these SLAs as of the end of a window. Newer entries stay."""
        for sla in sorted(slas):
            rows = [_row(part) for part in parts if part.sla == sla]
            with self._database.writing(f"unjudged {sla}") as connection:
                newest = select(func.max(JUDGED_UNTIL.c.as_of)).where(JUDGED_UNTIL.c.sla == sla)
                stored = connection.execute(newest).scalar_one()
                if stored is not None and stored > as_of:
                    continue
                connection.execute(delete(JUDGED_UNTIL).where(JUDGED_UNTIL.c.sla == sla))
                connection.execute(insert(JUDGED_UNTIL).values(sla=sla, as_of=as_of))
                connection.execute(delete(UNJUDGED_PARTITIONS).where(UNJUDGED_PARTITIONS.c.sla == sla))
                if rows:
                    connection.execute(insert(UNJUDGED_PARTITIONS), rows)

    def of(self, slas: Sequence[str]) -> dict[str, list[UnjudgedPartitions]]:
        """Unjudged partitions by SLA, those that have waited longest first; SLAs without any are missing."""
        t = UNJUDGED_PARTITIONS.c
        rows = self._database.rows(
            select(UNJUDGED_PARTITIONS).where(t.sla.in_(slas)).order_by(t.since, t.group, t.topic)
        )
        result: dict[str, list[UnjudgedPartitions]] = {}
        for row in rows:
            numbers = tuple(json.loads(row.partitions))
            part = UnjudgedPartitions(row.sla, row.group, row.topic, row.reason, numbers, row.since)
            result.setdefault(row.sla, []).append(part)
        return result


def _row(part: UnjudgedPartitions) -> dict[str, object]:
    return {
        "sla": part.sla,
        "group": part.group,
        "topic": part.topic,
        "reason": part.reason,
        "partitions": json.dumps(part.partitions),
        "since": part.since,
    }
