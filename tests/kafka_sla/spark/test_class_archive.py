"""The archive of Java classes is used where it was made for this Java and this Spark, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_sla.errors import SparkFailed
from kafka_sla.spark.class_archive import archive_options, make_archive
from kafka_sla.spark.package_zip import package_folder


def test_a_driver_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    make_archive()
    submit, loaded = package_folder("pyspark") / "bin" / "spark-submit", tmp_path / "loaded.txt"
    options = f'{archive_options()} "-Xlog:class+load:file={loaded}"'
    program = tmp_path / "nothing.py"
    program.write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n")

    subprocess.run(
        [str(submit), "--master", "local[1]", "--conf", f"spark.driver.extraJavaOptions={options}", str(program)],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        check=True,
    )

    (context,) = (line for line in loaded.read_text().splitlines() if " org.apache.spark.SparkContext source:" in line)
    assert "shared objects file (top)" in context


def test_without_an_archive_a_driver_gets_no_option_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert archive_options() == ""


def test_without_java_the_archive_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    with pytest.raises(SparkFailed, match="Spark needs Java 17"):
        make_archive()
