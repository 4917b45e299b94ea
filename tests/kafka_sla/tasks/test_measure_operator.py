from __future__ import annotations

import json
import pwd
import sys
from pathlib import Path

import pytest

from kafka_sla.errors import SettingsError, SparkFailed
from kafka_sla.model.entities import Connection
from kafka_sla.tasks.measure_operator import client_environment, measure

JOB = "/warehouse/staging/4f1c/job.json"


@pytest.mark.parametrize(
    "spark",
    [
        Connection("spark_default", conn_type="spark", host="local[2]"),
        Connection("spark_default", conn_type="spark", host="spark://master:7077"),
        Connection("spark_default", conn_type="spark", host="master", port=7077),
    ],
)
def test_a_driver_that_runs_here_gets_this_python(spark: Connection) -> None:
    environment = client_environment(spark, JOB)

    assert environment is not None
    assert environment["PYSPARK_DRIVER_PYTHON"] == sys.executable


@pytest.mark.parametrize(
    "spark",
    [
        Connection("spark_default", conn_type="yarn"),
        Connection("spark_default", conn_type="spark", host="k8s://https://cluster"),
        Connection("spark_default", conn_type="spark", host="k8s://https://cluster", port=6443),
        Connection("spark_default", conn_type="spark", host="spark://master:7077", extra={"deploy-mode": "cluster"}),
    ],
)
def test_a_driver_that_runs_elsewhere_gets_nothing_of_this_machine(spark: Connection) -> None:
    assert client_environment(spark, JOB) is None


def test_only_a_local_driver_listens_on_loopback() -> None:
    local = client_environment(Connection("s", conn_type="spark", host="local[*]"), JOB)
    remote = client_environment(Connection("s", conn_type="spark", host="spark://master:7077"), JOB)

    assert local is not None and local["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert remote is not None and "SPARK_LOCAL_IP" not in remote


CLUSTER_MODE = {"deploy-mode": "cluster"}


@pytest.mark.parametrize(
    ("master", "extra", "said"),
    [
        ("spark://master:7077", CLUSTER_MODE, "Spark runs Python on YARN and Kubernetes only: leave it out"),
        ("local[2]", CLUSTER_MODE, "Spark runs Python on YARN and Kubernetes only: leave it out"),
        ("k8s://https://cluster", {}, "pip install apache-airflow-providers-cncf-kubernetes"),
    ],
)
def test_masters_that_cannot_run_it_are_refused(
    master: str, extra: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = {"conn_type": "spark", "host": master, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path))

    with pytest.raises(SettingsError, match=said):
        measure(JOB, "kafka_sla_store").execute({})


def test_a_user_without_a_name_is_told_before_spark_submit_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path))

    with pytest.raises(SparkFailed, match="whom this machine has no name for: add a line for it to /etc/passwd"):
        measure(JOB, "kafka_sla_store").execute({})
