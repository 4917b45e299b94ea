"""A local Spark for the benchmarks that need one in their own process, with the settings of a large job."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from kafka_sla.spark.package_zip import package_folder

_CONF = {
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@contextmanager
def spark() -> Iterator[SparkSession]:
    """Stopped at the end. Its workers import this project from where this process does."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folders = {str(package_folder(name).parent) for name in ("kafka_sla", "spark_jobs", "benchmarks")}
    os.environ["PYTHONPATH"] = os.pathsep.join([*sorted(folders), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master("local[*]").appName("kafka_sla benchmarks")
    for key, value in _CONF.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
