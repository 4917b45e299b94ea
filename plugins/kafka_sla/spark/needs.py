"""What measuring needs of the machine on which it happens: the extra `worker`, Java, a user."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
from pathlib import Path

from kafka_sla.errors import SparkFailed

NAME_THE_USER = (
    "add a line for it to /etc/passwd (Airflow's own image does so where that file can be written to), or measure with"
    " a Spark Connect server elsewhere"
)


_OF_WORKER = ("great_expectations", "matplotlib", "pandas", "pyspark")


def without_worker(module: str) -> str | None:
    """What to say of a module that cannot be imported; None where it is not of the extra `worker`."""
    package = module.partition(".")[0]
    told = f"{package} is not installed here, which this command needs: pip install 'kafka-sla[worker]'"
    return told if package in _OF_WORKER else None


def need_worker(*packages: str) -> None:
    """SparkFailed where one of these packages of the extra `worker` is not installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise SparkFailed(without_worker(package))


def need_jars() -> None:
    """SparkFailed where Spark cannot start: pyspark-client, which comes with Airflow's provider, is a package of the
    same name without Spark's Java side."""
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    if not any((Path(place) / "jars").is_dir() for place in places or ()):
        raise SparkFailed(without_worker("pyspark"))


def need_all() -> Path:
    """The Java that Spark will start. Raises SparkFailed, which says what is missing and what to do."""
    need_jars()
    found = java()
    if found is None:
        raise SparkFailed("Spark needs Java 17, and there is none on the path: install it, or set JAVA_HOME")
    need_a_named_user()
    return found


def java() -> Path | None:
    """The Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return Path(found) if found and Path(found).exists() else None


def need_a_named_user() -> None:
    """Java finds no name for a user id that containers were just given, and Hadoop, which Spark reads and writes files
    with, refuses to work without one."""
    if unnamed := unnamed_user():
        raise SparkFailed(f"Spark does not run as {unnamed}: {NAME_THE_USER}")


def unnamed_user() -> str | None:
    """Who runs this process, in words, where the machine has no name for it."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return f"user {os.getuid()}, whom this machine has no name for"
    return None
