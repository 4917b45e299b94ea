"""Real brokers and a real Spark for the tests that ask for one, each started once per test session."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# `demo` is not installed. Appended, never inserted: what is installed (the built wheel under `make test`) must win.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from demo.broker import Cluster, archive_classes
from tests.shares import Shares, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A shell's background job ignores Ctrl-C, and so would every process that is started here and interrupted by a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_order(items)


def pytest_collection_finish() -> None:
    """What was imported stays; looking for garbage among it takes a tenth of the processor's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)


def pytest_unconfigure() -> None:
    """Spark and Postgres log a farewell when the process ends, to streams that pytest has closed: no error."""
    logging.raiseExceptions = False


def _own_settings() -> dict[str, str]:
    """The configuration, store and connections that this process is told of, but for the home that all tests share,
    and the zips that it imports from: its children would import from them first."""
    names = (name for name in os.environ if name.startswith(("KAFKA_SLA_", "AIRFLOW_CONN_")))
    zips = {path: "imported from" for path in sys.path if path.endswith(".zip")}
    return zips | {name: os.environ[name] for name in names if name != "KAFKA_SLA_TEST_HOME"}


_AT_FIRST = _own_settings()


@pytest.fixture(scope="module", autouse=True)
def own_environment() -> Iterator[None]:
    """No module leaves a configuration, a store, a connection or a zip to the next one of its process."""
    yield
    assert _own_settings() == _AT_FIRST


@pytest.fixture(scope="session")
def kafka_classes() -> None:
    """Kafka's jars, and the archive that makes nodes start fast."""
    archive_classes()


@pytest.fixture(scope="session")
def kafka(kafka_classes: None) -> Iterator[Cluster]:
    """One node, no security."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka3(kafka_classes: None) -> Iterator[Cluster]:
    """Three nodes, for tests about coordinators, leaders and failures; offsets are spread over three partitions."""
    with Cluster(3, properties={"offsets.topic.num.partitions": "3"}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_sasl(kafka_classes: None) -> Iterator[Cluster]:
    """One node behind TLS, SASL and access lists: `client("admin")` may do all, `client("reader")` nothing yet."""
    with Cluster(secure=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark with the settings that matter to results; the process has one, whoever asks first."""
    from pyspark.sql import SparkSession

    from kafka_sla.spark.class_archive import archive_options

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take whatever python3 is on the path
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config(
            "spark.driver.extraJavaOptions",
            f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m {archive_options()}",
        )
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )
    yield session
    session.stop()
