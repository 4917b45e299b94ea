"""An Airflow of its own for the tests that need one; import this before anything of airflow is imported."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if "KAFKA_SLA_TEST_HOME" not in os.environ:  # else it is that of the process which started this one
    os.environ["KAFKA_SLA_TEST_HOME"] = tempfile.mkdtemp(prefix="kafka_sla-airflow-")
    atexit.register(shutil.rmtree, os.environ["KAFKA_SLA_TEST_HOME"], ignore_errors=True)
HOME = Path(os.environ["KAFKA_SLA_TEST_HOME"])

os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
    AIRFLOW__CORE__PLUGINS_FOLDER=str(HOME / "plugins"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL="0",  # a DAG with another configuration is another one at once
    AIRFLOW__CORE__UNIT_TEST_MODE="True",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
    AIRFLOW__API__BASE_URL="http://airflow.example:8080",
    AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(HOME / "logs"),
)
