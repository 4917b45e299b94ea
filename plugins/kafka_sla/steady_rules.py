"""The rules under which steady states were measured: when they change, nothing measured before is carried over."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text, insert, select, update

from kafka_sla.fact_loads import FactLoads
from kafka_sla.ledger_tables import METADATA
from kafka_sla.model import EVERYTHING

STEADY_RULES = Table(
    "steady_rules", METADATA, Column("cluster", Text, primary_key=True), Column("digest", Text, nullable=False)
)


class SteadyRules(FactLoads):
    """The rules of the ledger, one digest a cluster."""

    def adopt_rules(self, cluster: str, digest: str) -> None:
        """Measure by these rules from now on. Other rules than before are like facts that landed for all time: rows
        measured earlier do not stand for what is before them any more."""
        mine = STEADY_RULES.c.cluster == cluster
        with self._database.writing("steady_rules") as connection:
            known = connection.execute(select(STEADY_RULES.c.digest).where(mine)).scalar_one_or_none()
            if known == digest:
                return
            if known is None:
                connection.execute(insert(STEADY_RULES).values(cluster=cluster, digest=digest))
                return
            connection.execute(update(STEADY_RULES).where(mine).values(digest=digest))
        self.record_fact_load(cluster, EVERYTHING)
