"""Spark's settings for one job, the same whoever submits it. Knows the job's size, not where Spark runs."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_sla.spark.class_archive import archive_options
from kafka_sla.spark.job_spec import read_job

ALWAYS = {
    "spark.log.level": "WARN",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Spark's adaptive execution splits what is too large for so few partitions."""
INTERPRETED = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""Some ten thousand rows are done before Java code for them is compiled, let alone optimised."""
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
SMALL_ROWS = 200_000
HERE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Of a driver that nobody on another machine must reach."""


def conf_options(conf: Mapping[str, str]) -> list[str]:
    """The settings as spark-submit takes them."""
    return [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]


def spark_conf(job_path: str, *, local_driver: bool) -> dict[str, str]:
    """Settings that fit the job. `local_driver`: the driver starts on this machine, whose class archive it may use."""
    small = read_job(job_path).input_rows < SMALL_ROWS
    options = " ".join(filter(None, [_SMALL_JVM if small else "", archive_options() if local_driver else ""]))
    return ALWAYS | ({"spark.driver.extraJavaOptions": options} if options else {}) | (INTERPRETED if small else {})
