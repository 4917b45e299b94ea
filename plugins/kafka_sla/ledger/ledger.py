"""The door to the SQL database: what is published, judged, validated and told."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from operator import itemgetter
from typing import Any

from sqlalchemy import select

from kafka_sla.config.store import Store
from kafka_sla.ledger.alerts.alert_reports import AlertReports
from kafka_sla.ledger.alerts.sent_once import SentOnce
from kafka_sla.ledger.burns import Burns
from kafka_sla.ledger.configurations import Configurations, RuleVersions
from kafka_sla.ledger.exclusions import Exclusions
from kafka_sla.ledger.failures import Failures
from kafka_sla.ledger.ingestions import Ingestions
from kafka_sla.ledger.judged_windows import rows_of
from kafka_sla.ledger.load_sums import LoadSums
from kafka_sla.ledger.observed_time import ObservedTime
from kafka_sla.ledger.publications import Publications
from kafka_sla.ledger.queries import Queries
from kafka_sla.ledger.rollups import Rollups
from kafka_sla.ledger.storage.schema import DECLARED, SLA_WINDOWS
from kafka_sla.ledger.storage.store_identity import StoreDatabase
from kafka_sla.ledger.triage import Triage
from kafka_sla.ledger.unjudged_partitions import UnjudgedPartitionsTable
from kafka_sla.ledger.validation_results import ValidationResults
from kafka_sla.ledger.verdicts import Verdicts
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import Table


class Ledger:
    """All the small state of one store; the tables are made on first use."""

    def __init__(self, store: Store) -> None:
        self._database = database = StoreDatabase(store)
        self.publications = Publications(database)
        self.ingestions = Ingestions(database)
        self.rule_versions = RuleVersions(database, self.ingestions)
        self.observed_time = ObservedTime(database)
        self.verdicts = Verdicts(database)
        self.rollups = Rollups(database)
        self.unjudged_partitions = UnjudgedPartitionsTable(database)
        self.failures = Failures(database)
        self.load_sums = LoadSums(database)
        self.validations = ValidationResults(database)
        self.queries = Queries(database)
        self.alert_reports = AlertReports(database)
        self.sent_once = SentOnce(database)
        self.burns = Burns(database)
        self.triage = Triage(database)
        self.exclusions = Exclusions(database)
        self.configurations = Configurations(database)

    def at_one_moment(self) -> AbstractContextManager[object]:
        """All that this thread reads inside is of one moment, over one connection, and none of what it writes there."""
        return self._database.reading()

    def check_writable(self) -> None:
        """StoreError at once where only reading is possible."""
        self._database.check_writable()

    def open(self, writing: bool) -> bool:
        """Whether there is a store yet. StoreError unless database and warehouse belong together; `writing` marks both
        as one store where they are not yet: before the first file is written to the warehouse."""
        return self._database.open(writing=writing)

    def verify(self) -> None:
        """The same question asked anew, however long the ledger has been open."""
        self._database.verify()

    def has_begun(self) -> bool:
        """Whether there is a store at all. Writes nothing."""
        return self._database.has_begun()

    def check_place(self) -> None:
        """StoreError where the store was moved or copied, and its tables were not."""
        self._database.check_place()

    def check_integrity(self) -> None:
        """StoreError where the database finds its own pages damaged. Postgres tells of them when it reads them."""
        self._database.check_integrity()

    def advance(self) -> None:
        """Note that the warehouse holds files which an older copy of the database does not know."""
        self._database.advance()

    def declared_rows(
        self, table: Table, interval: Interval, clusters: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Rows of a ledger table whose time is in the interval, by key; of all clusters where the table names none."""
        ours = DECLARED[table.name]
        rows = select(*(ours.c[name] for name in table.names)).order_by(*(ours.c[name] for name in table.key))
        rows = rows.where(ours.c[table.time] >= interval.start, ours.c[table.time] < interval.end)
        if clusters is not None and "cluster" in table.names:
            rows = rows.where(ours.c.cluster.in_(clusters))
        with self._database.reading() as connection:
            if ours is not SLA_WINDOWS:
                return [dict(row._mapping) for row in connection.execute(rows)]
            windows = rows_of(connection, rows, None, interval)
        return sorted((dict(row._mapping) for row in windows), key=itemgetter(*table.key))
