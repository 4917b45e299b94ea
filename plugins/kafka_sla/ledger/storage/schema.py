"""The SQL tables of the ledger: the declared ones of `tables.py` and the small state behind them. Runs no statement."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from kafka_sla.ledger.storage.database import UtcTime
from kafka_sla.model import tables

METADATA = MetaData()

_SEQ = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers only INTEGER PRIMARY KEY columns by itself."""
_TYPES: dict[str, Any] = {
    "STRING": Text(),
    "INT": Integer(),
    "BIGINT": BigInteger(),
    "DOUBLE": Double(),
    "BOOLEAN": Boolean(),
    "TIMESTAMP": UtcTime(),
}


def _declared(table: tables.Table, *extra: Any, keyed: bool = True) -> Table:
    columns = [
        Column(c.name, _type(c), nullable=c.nullable, primary_key=keyed and c.name in table.key) for c in table.columns
    ]
    return Table(table.name, METADATA, *columns, *extra)


def _type(column: tables.Column) -> TypeEngine[Any]:
    kind: TypeEngine[Any] = _TYPES[column.type]
    return kind


SLA_WINDOWS = _declared(
    tables.SLA_WINDOWS, CheckConstraint("verdict IN ('good', 'bad', 'excluded', 'unknown')", name="sla_windows_verdict")
)
SLA_MISSES = _declared(
    tables.SLA_MISSES,
    CheckConstraint("state IN ('open', 'recovered', 'excluded', 'removed')", name="sla_misses_state"),
    CheckConstraint("(state = 'open') = (end_at IS NULL)", name="sla_misses_end"),
    Index("sla_misses_by_sla", "sla", "start_at"),
)
VALIDATION_RESULTS = _declared(
    tables.VALIDATION_RESULTS, Index("validation_results_by_interval", "interval_start", "interval_end")
)
QUARANTINE = _declared(
    tables.QUARANTINE,
    Column("id", _SEQ, primary_key=True, autoincrement=True),
    Index("quarantine_by_interval", "interval_start", "interval_end"),
    Index("quarantine_by_load", "load_id"),
    keyed=False,  # a row as JSON is too long for a key
)
EXCLUSIONS = _declared(
    tables.EXCLUSIONS,
    UniqueConstraint("undoes", name="exclusions_undone_once"),
    Index("exclusions_by_sla", "sla", "start_at"),
)
DECLARED = {t.name: t for t in (SLA_WINDOWS, SLA_MISSES, VALIDATION_RESULTS, QUARANTINE, EXCLUSIONS)}

PUBLICATIONS = Table(
    "publications",
    METADATA,
    Column("seq", _SEQ, primary_key=True, autoincrement=True),
    Column("cluster", Text, nullable=False),
    Column("interval_start", UtcTime, nullable=False),
    Column("interval_end", UtcTime, nullable=False),
    Column("load_id", String(64), nullable=False),
    Column("facts_seq", BigInteger, nullable=False),
    Column("published_at", UtcTime, nullable=False),
    UniqueConstraint("load_id", "cluster"),
    Index("publications_by_time", "cluster", "interval_start", "interval_end"),
    sqlite_autoincrement=True,  # a number is never used twice, also when the newest row was deleted
)
STORE_STATES = Table(
    "store_states",
    METADATA,
    Column("seq", _SEQ, primary_key=True, autoincrement=True),
    Column("store_id", String(36), nullable=False),
    Column("state", String(32), nullable=False, unique=True),
    Column("reached_at", UtcTime, nullable=False),
)
RETIRED_LOADS = Table(
    "retired_loads",
    METADATA,
    Column("load_id", String(64), primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("retired_at", UtcTime, nullable=False),
    Column("interval_start", UtcTime),
    Column("interval_end", UtcTime),
)
SLA_RULES = Table(
    "sla_rules",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("sla", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("since_seq", BigInteger, nullable=False),
)
FACT_LOADS = Table(
    "fact_loads",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("from_at", UtcTime, nullable=False),
    Column("to_at", UtcTime, nullable=False),
    Column("landed", Boolean, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
)
ALERT_REPORTS = Table(
    "alert_reports",
    METADATA,
    Column("seq", _SEQ, primary_key=True, autoincrement=True),
    Column("channel", Text, nullable=False),
    Column("thread", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("sla", Text, nullable=False),
    Column("alert_id", String(64), nullable=False),
    Column("start_at", UtcTime, nullable=False),
    Column("known_until", UtcTime, nullable=False),
    Column("cause", Text, nullable=False),
    Column("incident", String(64), nullable=False),
    Column("open_batch", BigInteger, nullable=False),
    Column("opened_at", UtcTime),
    Column("inform_batch", BigInteger),
    Column("inform_to", Text),
    Column("resolve_batch", BigInteger),
    Column("resolved_at", UtcTime),
    Column("claimed_at", UtcTime),
    Column("content", Text, nullable=False),
    UniqueConstraint("channel", "thread"),
    CheckConstraint("kind IN ('miss', 'burn')", name="alert_reports_kind"),
    Index("alert_reports_by_sla", "sla", "known_until"),
    Index("alert_reports_by_alert", "alert_id"),
    Index("alert_reports_by_incident", "incident"),
)
SLA_BURNS = Table(
    "sla_burns",
    METADATA,
    Column("burn_id", String(64), primary_key=True),
    Column("sla", Text, nullable=False),
    Column("severity", String(16), nullable=False),
    Column("start_at", UtcTime, nullable=False),
    Column("end_at", UtcTime),
    Column("burn_rate", Double, nullable=False),
    Column("burn", Text, nullable=False),
    CheckConstraint("severity IN ('page', 'ticket')", name="sla_burns_severity"),
    Index("sla_burns_by_sla", "sla", "start_at"),
)
SENT_DIGESTS = Table(
    "sent_digests",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("period_start", UtcTime, primary_key=True),
    Column("recipient", Text, primary_key=True),
    Column("sent_at", UtcTime, nullable=False, default=lambda: datetime.now(UTC)),
)
LATE_RUNS = Table(
    "late_runs",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("interval_end", UtcTime, primary_key=True),
    Column("reported_at", UtcTime, nullable=False, default=lambda: datetime.now(UTC)),
)
