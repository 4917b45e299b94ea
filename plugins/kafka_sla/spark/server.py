"""A Spark that stands by for jobs, reached through Spark Connect. Knows its settings, not what is measured."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from kafka_sla.errors import SparkFailed
from kafka_sla.spark.class_archive import archive_options
from kafka_sla.spark.conf import ALWAYS, HERE, conf_options
from kafka_sla.spark.needs import need_all
from kafka_sla.spark.package_zip import package_folder
from kafka_sla.spark.submit import REMOTE

PORT = 15002
"""Spark Connect's own."""
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  its name
"""Spark's own environment variable: a secret that who connects must know, from Spark 4.1 on."""
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_KEPT = "24h"
"""How long a session is kept that nobody uses: an interval measured once a day finds its own again."""


def become_server(port: int, *, address: str, memory: str, master: str) -> NoReturn:
    """Go on as the server: whoever ends this process ends it."""
    need_all()
    if not _is_loopback(address) and not os.environ.get(TOKEN):
        raise SparkFailed(
            f"whoever reaches {address}:{port} could run code here: set {TOKEN} to a secret, and give it to the Airflow"
            " connection as its password"
        )
    _check_free(port, address)
    command = _command(port, address, memory, master)
    os.execve(command[0], command, _environment(master))  # noqa: S606


def _check_free(port: int, address: str) -> None:
    """SparkFailed where nobody can listen: Spark would say so in Java, after it has started."""
    try:
        family, *_, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(place)
    except OSError as error:
        raise SparkFailed(
            f"spark-server cannot listen at {address}, port {port}: {error.strerror}; name another --port, or an"
            " --address of this machine"
        ) from error


def _command(port: int, address: str, memory: str, master: str) -> list[str]:
    conf = ALWAYS | {
        "spark.connect.grpc.binding.address": address,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.session.manager.defaultSessionTimeout": _KEPT,
    }
    if _is_local(master):
        conf |= HERE
    if options := archive_options():
        conf |= {"spark.driver.extraJavaOptions": options}
    submit = package_folder("pyspark") / "bin" / "spark-submit"
    own = ["--name", "kafka_sla", "--master", master, "--driver-memory", memory, "--class", _CLASS]
    return [str(submit), *own, *conf_options(conf), "spark-internal"]


def _environment(master: str) -> dict[str, str]:
    """This Python for the server's tasks."""
    own = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1"} if _is_local(master) else {}
    return {name: value for name, value in os.environ.items() if name != REMOTE} | own


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _is_loopback(address: str) -> bool:
    return address == "localhost" or address.startswith("127.") or address == "::1"
