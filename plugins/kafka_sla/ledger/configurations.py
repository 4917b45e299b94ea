"""What runs were measured and judged by: configurations, each kept once, and the rules of steady states, of which a
change leaves nothing to be carried over: of an SLA what it covers, of a cluster everything. Reads no file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from pydantic import TypeAdapter
from sqlalchemy import Column, Connection, String, Table, Text, delete, func, insert, select, update

from kafka_sla.config.settings import Settings
from kafka_sla.errors import StoreError
from kafka_sla.ledger.ingestions import Ingestions
from kafka_sla.ledger.storage.database import Database, UtcTime
from kafka_sla.ledger.storage.schema import METADATA, SLA_RULES
from kafka_sla.model.entities import EVERYTHING, Interval

CONFIGURATIONS = Table(
    "configurations",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("settings", Text, nullable=False),
    Column("first_used_at", UtcTime, nullable=False),
    Column("used_at", UtcTime),
)

STEADY_RULES = Table(
    "steady_rules",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("shared", Text),
)
_NO_TIME = Interval(EVERYTHING.end - timedelta(days=1), EVERYTHING.end)
"""A landing of facts of this time changes nothing that anybody measured."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a cluster is measured by, as digests."""

    digest: str
    """Of all of it."""
    shared: str
    """Of what concerns every group-partition."""
    slas: Mapping[str, str]
    """Of each SLA, what concerns those that it covers."""


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
    """The rules of the ledger."""

    def __init__(self, database: Database, ingestions: Ingestions) -> None:
        self._database = database
        self._ingestions = ingestions

    def adopt(self, cluster: str, rules: Rules) -> bool:
        """Measure by these rules from now on; False where they were in force already. Others that concern all are like
        facts that landed for all time: rows measured earlier do not stand for what is before them any more. An SLA that
        is new, or whose rules are, gets a number: loads that saw no facts of it or later do not know it
        (`unknown_to`)."""
        with self._database.reading() as connection:
            known, since = _known(connection, cluster)
        if known == rules:
            return False
        # Before the rules are kept: killed in between, the next run records it once more, and that is harmless.
        if known is None:
            new, seq = frozenset(rules.slas), 0
        elif known.shared != rules.shared:
            new, seq = frozenset(rules.slas), self._ingestions.record(cluster, EVERYTHING)
        else:
            new = frozenset(name for name, digest in rules.slas.items() if known.slas.get(name) != digest)
            seq = self._ingestions.record(cluster, _NO_TIME) if new else 0
        self._keep(cluster, rules, {name: seq if name in new else since[name] for name in rules.slas})
        return True

    def unknown_to(self, cluster: str, facts_seq: int) -> frozenset[str]:
        """SLAs that a load does not know, or not by the rules of now, which had seen facts up to this landing."""
        with self._database.reading() as connection:
            _, since = _known(connection, cluster)
        return frozenset(name for name, seq in since.items() if seq > facts_seq)

    def _keep(self, cluster: str, rules: Rules, since: Mapping[str, int]) -> None:
        digests = {"digest": rules.digest, "shared": rules.shared}
        rows = [
            {"cluster": cluster, "sla": name, "digest": digest, "since_seq": since[name]}
            for name, digest in rules.slas.items()
        ]
        with self._database.writing("steady_rules") as connection:
            mine = STEADY_RULES.c.cluster == cluster
            if not connection.execute(update(STEADY_RULES).where(mine).values(digests)).rowcount:
                connection.execute(insert(STEADY_RULES).values(cluster=cluster, **digests))
            connection.execute(delete(SLA_RULES).where(SLA_RULES.c.cluster == cluster))
            if rows:
                connection.execute(insert(SLA_RULES), rows)


def _known(connection: Connection, cluster: str) -> tuple[Rules | None, dict[str, int]]:
    """The rules adopted last, and the number of each SLA."""
    one = connection.execute(select(STEADY_RULES).where(STEADY_RULES.c.cluster == cluster)).one_or_none()
    rows = connection.execute(select(SLA_RULES).where(SLA_RULES.c.cluster == cluster)).all()
    slas = {row.sla: row.digest for row in rows}
    return Rules(one.digest, one.shared, slas) if one else None, {row.sla: row.since_seq for row in rows}


@cache
def _codec() -> TypeAdapter[Settings]:
    return TypeAdapter(Settings)
