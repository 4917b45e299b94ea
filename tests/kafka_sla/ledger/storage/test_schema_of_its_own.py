"""Where nobody may make tables in `public`, as new Postgres servers have it, the store's are in a schema of its own."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake

TABLES = text("SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")


@pytest.fixture
def database() -> str:
    return "postgres"


def test_the_tables_of_the_store_and_of_its_catalog_are_in_the_schema_that_its_address_names(store: Store) -> None:
    engine = create_engine(store.url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA sla_of_payments"))
        connection.execute(text("DROP SCHEMA public"))
    address = store.url.update_query_dict({"options": "-c search_path=sla_of_payments"})

    Lake(Store(store.warehouse, address.render_as_string(hide_password=False))).make_tables()

    with engine.connect() as connection:
        assert connection.scalars(TABLES).all() == ["sla_of_payments"]
