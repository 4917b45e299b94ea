"""Iceberg's own REST catalog on loopback, for the `with` block that starts it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import requests

from demo.broker import free_ports
from demo.jars import ICEBERG_REST, fetch_jars, java

_PROGRAM = Path(__file__).with_name("RestCatalog.java")
_STARTS_WITHIN = 180


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """Its address; it keeps what it knows in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    classes = f"{fetch_jars(jars=ICEBERG_REST)}/*:{Path(pyspark.__file__).parent}/jars/*"
    command = [java(), "-cp", classes, str(_PROGRAM), str(port), str(folder / "catalog.db"), str(folder / "tables")]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait(server, address := f"http://127.0.0.1:{port}", folder)
        yield address
    finally:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], address: str, folder: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            requests.get(f"{address}/v1/config", timeout=10).raise_for_status()
            return
        except requests.RequestException:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((folder / "server.log").read_text()[-2000:]) from None
            time.sleep(0.3)
