"""Where the tests of the command line work."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is empty, and the environment names neither configuration nor store."""
    for variable in ("KAFKA_SLA_CONFIG", "KAFKA_SLA_STORE", "AIRFLOW_CONN_KAFKA_SLA_STORE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
