"""Runs revisions on the connection of the caller, inside its transaction. Alembic executes this file."""

from __future__ import annotations

from alembic import context

from kafka_sla.ledger.storage.schema_migrations import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
