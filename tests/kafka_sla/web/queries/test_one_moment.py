"""What is written while a page is made is in all of it or in none."""

from __future__ import annotations

import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.ledger.test_verdicts import SLA, put
from tests.kafka_sla.loads import span
from tests.kafka_sla.web.conftest import Asker

CONFIGURATION = """\
clusters: {a: {}}
slas: [{name: payments, cluster: a, group: billing.alerts-authorised-v2, max_latency: 30s, for: 2m}]
"""


@pytest.fixture
def ledger(reader: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    store = Store.embedded(tmp_path)
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(tmp_path / "kafka_sla.yml"))
    connection = {"conn_type": "sqlite", "host": store.url.database}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", json.dumps(connection))
    return Ledger(store)


def test_a_miss_that_opens_in_the_middle_of_a_page_is_on_the_next_one(reader: Asker, ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "ggggg")
    written: list[str] = []

    def write(_: Any, __: Any, statement: str, *___: Any) -> None:
        """When misses are asked for, after much else was."""
        if "FROM sla_misses" in statement and not written:
            written.append(statement)
            with ThreadPoolExecutor(1) as somebody:
                somebody.submit(put, ledger, "10:00", "10:05", "bbggg").result()

    asked = span("9:00", "11:00")
    query = {"from": asked.start.isoformat(), "to": asked.end.isoformat()}
    event.listen(Engine, "before_cursor_execute", write)
    try:
        pages = [reader.get("/slas/payments", **query).text for _ in range(2)]
    finally:
        event.remove(Engine, "before_cursor_execute", write)

    (miss,) = ledger.verdicts.misses(SLA)
    assert written and [f"/misses/{miss.id}" in page for page in pages] == [False, True]


def test_all_answers_that_are_read_from_a_store_are_of_one_moment(asgi: Any) -> None:
    from kafka_sla.web.app import create_app
    from kafka_sla.web.queries.one_moment import OneMoment

    reading = [
        route
        for route in create_app().routes
        if "GET" in getattr(route, "methods", ()) and "context" in inspect.signature(route.endpoint).parameters  # type: ignore[attr-defined]
    ]

    assert len(reading) > 30
    assert [route for route in reading if not isinstance(route, OneMoment)] == []
