"""Fact files as Spark reads them, also those that another version wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_sla.files import write_rows
from kafka_sla.model.tables import LOG_OFFSETS
from kafka_sla.spark_jobs.events.frames import read
from tests.kafka_sla.loads import points

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_files_of_an_older_version_lack_only_what_came_since(spark: SparkSession, tmp_path: Path) -> None:
    now, before = str(tmp_path / "now.parquet"), str(tmp_path / "before.parquet")
    column = LOG_OFFSETS.names.index("log_start_offset")
    write_rows(now, points("10:01").set_column(column, "log_start_offset", pa.array([7], pa.int64())))
    write_rows(before, points("10:00").drop_columns(["log_start_offset"]))

    for files in ([before, now], [now, before]):
        rows = read(spark, LOG_OFFSETS, files).orderBy("at").collect()

        assert [row.log_end_offset for row in rows] == [600, 601]
        assert [row.log_start_offset for row in rows] == [None, 7]
