"""Runs the Spark application of one job on this machine. Knows Spark's settings, not what is measured."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kafka_sla.errors import SparkFailed

_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "WARN",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_TOLD_LINES = 12


def run_spark(job_path: str, *, memory: str = "2g") -> None:
    """Measure a job with local Spark. SparkFailed tells the end of Spark's output and where all of it is."""
    _need_java()
    handle, log = tempfile.mkstemp(prefix="kafka_sla-spark-", suffix=".log")
    with os.fdopen(handle, "wb") as output:
        ended = subprocess.run(
            _command(job_path, memory), env=_environment(), stdout=output, stderr=output, check=False
        )
    if ended.returncode:
        raise SparkFailed(
            f"Spark ended with exit code {ended.returncode}; all it said is in {log}\n{_end_of(Path(log))}"
        )
    Path(log).unlink()


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and not shutil.which("java"):
        raise SparkFailed("Spark needs Java 17, and there is none on the path: install it, or set JAVA_HOME")


def _command(job_path: str, memory: str) -> list[str]:
    submit = _folder("pyspark") / "bin" / "spark-submit"
    conf = [part for key, value in _CONF.items() for part in ("--conf", f"{key}={value}")]
    application = _folder("spark_jobs") / "measure.py"
    return [str(submit), "--master", "local[*]", "--driver-memory", memory, *conf, str(application), "--job", job_path]


def _environment() -> dict[str, str]:
    """This Python for the driver and its workers, with the packages where this process found them."""
    packages = dict.fromkeys(str(_folder(name).parent) for name in ("kafka_sla", "spark_jobs", "expectations"))
    path = [*packages, *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {
        "PYTHONPATH": os.pathsep.join(path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return {**os.environ, **own}


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SparkFailed(f"the package {package} is not installed here: install kafka-sla with pip")
    return Path(next(iter(found.submodule_search_locations)))


def _end_of(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-_TOLD_LINES:])
