"""Every route that shows a figure asks for a session and for the right to read the DAG."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.web.app import HEADERS, create_app
from tests.kafka_sla.web.conftest import Asker

STATIC = "/static/{name}"
VALUES = {"sla": "payments within 30 seconds", "table": "sla_windows", "dag_id": "kafka_sla"}


def routes() -> list[str]:
    """Every path that the application answers, with values filled in; one that it does not know asks nobody."""
    paths = [route.path for route in create_app().routes if "GET" in route.methods]  # type: ignore[attr-defined]
    return sorted(_filled(path) for path in paths if path != STATIC)


def _filled(path: str) -> str:
    return re.sub(r"\{(\w+)(:path)?\}", lambda m: VALUES.get(m[1], "nothing"), path)


@pytest.mark.parametrize("path", routes())
def test_strangers_are_sent_away(stranger: Asker, path: str) -> None:
    assert 401 == stranger.get(path).status_code


def test_the_page_that_asks_strangers_to_log_in_looks_like_the_others(stranger: Asker) -> None:
    page = stranger.client.get("/kafka-sla/", headers={"accept": "text/html"}).text
    files = re.findall(r'(?:src|href)="/kafka-sla(/static/[^"]+)"', page)

    assert any("pages.css" in file for file in files)
    assert {stranger.get(file).status_code for file in files} == {200}
    assert stranger.get("/static/no.css").status_code == 404


@pytest.mark.parametrize("path", routes())
def test_users_without_the_right_see_nothing(outsider: Asker, path: str) -> None:
    answer = outsider.get(path)

    assert 403 == answer.status_code
    assert "payments" not in answer.text


@pytest.mark.parametrize("path", [path for path in routes() if "nothing" not in path])
def test_readers_get_an_answer(reader: Asker, path: str) -> None:
    answer = reader.get(path, load_id="load0000", expectation_id="consumer_latency-1")
    if answer.is_redirect:  # a former address
        answer = reader.get(answer.headers["location"].removeprefix("/kafka-sla"))

    assert 200 == answer.status_code, answer.text[:500]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the extra `worker` installs is not there, as where only a web server runs."""
    for name in ["great_expectations", "matplotlib", *sys.modules]:
        if name.partition(".")[0] in ("great_expectations", "matplotlib"):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "kafka_sla.reporting.charts", raising=False)


@pytest.mark.usefixtures("no_worker")
@pytest.mark.parametrize("path", [path for path in routes() if "nothing" not in path])
def test_a_web_server_needs_nothing_that_only_workers_install(reader: Asker, path: str) -> None:
    assert reader.get(path).status_code < 500


@pytest.mark.usefixtures("no_worker")
def test_without_matplotlib_an_exported_miss_has_no_plot(reader: Asker) -> None:
    (miss,) = reader.json("/api/v1/misses", state="open")
    answer = reader.get(f"/misses/{miss['id']}/document")

    assert answer.status_code == 200
    assert "<img" not in answer.text and miss["sla"] in answer.text


@pytest.mark.parametrize("path", routes())
def test_every_answer_of_every_method_has_strict_headers_and_only_reading_is_answered(
    reader: Asker, stranger: Asker, path: str
) -> None:
    for somebody in (reader, stranger):
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            headers = {"Authorization": f"Bearer {somebody.token}"} if somebody.token else {}
            answer = somebody.client.request(method, f"/kafka-sla{path}", headers=headers)

            assert answer.status_code in (401, 403, 405), (method, answer.status_code)
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize("path", routes())
def test_who_asks_for_the_head_gets_what_a_reader_gets_without_the_body(
    reader: Asker, outsider: Asker, stranger: Asker, path: str
) -> None:
    for somebody in (reader, outsider, stranger):
        headers = {"Authorization": f"Bearer {somebody.token}"} if somebody.token else {}
        plain = headers | {"Accept-Encoding": "identity"}
        head, whole = (
            somebody.client.request(method, f"/kafka-sla{path}", headers=plain, follow_redirects=False)
            for method in ("HEAD", "GET")
        )

        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert whole.headers.keys() - head.headers.keys() <= {"vary"}, "of Airflow's compression, which sees no body"
        assert head.headers.get("content-type") == whole.headers.get("content-type")


ODD = {
    "before all time": {"from": "0001-01-01", "to": "0001-01-02"},
    "after all time": {"from": "9999-12-30", "to": "9999-12-31T23:59:59Z"},
    "eight thousand years": {"from": "1000-01-01", "to": "9999-01-01"},
    "no time": {"from": "yesterday", "to": "\u0660\u0661"},
    "an expression that explodes": {"group": "(a+)+" * 20 + "$", "cluster": "(.*)*x", "team": "a" * 50_000},
    "a null byte": {"group": "a\0b", "sla": "'; DROP TABLE publications; --", "cluster": "\ud7ff"},
    "a million": {"partition": "1000000", "page": "-1", "most": "99999999999999999999"},
    "words for numbers": {"partition": "one", "partitions": "perhaps", "form": "exe", "state": "🧨"},
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("path", routes())
def test_odd_parameters_are_answered_or_refused_without_much_work_and_break_nothing(
    reader: Asker, path: str, odd: str
) -> None:
    worked = time.process_time()
    answer = reader.get(path, load_id="load0000", expectation_id="consumer_latency-1", **ODD[odd])

    assert answer.status_code < 500, answer.text[:500]
    assert time.process_time() - worked < 5, "a busy machine takes a second and a half"


@pytest.mark.parametrize(
    "path",
    [
        "/slas/" + "x" * 5_000,
        "/slas/..%2F..%2F..%2Fetc%2Fpasswd",
        "/static/..%2Fapp.py",
        "/static/%2Fetc%2Fpasswd",
        "/reports/..%2F..%2F/kafka_sla_store.json/document",
        "/misses/%00",
        "/misses/'%20OR%201=1",
        "/api/v1/tables/sqlite_master",
        "/api/v1/tables/..%2Ffacts",
        "//example.com/",
    ],
)
def test_odd_paths_lead_nowhere(reader: Asker, path: str) -> None:
    answer = reader.get(path)

    assert answer.status_code in (400, 404, 422), answer.status_code
    assert "root:" not in answer.text


def test_a_scraper_reads_the_metrics_with_a_token_of_its_own_and_nothing_else(stranger: Asker) -> None:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    scraper = Asker(stranger.client, "a-token-that-does-not-expire")
    assert 403 == scraper.get("/metrics").status_code
    with create_session() as session:
        session.add(Connection(conn_id="kafka_sla_scraper", conn_type="generic", password=scraper.token))
    try:
        assert "kafka_sla_" in scraper.get("/metrics").text
        assert [403] * 3 == [scraper.get(path).status_code for path in ("/", "/api/v1/slas", "/api/v1/openapi.json")]
        assert 403 == Asker(stranger.client, "another-token").get("/metrics").status_code
    finally:
        with create_session() as session:
            session.execute(delete(Connection).where(Connection.conn_id == "kafka_sla_scraper"))


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
