"""A real Airflow metadata database and the DAGs of this repository, as its dag processor sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow_home import ROOT

DAGS = ROOT / "dags"


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """Airflow's tables, in the home of these tests."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def parsed(airflow_database: None) -> Any:
    """The DAG folder with the configuration that lies in it, parsed once, whoever asks first."""
    from airflow.dag_processing.dagbag import DagBag

    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("KAFKA_SLA_CONFIG", raising=False)
        return DagBag(dag_folder=str(DAGS))


@pytest.fixture
def broken_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A configuration with a mistake in it."""
    path = tmp_path / "kafka_sla.yml"
    path.write_text("clusters: {eu: {}}\nslas: [{name: orders, cluster: us, max_latency: soon}]\n")
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(path))
    yield path
