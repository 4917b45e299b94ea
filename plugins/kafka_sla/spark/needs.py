"""What Spark needs of the machine on which it starts. Knows no job."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

from kafka_sla.errors import SparkFailed

NAME_THE_USER = (
    "add a line for it to /etc/passwd (Airflow's own image does so where that file can be written to), or measure with"
    " a Spark Connect server elsewhere"
)


def need_all() -> Path:
    """The Java that Spark will start. Raises SparkFailed, which says what is missing and what to do."""
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
