from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from kafka_sla.spark.package_zip import application, code_zip


def test_the_same_code_gives_the_same_zip(tmp_path: Path) -> None:
    one, two = code_zip(tmp_path / "one"), code_zip(tmp_path / "two")

    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()
    assert [p.name for p in (tmp_path / "one").iterdir()] == [one.name]


def test_the_zip_holds_all_that_spark_imports_and_no_bytecode(tmp_path: Path) -> None:
    names = set(zipfile.ZipFile(code_zip(tmp_path)).namelist())

    assert {
        "kafka_sla/model/entities.py",
        "kafka_sla/spark_jobs/measure.py",
        "kafka_sla/expectations/consumer_latency.json",
    } <= names
    assert not [name for name in names if "__pycache__" in name]


def test_a_python_that_has_only_the_zip_can_import_the_job(tmp_path: Path) -> None:
    found_in = "from kafka_sla.spark_jobs import measure; print(measure.__file__)"
    code = f"import sys; sys.path[:0] = [{str(code_zip(tmp_path))!r}]; {found_in}"

    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    )

    assert found.stdout.startswith(str(tmp_path))


def test_the_application_is_the_measuring_job() -> None:
    assert application().read_text().startswith('"""The Spark application of one load')
