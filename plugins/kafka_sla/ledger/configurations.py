"""What runs were measured and judged by: configurations, each kept once, and the rules of steady states, of which a
change leaves nothing to be carried over. Reads no file, and knows no run."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache

from pydantic import TypeAdapter
from sqlalchemy import Column, String, Table, Text, func, insert, select, update

from kafka_sla.config.settings import Settings
from kafka_sla.errors import StoreError
from kafka_sla.ledger.database import Database, UtcTime
from kafka_sla.ledger.ingestions import Ingestions
from kafka_sla.ledger.schema import METADATA
from kafka_sla.model.entities import EVERYTHING

CONFIGURATIONS = Table(
    "configurations",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("settings", Text, nullable=False),
    Column("first_used_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
)

STEADY_RULES = Table(
    "steady_rules", METADATA, Column("cluster", Text, primary_key=True), Column("digest", Text, nullable=False)
)


class Configurations:
    """The configurations of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def freeze(self, settings: Settings) -> str:
        """Keep the configuration; returns the digest that finds it again, the same for the same content."""
        text = _codec().dump_json(settings).decode()
        digest = hashlib.sha256(text.encode()).hexdigest()
        now, same = datetime.now(UTC), CONFIGURATIONS.c.digest == digest
        with self._database.writing("configurations") as connection:
            if not connection.execute(update(CONFIGURATIONS).where(same).values(used_at=now)).rowcount:
                row = {"digest": digest, "settings": text, "first_used_at": now, "used_at": now}
                connection.execute(insert(CONFIGURATIONS).values(row))
        return digest

    def newest(self) -> Settings | None:
        """The configuration of the run that began last; None before the first one."""
        used = func.coalesce(CONFIGURATIONS.c.used_at, CONFIGURATIONS.c.first_used_at)
        with self._database.reading() as connection:
            text = connection.execute(select(CONFIGURATIONS.c.settings).order_by(used.desc()).limit(1)).scalar()
        return _codec().validate_json(text) if text else None

    def frozen(self, digest: str) -> Settings:
        """The configuration of that digest."""
        with self._database.reading() as connection:
            text = connection.execute(
                select(CONFIGURATIONS.c.settings).where(CONFIGURATIONS.c.digest == digest)
            ).scalar_one_or_none()
        if text is None:
            raise StoreError(f"the store holds no configuration {digest[:12]}; clear the run from its first task on")
        return _codec().validate_json(text)


class RuleVersions:
    """The rules of the ledger, one digest a cluster."""

    def __init__(self, database: Database, ingestions: Ingestions) -> None:
        self._database = database
        self._ingestions = ingestions

    def adopt(self, cluster: str, digest: str) -> None:
        """Measure by these rules from now on. Other rules than before are like facts that landed for all time: rows
        measured earlier do not stand for what is before them any more."""
        known = self._rules(cluster)
        if known == digest:
            return
        if known is not None:
            # Before the rules are kept: killed in between, the next run records it once more, and that is harmless.
            self._ingestions.record(cluster, EVERYTHING)
        mine = STEADY_RULES.c.cluster == cluster
        with self._database.writing("steady_rules") as connection:
            if not connection.execute(update(STEADY_RULES).where(mine).values(digest=digest)).rowcount:
                connection.execute(insert(STEADY_RULES).values(cluster=cluster, digest=digest))

    def _rules(self, cluster: str) -> str | None:
        """The digest of the rules adopted last."""
        with self._database.reading() as connection:
            mine = select(STEADY_RULES.c.digest).where(STEADY_RULES.c.cluster == cluster)
            return connection.execute(mine).scalar_one_or_none()


@cache
def _codec() -> TypeAdapter[Settings]:
    return TypeAdapter(Settings)
