from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from demo.postgres import postgres


def test_both_databases_are_there_inside_the_block_and_keep_their_rows(tmp_path: Path) -> None:
    with postgres(tmp_path / "postgres") as urls:
        with create_engine(urls["kafka_sla"]).begin() as connection:
            connection.execute(text("CREATE TABLE kept AS SELECT 1 AS one"))
        with create_engine(urls["airflow"]).connect() as connection:
            assert "airflow" == connection.scalar(text("SELECT current_database()"))

    with pytest.raises(OperationalError):
        create_engine(urls["kafka_sla"]).connect()

    with postgres(tmp_path / "postgres") as urls, create_engine(urls["kafka_sla"]).connect() as connection:
        assert 1 == connection.scalar(text("SELECT one FROM kept"))
