"""Every route asks for a session and for the right to read the DAG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.web.app import create_app
from tests.kafka_sla.web.conftest import Asker

VALUES = {"sla": "payments within 30 seconds", "table": "sla_windows", "dag_id": "kafka_sla"}


def routes() -> list[str]:
    """Every path that the application answers, with values filled in; one that it does not know asks nobody."""
    return sorted(_filled(route.path) for route in create_app().routes if "GET" in route.methods)  # type: ignore[attr-defined]


def _filled(path: str) -> str:
    return re.sub(r"\{(\w+)(:path)?\}", lambda m: VALUES.get(m[1], "nothing"), path)


@pytest.mark.parametrize("path", routes())
def test_strangers_are_sent_away(stranger: Asker, path: str) -> None:
    assert 401 == stranger.get(path).status_code


@pytest.mark.parametrize("path", routes())
def test_users_without_the_right_see_nothing(outsider: Asker, path: str) -> None:
    answer = outsider.get(path)

    assert 403 == answer.status_code
    assert "payments" not in answer.text


@pytest.mark.parametrize("path", [path for path in routes() if "nothing" not in path])
def test_readers_get_an_answer(reader: Asker, path: str) -> None:
    answer = reader.get(path, load_id="load0000", expectation_id="consumer_latency-1")

    assert 200 == answer.status_code, answer.text[:500]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_password_of_the_database_that_was_rotated_is_used_at_once(reader: Asker, tmp_path: Path) -> None:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(Connection).where(Connection.conn_id == "kafka_sla_store")).one()
        before, found.host = found.host, str(tmp_path / "other.db")
    try:
        other = reader.json("/api/v1/misses")
    finally:
        with create_session() as session:
            session.scalars(select(Connection).where(Connection.conn_id == "kafka_sla_store")).one().host = before

    assert other == []
    assert reader.json("/api/v1/misses")


def test_the_session_cookie_opens_as_a_token_does(reader: Asker, stranger: Asker) -> None:
    answer = stranger.client.get("/kafka-sla/api/v1/slas", cookies={"_token": reader.token})
    stranger.client.cookies.clear()

    assert 200 == answer.status_code


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_the_frameworks_own_pages_are_closed(reader: Asker, path: str) -> None:
    assert 404 == reader.get(path).status_code


def test_airflow_knows_the_entry_and_the_tabs() -> None:
    from airflow import plugins_manager

    views: Any = plugins_manager.get_plugin_info(["external_views"])
    mine = [view for plugin in views if plugin["name"] == "kafka_sla" for view in plugin["external_views"]]

    assert {"nav", "dag", "dag_run"} == {view["destination"] for view in mine}
    assert 3 == len({view["url_route"] for view in mine})
