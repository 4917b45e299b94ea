"""`make trino`: a real Trino reads the store's tables through a real REST catalog."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from demo.broker import free_ports
from demo.jars import java
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY
from tests.kafka_sla.lake.rest_catalog import rest_catalog
from tests.kafka_sla.lake.test_catalogs import HOUR, store_at
from tests.kafka_sla.loads import load, span

TRINO = Path(os.environ.get("TRINO", ""))
JAVA = os.environ.get("TRINO_JAVA") or java()
_STARTS_WITHIN = 300
_OPTIONS = ("-Xmx2G", "-Djdk.attach.allowAttachSelf=true", "-Dnode.environment=test", "-Dnode.id=one")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("catalog")) as address:
        yield address


@pytest.fixture(scope="module")
def trino(catalog: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Trino of one node that knows the catalog as `lake`."""
    folder, (port,) = tmp_path_factory.mktemp("trino"), free_ports(1)
    (folder / "catalogs").mkdir()
    lake = ["connector.name=iceberg", "iceberg.catalog.type=rest", f"iceberg.rest-catalog.uri={catalog}"]
    (folder / "catalogs" / "lake.properties").write_text("\n".join([*lake, "fs.hadoop.enabled=true"]))
    settings = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": port,
        "discovery.uri": f"http://127.0.0.1:{port}",
        "node.internal-address": "127.0.0.1",
        "node.bind-ip": "127.0.0.1",
        "plugin.dir": TRINO / "plugin",
        "catalog.config-dir": folder / "catalogs",
        "query.max-memory-per-node": "512MB",
    }
    (folder / "config.properties").write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    own = [f"-Dnode.data-dir={folder}", f"-Dconfig={folder}/config.properties", "-cp", f"{TRINO}/lib/*"]
    with (folder / "trino.log").open("wb") as log:
        command = [JAVA, *_OPTIONS, *own, "io.trino.server.TrinoServer"]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        _wait(server, address := f"http://127.0.0.1:{port}", folder / "trino.log")
        yield address
    finally:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            if not requests.get(f"{address}/v1/info", timeout=10).json()["starting"]:
                return
        except requests.RequestException:
            pass  # not listening yet
        assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.5)


def rows(trino: str, sql: str) -> list[list[Any]]:
    """The answer to a query."""
    answer = requests.post(f"{trino}/v1/statement", sql, headers={"X-Trino-User": "anybody"}, timeout=60).json()
    found = list(answer.get("data", []))
    while "nextUri" in answer:
        answer = requests.get(answer["nextUri"], timeout=60).json()
        found += answer.get("data", [])
    assert "error" not in answer, answer["error"]["message"]
    return found


def test_trino_reads_each_published_row_once(trino: str, catalog: str, tmp_path: Path) -> None:
    store = store_at(tmp_path, catalog)
    lake, ledger = Lake(store), Ledger(store)
    table, key = f"lake.kafka_sla.{CONSUMER_LATENCY.name}", ", ".join(f'"{name}"' for name in CONSUMER_LATENCY.key)
    counts = f"SELECT load_id, count(*), count(DISTINCT ({key})) FROM {table} GROUP BY 1 ORDER BY 1"

    load(lake, ledger, "first", HOUR)
    lake.show(HOUR, [CONSUMER_LATENCY.name])
    before = rows(trino, counts)
    load(lake, ledger, "second", half := span("10:30", "11:00"), partitions=2)
    lake.show(half, [CONSUMER_LATENCY.name])

    assert before == [["first", 60, 60]]
    assert rows(trino, counts) == [["first", 30, 30], ["second", 60, 60]]
    assert rows(trino, f"SELECT count(*) FROM {table}") == [[lake.published(CONSUMER_LATENCY.name, HOUR).num_rows]]
