"""The rules under which steady states were measured: when they change, nothing measured before is carried over."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text, insert, select, update

from kafka_sla.ledger.database import Database
from kafka_sla.ledger.ingestions import Ingestions
from kafka_sla.ledger.schema import METADATA
from kafka_sla.model.entities import EVERYTHING

STEADY_RULES = Table(
    "steady_rules", METADATA, Column("cluster", Text, primary_key=True), Column("digest", Text, nullable=False)
)


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
