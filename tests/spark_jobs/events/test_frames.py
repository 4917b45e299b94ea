"""Fact files as Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from kafka_sla.errors import DamagedFile
from kafka_sla.files import write_rows
from kafka_sla.model.entities import Cluster, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.parquet_files import verify
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs.events.frames import read, selected
from kafka_sla.text.name_patterns import parse_patterns
from tests.kafka_sla.loads import points
from tests.spark_jobs.conftest import at, commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = (
    "billing.alerts-authorised-v2",
    "billing.alerts-authorised-v2\n",
    "billing-alerts",
    "Billing",
    "größe\u2028a",
    "__x",
)


@pytest.mark.parametrize(
    "patterns",
    [
        ["*"],
        ["billing.alerts-*"],
        ["gr??e*"],
        ["*-alerts"],
        ["billing*v2"],
        ["billing-a*alerts"],
        ["billing-alerts*alerts"],
        ["billing*al*"],
        ["__*"],
        ["größe*a"],
        ["*", "!*lerts-authorised-v2"],
        ["!billing*"],
        ["billing-alerts", "__x"],
        [r"/(?P<team>billing)[.-].*/"],
        ["*ill*ale*", "!*v?*"],
        ["/(?i:BILLING).*/", "!billing-*"],
    ],
)
def test_spark_selects_the_names_that_python_selects(spark: SparkSession, patterns: list[str]) -> None:
    cluster = Cluster("prod", None, groups=parse_patterns(patterns))
    job = Job("load", Interval(at(0), at(60)), 60_000, (Replay(cluster, None),), (), {}, {}, "", {}, 0, 0)
    names = COMMITTED_OFFSETS.names
    rows = [tuple(commit(1, 1, group=group).get(name) for name in names) for group in GROUPS]

    found = selected(spark.createDataFrame(rows, COMMITTED_OFFSETS.ddl), job).collect()

    assert [row.group for row in found] == [group for group in GROUPS if cluster.groups.matches(group)]


def test_no_name_keeps_spark_busy(spark: SparkSession) -> None:
    """Java's regexes would need years for these two: they backtrack."""
    cluster = Cluster("prod", None, groups=parse_patterns(["/([a-z]+-?)+-service/", "*a*a*a*a*a*a*a*a*a*b"]))
    job = Job("load", Interval(at(0), at(60)), 60_000, (Replay(cluster, None),), (), {}, {}, "", {}, 0, 0)
    rows = [
        tuple(commit(1, 1, group=group).get(name) for name in COMMITTED_OFFSETS.names) for group in ("a" * 255 + "!",)
    ]

    assert selected(spark.createDataFrame(rows, COMMITTED_OFFSETS.ddl), job).collect() == []


def test_spark_writes_checksums_and_notices_a_flipped_bit(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(str(tmp_path / "facts.parquet"), points(*(f"10:{minute:02}" for minute in range(60))))
    read(spark, LOG_OFFSETS, [str(tmp_path / "facts.parquet")]).coalesce(1).write.parquet(str(tmp_path / "copy"))
    (path,) = (tmp_path / "copy").glob("*.parquet")
    (path.parent / f".{path.name}.crc").unlink()  # Hadoop's own, which only local disks have
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 1
    path.write_bytes(content)

    with pytest.raises(DamagedFile, match="CRC checksum"):
        verify([str(path)])
    with pytest.raises(Py4JJavaError, match="CRC checksum verification failed"):
        read(spark, LOG_OFFSETS, [str(path)]).collect()


def test_a_column_that_a_file_lacks_is_null(spark: SparkSession, tmp_path: Path) -> None:
    now, before = str(tmp_path / "now.parquet"), str(tmp_path / "before.parquet")
    column = LOG_OFFSETS.names.index("log_start_offset")
    write_rows(now, points("10:01").set_column(column, "log_start_offset", pa.array([7], pa.int64())))
    write_rows(before, points("10:00").drop_columns(["log_start_offset"]))

    for files in ([before, now], [now, before]):
        rows = read(spark, LOG_OFFSETS, files).orderBy("at").collect()

        assert [row.log_end_offset for row in rows] == [600, 601]
        assert [row.log_start_offset for row in rows] == [None, 7]
