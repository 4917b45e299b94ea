"""The archive of Java classes with which a Spark driver on this machine starts in half the processor time.

`python -m kafka_sla.spark.class_archive` makes it, once per Java and per installed Spark.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from kafka_sla.cache import cache_folder, cached, forget_unused
from kafka_sla.errors import SparkFailed
from kafka_sla.spark.needs import java, need_all
from kafka_sla.spark.package_zip import package_folder

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def archive_options() -> str:
    """JVM options of a driver on this machine; none where the archive has not been made."""
    found = java()
    archive = cached(_name(found)) if found else None
    return f'"-XX:SharedArchiveFile={archive}" {_QUIET}' if archive else ""


def make_archive() -> None:
    """Run a small application that uses what a measuring one uses, and keep the classes that it loaded.

    SparkFailed where Spark does not run here.
    """
    name = _name(need_all())
    if cached(name):
        return
    archive = cache_folder() / name
    part = archive.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="kafka_sla-archive-") as folder:
        options = f'{_SMALL} "-XX:ArchiveClassesAtExit={part}" {_QUIET}'
        submit, program = package_folder("pyspark") / "bin" / "spark-submit", _training()
        conf = ["--conf", f"spark.driver.extraJavaOptions={options}", "--conf", "spark.ui.enabled=false"]
        command = [str(submit), "--master", "local[1]", *conf, str(program), folder]
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        ended = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    if ended.returncode or not part.exists():
        raise SparkFailed(f"Spark does not run here, so that no class archive was made: {ended.stderr[-2_000:]}")
    part.replace(archive)
    forget_unused("spark")


def _name(found: Path) -> str:
    """The archive's file name, another one for each Java and each installed Spark."""
    real = found.resolve()
    jars = package_folder("pyspark") / "jars"  # Java takes no archive of jars that lay elsewhere, or were written anew
    times = " ".join(str(int(one.stat().st_mtime)) for one in (real, jars))  # images keep whole seconds
    key = f"{real} {version('pyspark')} {jars} {times}"
    return f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def _training() -> Path:
    return package_folder("kafka_sla.spark_jobs") / "class_training.py"


if __name__ == "__main__":
    make_archive()
