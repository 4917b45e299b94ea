"""Somebody renames an SLA while it is missed: that miss stays in the history, and is open no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Miss
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import build, whole_minute

NAME = "orders within 5 minutes"


@dataclass(frozen=True)
class Renamed:
    config: Path
    store: Store
    miss: Miss

    def command(self, *words: str) -> int:
        return main([*words, "--config", str(self.config), "--store", str(Path(str(self.store.url.database)).parent)])


@pytest.fixture(scope="module")
def renamed(reader: Asker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renamed]:
    config, store = build(tmp_path_factory.mktemp("renamed"), whole_minute(), timedelta(hours=3))
    (miss,) = (miss for miss in Ledger(store).verdicts.misses(open_only=True) if miss.sla == NAME)
    config.write_text(config.read_text().replace(NAME, "orders-api.eu-west-1 within 5 minutes"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KAFKA_SLA_CONFIG", str(config))
        connection = {"conn_type": "sqlite", "host": store.url.database}
        environment.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", json.dumps(connection))
        yield Renamed(config, store, miss)


def test_it_is_in_the_history_and_not_among_the_open_ones(reader: Asker, renamed: Renamed) -> None:
    lists = [{miss["id"] for miss in reader.json("/api/v1/misses", **query)} for query in ({}, {"state": "open"})]

    assert [renamed.miss.id in ids for ids in lists] == [True, False]
    assert renamed.miss.id not in reader.get("/misses", state="open").text


def test_its_page_says_that_nobody_judges_it_any_more_and_asks_for_no_chart(reader: Asker, renamed: Renamed) -> None:
    page = reader.get(f"/misses/{renamed.miss.id}").text

    assert f"SLA no longer judged: {NAME}" in page
    assert "no longer judged: the SLA has left the configuration</b>:" in page and "still open" not in page
    assert "/api/v1/slas/" not in page


def test_the_command_line_agrees(renamed: Renamed, capsys: pytest.CaptureFixture[str]) -> None:
    assert renamed.command("misses", "--open") == 0
    assert renamed.miss.id not in capsys.readouterr().out

    assert renamed.command("misses") == 0
    told = next(text for text in capsys.readouterr().out.split("\n\n") if renamed.miss.id in text)
    assert told.startswith(f"NO LONGER JUDGED: {NAME} at ")
    assert "No longer judged: the SLA has left the configuration." in told.splitlines()[1]
