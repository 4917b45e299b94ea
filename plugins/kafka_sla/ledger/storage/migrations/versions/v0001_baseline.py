"""The tables of kafka-sla 1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite numbers rows of INTEGER PRIMARY KEY columns only."""


def upgrade() -> None:
    """Create all tables and indexes."""
    op.create_table(
        "alert_reports",
        sa.Column("seq", _SEQ, autoincrement=True, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("thread", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("alert_id", sa.String(length=64), nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("known_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("incident", sa.String(length=64), nullable=False),
        sa.Column("open_batch", sa.BigInteger(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("inform_batch", sa.BigInteger(), nullable=True),
        sa.Column("inform_to", sa.Text(), nullable=True),
        sa.Column("resolve_batch", sa.BigInteger(), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.CheckConstraint("kind IN ('miss', 'burn')", name="alert_reports_kind"),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("channel", "thread"),
    )
    op.create_index("alert_reports_by_alert", "alert_reports", ["alert_id"], unique=False)
    op.create_index("alert_reports_by_incident", "alert_reports", ["incident"], unique=False)
    op.create_index("alert_reports_by_sla", "alert_reports", ["sla", "known_until"], unique=False)
    op.create_table(
        "configurations",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "exclusions",
        sa.Column("exclusion_id", sa.Text(), nullable=False),
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("undoes", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("exclusion_id"),
        sa.UniqueConstraint("undoes", name="exclusions_undone_once"),
    )
    op.create_index("exclusions_by_sla", "exclusions", ["sla", "start_at"], unique=False)
    op.create_table(
        "fact_loads",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("from_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("to_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("landed", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "seq"),
    )
    op.create_table(
        "failed_intervals",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("interval_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("step", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "interval_start", "interval_end"),
    )
    op.create_table(
        "judged_until",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("as_of", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sla"),
    )
    op.create_table(
        "late_runs",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reported_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "interval_end"),
    )
    op.create_table(
        "load_sums",
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("width_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("load_id", sa.String(length=64), nullable=False),
        sa.Column("sums", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("table_name", "width_ms", "start_at", "load_id"),
    )
    op.create_table(
        "miss_notes",
        sa.Column("seq", _SEQ, autoincrement=True, nullable=False),
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("miss_id", sa.String(length=64), nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("known_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(op.f("ix_miss_notes_sla"), "miss_notes", ["sla"], unique=False)
    op.create_table(
        "observed_time",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "start_at"),
    )
    op.create_table(
        "publications",
        sa.Column("seq", _SEQ, autoincrement=True, nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("interval_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("load_id", sa.String(length=64), nullable=False),
        sa.Column("facts_seq", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("load_id", "cluster"),
        sqlite_autoincrement=True,
    )
    op.create_index("publications_by_time", "publications", ["cluster", "interval_start", "interval_end"], unique=False)
    op.create_table(
        "quarantine",
        sa.Column("load_id", sa.Text(), nullable=False),
        sa.Column("interval_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("expectation_id", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("row", sa.Text(), nullable=False),
        sa.Column("id", _SEQ, autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("quarantine_by_interval", "quarantine", ["interval_start", "interval_end"], unique=False)
    op.create_index("quarantine_by_load", "quarantine", ["load_id"], unique=False)
    op.create_table(
        "retired_loads",
        sa.Column("load_id", sa.String(length=64), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("interval_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("load_id", "cluster"),
    )
    op.create_table(
        "sent_digests",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("period_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", "period_start", "recipient"),
    )
    op.create_table(
        "sla_burns",
        sa.Column("burn_id", sa.String(length=64), nullable=False),
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("severity", sa.String(length=16), nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("burn_rate", sa.Double(), nullable=False),
        sa.Column("burn", sa.Text(), nullable=False),
        sa.CheckConstraint("severity IN ('page', 'ticket')", name="sla_burns_severity"),
        sa.PrimaryKeyConstraint("burn_id"),
    )
    op.create_index("sla_burns_by_sla", "sla_burns", ["sla", "start_at"], unique=False)
    op.create_table(
        "sla_misses",
        sa.Column("miss_id", sa.Text(), nullable=False),
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("end_reason", sa.Text(), nullable=True),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("end_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("bad_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("bad_windows", sa.Integer(), nullable=False),
        sa.Column("is_certain", sa.Boolean(), nullable=False),
        sa.Column("max_latency_ms", sa.BigInteger(), nullable=False),
        sa.Column("min_time_to_expiry_ms", sa.BigInteger(), nullable=True),
        sa.Column("for_ms", sa.BigInteger(), nullable=False),
        sa.Column("worst_latency_ms", sa.Double(), nullable=False),
        sa.Column("worst_latency_low_ms", sa.Double(), nullable=True),
        sa.Column("worst_latency_high_ms", sa.Double(), nullable=True),
        sa.Column("worst_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("worst_group", sa.Text(), nullable=False),
        sa.Column("worst_topic", sa.Text(), nullable=False),
        sa.Column("worst_partition", sa.Integer(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("exclusion", sa.Text(), nullable=True),
        sa.CheckConstraint("(state = 'open') = (end_at IS NULL)", name="sla_misses_end"),
        sa.CheckConstraint("state IN ('open', 'recovered', 'excluded', 'removed')", name="sla_misses_state"),
        sa.PrimaryKeyConstraint("miss_id"),
    )
    op.create_index("sla_misses_by_sla", "sla_misses", ["sla", "start_at"], unique=False)
    op.create_table(
        "sla_rollup_details",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("width_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("histogram", sa.LargeBinary(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sla", "width_ms", "start_at"),
    )
    op.create_table(
        "sla_rollups",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("width_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("good_ms", sa.BigInteger(), nullable=False),
        sa.Column("bad_ms", sa.BigInteger(), nullable=False),
        sa.Column("excluded_ms", sa.BigInteger(), nullable=False),
        sa.Column("unknown_ms", sa.BigInteger(), nullable=False),
        sa.Column("records_due", sa.BigInteger(), nullable=False),
        sa.Column("records_late", sa.BigInteger(), nullable=False),
        sa.Column("records_late_low", sa.BigInteger(), nullable=False),
        sa.Column("records_late_high", sa.BigInteger(), nullable=False),
        sa.Column("records_in_unknown_time", sa.BigInteger(), nullable=False),
        sa.Column("worst_latency_ms", sa.Double(), nullable=True),
        sa.Column("worst_latency_low_ms", sa.Double(), nullable=True),
        sa.Column("worst_latency_high_ms", sa.Double(), nullable=True),
        sa.Column("max_latency_ms", sa.BigInteger(), nullable=True),
        sa.Column("all_consumed", sa.BigInteger(), nullable=True),
        sa.Column("all_produced", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("sla", "width_ms", "start_at"),
    )
    op.create_table(
        "sla_rules",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("since_seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "sla"),
    )
    op.create_table(
        "sla_window_days",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("day", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verdicts", sa.Text(), nullable=False),
        sa.Column("windows", sa.LargeBinary(), nullable=False),
        sa.Column("crc32", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sla", "day"),
    )
    op.create_table(
        "sla_windows",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("window_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("window_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("is_certain", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("max_latency_ms", sa.BigInteger(), nullable=False),
        sa.Column("min_time_to_expiry_ms", sa.BigInteger(), nullable=True),
        sa.Column("worst_latency_ms", sa.Double(), nullable=True),
        sa.Column("worst_latency_low_ms", sa.Double(), nullable=True),
        sa.Column("worst_latency_high_ms", sa.Double(), nullable=True),
        sa.Column("worst_group", sa.Text(), nullable=True),
        sa.Column("worst_topic", sa.Text(), nullable=True),
        sa.Column("worst_partition", sa.Integer(), nullable=True),
        sa.Column("steady_partitions", sa.Integer(), nullable=False),
        sa.Column("bootstrapping_partitions", sa.Integer(), nullable=False),
        sa.Column("unknown_partitions", sa.Integer(), nullable=False),
        sa.Column("records_due", sa.BigInteger(), nullable=False),
        sa.Column("records_late", sa.BigInteger(), nullable=False),
        sa.Column("judged_verdict", sa.Text(), nullable=True),
        sa.Column("judged_reason", sa.Text(), nullable=True),
        sa.Column("records_late_low", sa.BigInteger(), nullable=False),
        sa.Column("records_late_high", sa.BigInteger(), nullable=False),
        sa.Column("records_of_unknown_state", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("verdict IN ('good', 'bad', 'excluded', 'unknown')", name="sla_windows_verdict"),
        sa.PrimaryKeyConstraint("sla", "window_start"),
    )
    op.create_table(
        "steady_rules",
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("shared", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("cluster"),
    )
    op.create_table(
        "store_states",
        sa.Column("seq", _SEQ, autoincrement=True, nullable=False),
        sa.Column("store_id", sa.String(length=36), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("reached_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("state"),
    )
    op.create_table(
        "unjudged_intervals",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("interval_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sla", "interval_start", "interval_end"),
    )
    op.create_table(
        "unjudged_partitions",
        sa.Column("sla", sa.Text(), nullable=False),
        sa.Column("group", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sla", "group", "topic", "reason"),
    )
    op.create_table(
        "validation_results",
        sa.Column("load_id", sa.Text(), nullable=False),
        sa.Column("interval_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("interval_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("expectation_id", sa.Text(), nullable=False),
        sa.Column("expectation", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("observed", sa.Text(), nullable=True),
        sa.Column("unexpected_rows", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("load_id", "table_name", "expectation_id"),
    )
    op.create_index(
        "validation_results_broken",
        "validation_results",
        ["interval_start"],
        unique=False,
        postgresql_where=sa.text("NOT success"),
        sqlite_where=sa.text("NOT success"),
    )
    op.create_index(
        "validation_results_by_interval", "validation_results", ["interval_start", "interval_end"], unique=False
    )
