"""A standing Spark measures what spark-submit measures, and its end costs a retry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from demo.broker import free_ports
from demo.standing_spark import StandingSpark, standing_spark
from kafka_sla.cli.main import main
from kafka_sla.errors import SparkFailed
from kafka_sla.model.tables import METRICS
from kafka_sla.spark_jobs.standing import check_versions
from tests.spark_jobs.conftest import EPOCH

pytestmark = pytest.mark.slow

CONFIGURATION = """
clusters: {prod-eu.payments: {}}
slas:
  - {name: billing.alerts-in-time, cluster: prod-eu.payments, group: billing.alerts-v2, topic: orders, max_latency: 30s}
"""
_NOT_INSTALLED = """
import sys, zipimport

class OnlyInZips:
    def find_spec(self, name, path=None, target=None):
        if name != "kafka_sla":
            return None
        for entry in sys.path:
            if entry.endswith(".zip") and (found := zipimport.zipimporter(entry).find_spec(name)):
                return found
        raise ModuleNotFoundError(f"{name} is not installed here")

sys.meta_path.insert(0, OnlyInZips())
"""
_RUN = """
import sys

from kafka_sla.cli.main import main

before = list(sys.path)
code = main()
assert sys.path == before, "what this process and its children import next comes from elsewhere"
sys.exit(code)
"""
TIMES = ["--from", f"{EPOCH:%Y-%m-%dT%H:%MZ}", "--to", f"{EPOCH + timedelta(minutes=10):%Y-%m-%dT%H:%MZ}"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("standing")


@pytest.fixture(scope="module")
def python(folder: Path) -> Path:
    """A Python where the project is not installed, only what it is sent in a zip can be imported."""
    (folder / "sitecustomize.py").write_text(_NOT_INSTALLED)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture(scope="module")
def server(folder: Path, python: Path) -> Iterator[StandingSpark]:
    with standing_spark(folder, python=python) as server:
        server.wait()
        yield server


def stamp(seconds: float) -> str:
    return (EPOCH + timedelta(seconds=seconds)).isoformat()


def stored(folder: Path) -> Path:
    """A place with ten minutes of facts, of which a consumer misses four."""
    folder.mkdir()
    (folder / "kafka_sla.yml").write_text(CONFIGURATION)
    log = [f"prod-eu.payments,orders,0,{stamp(s)},0,{s * 10},exporter" for s in range(0, 601, 10)]
    commits = [
        f"prod-eu.payments,billing.alerts-v2,orders,0,{stamp(s)},{(s - 1) * 10},commit_log"
        for s in range(1, 600, 5)
        if not 240 < s < 480
    ]
    for name, columns, rows in (
        ("log", "cluster,topic,partition,at,log_start_offset,log_end_offset,source", log),
        ("commits", "cluster,group,topic,partition,at,committed_offset,source", commits),
    ):
        (folder / f"{name}.csv").write_text("\n".join([columns, *rows]))
    files = ["--log-offsets", str(folder / "log.csv"), "--committed-offsets", str(folder / "commits.csv")]
    assert main(["--quiet", *places(folder), "import", *files]) == 0
    return folder


def places(folder: Path) -> list[str]:
    return ["--config", str(folder / "kafka_sla.yml"), "--store", str(folder / "store")]


def begun(place: Path, remote: str | None) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", _RUN]
    own = {"SPARK_REMOTE": remote} if remote else {}
    return subprocess.Popen(
        [*words, *places(place), "run", *TIMES], env=os.environ | own, stderr=subprocess.PIPE, text=True
    )


def ran(place: Path, remote: str | None) -> str:
    """What it said when it ended well."""
    return ended(begun(place, remote))


def ended(command: subprocess.Popen[str]) -> str:
    said = command.communicate(timeout=300)[1]
    assert command.returncode == 0, said
    return said


def rows(place: Path, capsys: pytest.CaptureFixture[str], *tables: str) -> dict[str, list[str]]:
    """The published rows of these tables, or of all."""
    found = {}
    for table in tables or (*(metric.name for metric in METRICS), "sla_windows", "sla_misses", "validation_results"):
        capsys.readouterr()
        assert main([*places(place), "--quiet", "export", table, "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        found[table] = sorted(json.dumps({k: v for k, v in row.items() if k != "load_id"}) for row in rows)
    return found


def test_a_standing_spark_makes_the_rows_that_spark_submit_makes_also_for_two_at_once(
    server: StandingSpark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted, one, other = (stored(tmp_path / name) for name in ("submitted", "one", "other"))
    ran(submitted, None)
    for command in [begun(place, server.url) for place in (one, other)]:
        ended(command)

    expected = rows(submitted, capsys)
    assert len(expected["consumer_latency"]) == 10
    assert rows(one, capsys) == rows(other, capsys) == expected

    assert "measure " in ran(one, server.url)
    assert rows(one, capsys, "consumer_latency")["consumer_latency"] == expected["consumer_latency"]


def test_where_no_server_listens_that_is_said_at_once(tmp_path: Path) -> None:
    place, (port,) = stored(tmp_path / "place"), free_ports(1)
    command = begun(place, f"sc://localhost:{port}")
    said = command.communicate(timeout=60)[1]
    assert command.returncode == 1
    assert f"no Spark Connect server answers at localhost:{port}" in said
    assert "start one with `kafka-sla spark-server`" in said


def test_a_server_of_another_line_of_spark_is_refused() -> None:
    check_versions("4.1.1", "4.1.3")
    with pytest.raises(SparkFailed, match=r"the server runs Spark 4\.0\.5, and pyspark is 4\.1\.3 here"):
        check_versions("4.0.5", "4.1.3")


def test_a_server_for_others_needs_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark-server", "--address", "0.0.0.0"]) == 1  # noqa: S104  it is refused
    assert "set SPARK_CONNECT_AUTHENTICATE_TOKEN to a secret" in capsys.readouterr().err


def test_a_server_that_is_killed_costs_a_retry(
    server: StandingSpark, folder: Path, python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = stored(tmp_path / "place")
    command = begun(place, server.url)
    while not list((place / "store" / "warehouse" / "staging").glob("*/consumer_latency/*")):
        assert command.poll() is None
        time.sleep(0.02)
    server.process.kill()
    said = command.communicate(timeout=120)[1]
    assert command.returncode == 1
    assert f"Spark at localhost:{server.port} failed: " in said and "Traceback" not in said
    assert rows(place, capsys, "consumer_latency")["consumer_latency"] == []

    with standing_spark(folder, port=server.port, python=python) as restarted:
        restarted.wait()
        ran(place, restarted.url)
    assert len(rows(place, capsys, "consumer_latency")["consumer_latency"]) == 10
