"""A Spark that stands by for jobs, reached through Spark Connect. Knows its settings, not what is measured."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from kafka_sla.errors import SparkFailed
from kafka_sla.spark.class_archive import archive_options
from kafka_sla.spark.conf import ALWAYS
from kafka_sla.spark.package_zip import package_folder
from kafka_sla.spark.submit import REMOTE, need_java

PORT = 15002
"""Spark Connect's own."""
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  its name
"""Spark's own environment variable: a secret that who connects must know, from Spark 4.1 on."""
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_KEPT = "24h"
"""How long a session is kept that nobody uses: an interval measured once a day finds its own again."""


def server_command(port: int, *, address: str = "127.0.0.1", memory: str = "2g", master: str = "local[*]") -> list[str]:
    """What starts it in the foreground; it ends when it is told to."""
    conf = ALWAYS | {
        "spark.connect.grpc.binding.address": address,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.session.manager.defaultSessionTimeout": _KEPT,
    }
    if master.startswith("local"):
        conf |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if options := archive_options():
        conf |= {"spark.driver.extraJavaOptions": options}
    given = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    submit = package_folder("pyspark") / "bin" / "spark-submit"
    own = ["--name", "kafka_sla", "--master", master, "--driver-memory", memory, "--class", _CLASS]
    return [str(submit), *own, *given, "spark-internal"]


def server_environment() -> dict[str, str]:
    """This Python for the server's tasks."""
    own = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable), "SPARK_LOCAL_IP": "127.0.0.1"}
    return {name: value for name, value in os.environ.items() if name != REMOTE} | own


def become_server(port: int, *, address: str, memory: str, master: str) -> NoReturn:
    """Go on as the server: whoever ends this process ends it."""
    need_java()
    if not _is_loopback(address) and not os.environ.get(TOKEN):
        raise SparkFailed(
            f"whoever reaches {address}:{port} could run code here: set {TOKEN} to a secret, and give it to the Airflow"
            " connection as its password"
        )
    command = server_command(port, address=address, memory=memory, master=master)
    os.execve(command[0], command, server_environment())  # noqa: S606


def _is_loopback(address: str) -> bool:
    return address == "localhost" or address.startswith("127.") or address == "::1"
