"""A store that may only be read, such as a mounted backup: readers work, writers refuse at once."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.loads import load, span

CONFIGURATION = "clusters: {a: {}}\nslas: [{name: payments, group: payments, topic: orders, max_latency: 30s}]\n"
FACTS = "cluster,topic,partition,at,log_start_offset,log_end_offset,source\na,orders,0,2026-03-02T10:00Z,0,7,record\n"
AS_ANYBODY = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Root may write what nobody may write, unless it gives that up."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    store = Store.embedded(tmp_path / "store")
    load(Lake(store), Ledger(store), "load1", span("10:00", "10:10"))
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    (tmp_path / "facts.csv").write_text(FACTS)
    gc.collect()  # connections that are still open would go on writing beside the database
    paths = [tmp_path / "store", *(tmp_path / "store").rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield tmp_path
    for path in filter(Path.exists, paths):  # SQLite takes its own files beside the database away
        path.chmod(0o755)


def kafka_sla(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = "import sys; from kafka_sla.cli.main import main; sys.exit(main())"
    words = [*AS_ANYBODY, sys.executable, "-c", command, *arguments, "--store", str(folder / "store")]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["status"], "2026-03-02"),
        (["misses"], "no misses"),
        (["check"], "ok   store: tables in"),
        (["export", "consumer_latency"], "a,payments,orders,0,2026-03-02T10:09:00.000Z"),
        (["export", "replication_lag"], "cluster,flow"),
        (["report", "--from", "2026-03-02", "--to", "2026-03-03", "--output", "report.html"], "report.html"),
    ],
)
def test_commands_that_read_work(folder: Path, command: list[str], shown: str) -> None:
    ended = kafka_sla(folder, *command)

    assert (0, "") == (ended.returncode, ended.stderr)
    assert shown in ended.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--from", "2026-03-02T10:00Z", "--to", "2026-03-02T10:10Z"],
        ["import", "--log-offsets", "facts.csv"],
    ],
)
def test_commands_that_write_refuse_and_change_nothing(folder: Path, command: list[str]) -> None:
    before = sorted((folder / "store").rglob("*"))

    ended = kafka_sla(folder, *command)

    assert ended.returncode == 1
    assert "kafka-sla: the store is read-only here: " in ended.stderr
    assert sorted((folder / "store").rglob("*")) == before


def test_a_warehouse_alone_that_may_not_be_written_is_named_before_anything_is_done(folder: Path) -> None:
    for path in (folder / "store", *(folder / "store").glob("kafka_sla.db*")):
        path.chmod(0o755)

    ended = kafka_sla(folder, "run", "--from", "2026-03-02T10:00Z", "--to", "2026-03-02T10:10Z")

    assert ended.returncode == 1
    assert f"kafka-sla: the warehouse {folder}/store/warehouse is read-only here: " in ended.stderr
    assert "measure" not in ended.stderr
