"""Where tests run the command line: in a folder that tells it nothing but what a test writes there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def enter(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """The current folder is this one, and the environment names no configuration, no store and no connection."""
    named = [name for name in os.environ if name.startswith("AIRFLOW_CONN_")]
    for variable in ("KAFKA_SLA_CONFIG", "KAFKA_SLA_STORE", *named):
        patch.delenv(variable, raising=False)
    patch.chdir(folder)
