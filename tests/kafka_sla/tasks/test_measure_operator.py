from __future__ import annotations

import sys

import pytest

from kafka_sla.model.entities import Connection
from kafka_sla.tasks.measure_operator import client_environment

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
