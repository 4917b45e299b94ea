"""A store that was copied with its folder is refused by every command until it is told so: also by those that read no
table, and by those that would write."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from demo.broker import free_ports
from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import LOG_OFFSETS
from tests.kafka_sla.loads import load, points, span

SLA = "billing.alerts-authorised-v2 within 30 s"
CONFIGURATION = f"""\
clusters: {{prod-eu.payments: {{connection: kafka_prod}}}}
slas: [{{name: {SLA}, group: billing.alerts-authorised-v2, topic: orders, max_latency: 30s}}]
digests: [{{name: weekly, every: week, recipients: [team@example.com]}}]
"""
TIMES = ("--from", "2026-03-02T10:00Z", "--to", "2026-03-02T11:00Z")
COMMANDS = (
    ("status",),
    ("misses",),
    ("report", *TIMES, "--output", "report.html"),
    ("digest", "weekly", "--day", "2026-03-02"),
    ("suggest",),
    ("export", "consumer_latency"),
    ("export", "sla_windows"),
    ("exclusions", "list"),
    ("exclusions", "add", "--sla", SLA, *TIMES, "--reason", "load test"),
    ("exclusions", "undo", "1"),
    ("run", *TIMES),
    ("sample", "--for", "1s"),
    ("import", "--log-offsets", "log.csv"),
    ("store", "check"),
    ("store", "repair", "--yes"),
    ("store", "copy", "again"),
)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def a_copied_store(empty_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`original`, and `copied`, which nobody has told so."""
    Path("kafka_sla.yml").write_text(CONFIGURATION)
    nowhere = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PROD", json.dumps({"conn_type": "kafka", "extra": nowhere}))
    store = Store.embedded(Path("original"))
    lake = Lake(store)
    load(lake, Ledger(store), "load1", span("10:00", "11:00"))
    lake.append_facts(LOG_OFFSETS, points("10:00"))
    shutil.copytree("original", "copied")


def content(folder: str) -> tuple[list[Path], list[str]]:
    """The files of the warehouse, and what the database holds."""
    with closing(sqlite3.connect(f"{folder}/kafka_sla.db")) as database:
        return sorted(Path(folder, "warehouse").rglob("*")), list(database.iterdump())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_copied_store_is_refused_and_nothing_is_written(command: tuple[str, ...], capsys: Captured) -> None:
    before, there = content("copied"), sorted(Path().iterdir())

    assert main([*command, "--store", "copied"]) == 1
    printed = capsys.readouterr()

    assert printed.out == "" and len(printed.err.splitlines()) == 1
    assert printed.err.startswith("kafka-sla: the tables of this store name files such as ")
    assert f"its warehouse is {Path('copied/warehouse').absolute()}: correct the" in printed.err
    assert "run `kafka-sla store move`" in printed.err
    assert (content("copied"), sorted(Path().iterdir())) == (before, there)


def test_a_check_names_it_among_all_else(capsys: Captured) -> None:
    assert main(["check", "--store", "copied"]) == 1
    assert "FAIL store: the tables of this store name files such as " in capsys.readouterr().out


def test_once_it_is_told_it_is_read_and_copied_as_any_other(capsys: Captured) -> None:
    assert main(["store", "move", "--store", "copied"]) == 0
    shutil.rmtree("original")

    for command in (
        ("misses",),
        ("exclusions", "list"),
        ("export", "sla_windows"),
        ("store", "check"),
        ("store", "copy", "again"),
    ):
        assert (command, main([*command, "--store", "copied"])) == (command, 0)
    assert main(["store", "check", "--store", "again"]) == 0
