"""The door to the SQL database: what is published, judged, validated and told. Knows no table file and no Kafka."""

from __future__ import annotations

from kafka_sla.database import Database
from kafka_sla.fact_loads import FactLoads
from kafka_sla.ledger_tables import METADATA
from kafka_sla.outbox import Outbox
from kafka_sla.publications import Publications
from kafka_sla.sla_ledger import SlaLedger
from kafka_sla.store import Store
from kafka_sla.validation_ledger import ValidationLedger


class Ledger(Publications, FactLoads, SlaLedger, ValidationLedger, Outbox):
    """All the small state of one store; the tables are made on first use."""

    def __init__(self, store: Store) -> None:
        self._database = Database(store, METADATA)
