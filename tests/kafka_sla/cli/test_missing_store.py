"""Commands that read a store say when there is none at that address, and make nothing there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.loads import span

SLA = "billing.alerts-authorised-v2 within 30 s"
CONFIGURATION = f"""\
clusters: {{prod-eu.payments: {{}}}}
slas: [{{name: {SLA}, group: billing.alerts-authorised-v2, topic: orders, max_latency: 30s}}]
digests: [{{name: weekly, every: week, recipients: [team@example.com]}}]
"""
TIMES = ("--from", "2026-03-02T10:00Z", "--to", "2026-03-02T11:00Z")
READING = (
    ("status",),
    ("misses", "--json"),
    ("report", *TIMES, "--output", "report.html"),
    ("digest", "weekly", "--day", "2026-03-02"),
    ("suggest",),
    ("export", "consumer_latency"),
    ("export", "sla_misses", "--output", "misses.csv"),
    ("exclusions", "list"),
    ("exclusions", "add", "--sla", SLA, *TIMES, "--reason", "load test"),
    ("exclusions", "undo", "1"),
    ("store", "check"),
    ("store", "repair", "--yes"),
    ("store", "copy", "copied"),
    ("store", "move"),
)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def a_configured_folder(empty_folder: None) -> None:
    Path("kafka_sla.yml").write_text(CONFIGURATION)


def refused(command: tuple[str, ...], capsys: Captured) -> str:
    """What the command says on the error stream; it prints no result."""
    assert (command, main(command)) == (command, 2)
    printed = capsys.readouterr()
    assert (command, printed.out, len(printed.err.splitlines())) == (command, "", 1)
    return printed.err


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_mistyped_folder_is_named_and_not_made(command: tuple[str, ...], capsys: Captured) -> None:
    said = refused((*command, "--store", "stroe"), capsys)

    assert said.startswith("kafka-sla: there is no store in the warehouse ")
    assert str(Path("stroe/warehouse").absolute()) in said
    assert "correct the address" in said and "kafka-sla run" in said
    assert sorted(path.name for path in Path().iterdir()) == ["kafka_sla.yml"]


def test_an_empty_folder_stays_empty(capsys: Captured) -> None:
    Path("empty").mkdir()

    assert "there is no store" in refused(("misses", "--store", "empty"), capsys)
    assert list(Path("empty").iterdir()) == []


def test_what_only_a_reader_made_is_no_store(capsys: Captured) -> None:
    Ledger(Store.embedded(Path("stroe"))).open(writing=False)

    assert "there is no store" in refused(("misses", "--store", "stroe"), capsys)


def test_an_empty_address_is_no_folder(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["misses", "--store", ""])

    assert caught.value.code == 2
    assert "argument --store: names no folder" in capsys.readouterr().err


def test_a_postgres_that_holds_no_store_gets_no_tables(
    postgres_url: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "warehouse"), postgres_url)
    connection = {"conn_type": "generic", "extra": {"database_url": postgres_url, "warehouse": store.warehouse}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", json.dumps(connection))
    engine = create_engine(store.url)
    before = inspect(engine).get_table_names()

    said = refused(("misses",), capsys)

    assert f"there is no store in the warehouse {store.warehouse} with the database postgresql" in said
    assert not engine.url.password or engine.url.password not in said
    assert inspect(engine).get_table_names() == before and not Path(store.warehouse).exists()
    engine.dispose()


def test_a_store_that_holds_nothing_yet_is_read(capsys: Captured) -> None:
    Ledger(Store.embedded(Path("store"))).open(writing=True)

    assert main(["misses", "--store", "store"]) == 0
    assert capsys.readouterr().out == "no misses\n"


def test_a_store_whose_first_run_failed_says_why(capsys: Captured) -> None:
    failures = Ledger(Store.embedded(Path("store"))).failures
    failures.add(["prod-eu.payments"], span("10:00", "10:05"), "snapshot", "nothing answers")

    assert main(["status", "--store", "store"]) == 0
    assert "nothing answers" in capsys.readouterr().out
