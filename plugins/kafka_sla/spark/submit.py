"""Runs the Spark application of one job on this machine. Knows Spark's settings, not what is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from kafka_sla import object_stores
from kafka_sla.errors import SparkFailed
from kafka_sla.spark.conf import HERE, conf_options, spark_conf
from kafka_sla.spark.failures import cause_in
from kafka_sla.spark.needs import need_all
from kafka_sla.spark.package_zip import PACKAGES, application, package_folder
from kafka_sla.spark.processes import end

REMOTE = "SPARK_REMOTE"
"""Spark's own environment variable: the `sc://host:port` of a standing Spark."""


def run_spark(job_path: str, *, memory: str = "2g") -> None:
    """Measure a job with local Spark. SparkFailed names the cause, and where all that Spark printed is."""
    need_all()
    with tempfile.TemporaryFile(prefix="kafka_sla-spark-") as output:
        command = [*_ending_with_us(), *_command(job_path, memory)]
        spark = subprocess.Popen(command, env=_environment(job_path), stdout=output, stderr=output)
        try:
            code = spark.wait()
        except BaseException:  # Ctrl-C, or SIGTERM, which the command line takes for the same
            end(psutil.Process(spark.pid))
            raise
        if code:
            output.seek(0)
            printed = output.read()
            cause, log = cause_in(printed.decode("utf-8", "replace")), _kept(printed)
            raise SparkFailed(f"Spark failed with exit code {code}: {cause}; all it printed is in {log}")


def _ending_with_us() -> list[str]:
    """Lets the kernel end Spark when this process is killed; systems without this tool leave it running then."""
    tool = shutil.which("setpriv")
    return [tool, "--pdeathsig", "TERM"] if tool else []


def _kept(printed: bytes) -> Path:
    handle, log = tempfile.mkstemp(prefix="kafka_sla-spark-", suffix=".log")
    with os.fdopen(handle, "wb") as target:
        target.write(printed)
    return Path(log)


def _command(job_path: str, memory: str) -> list[str]:
    submit = package_folder("pyspark") / "bin" / "spark-submit"
    conf = conf_options(spark_conf(job_path, local_driver=True) | HERE)
    job = [str(application()), "--job", job_path]
    return [str(submit), "--master", "local[*]", "--driver-memory", memory, *conf, *job]


def _environment(job_path: str) -> dict[str, str]:
    """This Python for the driver and its workers, with the packages where this process found them."""
    packages = dict.fromkeys(str(package_folder(name).parent) for name in PACKAGES)
    path = [*packages, *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {
        "PYTHONPATH": os.pathsep.join(path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return {**os.environ, **own, **object_stores.environment(job_path)}
