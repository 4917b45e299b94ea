"""Misses are acknowledged and commented on by who may, and everybody sees by whom."""

from __future__ import annotations

import html
from typing import Any
from urllib.parse import quote

import pytest

from kafka_sla.notifications.miss_context import surroundings
from tests.kafka_sla.ledger.test_alert_reports import alert_of, sla_of
from tests.kafka_sla.web.conftest import Asker, asker
from tests.kafka_sla.web.world import HOSTILE


@pytest.fixture(scope="module")
def operator(asgi: Any) -> Asker:
    """A user who may edit DAGs."""
    return asker(asgi, "OP")


@pytest.fixture(scope="module")
def miss(reader: Asker) -> str:
    (found,) = reader.json("/api/v1/misses", state="open")
    return str(found["id"])


def write(who: Asker, miss: str, headers: dict[str, str] | None = None, **form: str) -> Any:
    token = {"Authorization": f"Bearer {who.token}"} if who.token else {}
    return who.client.post(
        f"/kafka-sla/misses/{miss}/notes", data=form, headers=token | (headers or {}), follow_redirects=False
    )


def test_a_reader_may_not_write(reader: Asker, outsider: Asker, stranger: Asker, miss: str) -> None:
    answers = [write(who, miss, kind="acknowledged").status_code for who in (reader, outsider, stranger)]

    assert answers == [403, 403, 401]
    assert "Nobody has acknowledged it" in reader.get(f"/misses/{miss}").text


def test_only_who_may_write_is_shown_the_form(reader: Asker, operator: Asker, miss: str) -> None:
    form = f'<form class="filter" method="post" action="/kafka-sla/misses/{miss}/notes">'
    pages = [who.get(f"/misses/{miss}").text for who in (reader, operator)]

    assert [form in page for page in pages] == [False, True]
    assert ["Anyone who may edit the DAG" in page for page in pages] == [True, False]


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://airflow.corp.test:8080"}, 403),
        ({"Origin": "http://wiki.corp.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[evil"}, 403),
        ({"Origin": "http://airflow.corp.test:8080@evil.test"}, 403),
        ({"Origin": "http://airflow.corp.test:8080"}, 400),
        ({"Origin": "http://a.corp.test", "Host": "pod-7", "X-Forwarded-Host": "a.corp.test"}, 400),
    ],
)
def test_another_site_cannot_write_in_somebody_s_name(
    operator: Asker, miss: str, told: dict[str, str], answer: int
) -> None:
    """400: it was looked at, and is empty."""
    sent = {"Host": "airflow.corp.test:8080"} | told
    assert answer == write(operator, miss, sent, kind="comment", text="").status_code


@pytest.mark.parametrize("announced", ["300000000", "65537", "-1", "x", None])
def test_a_body_that_is_no_form_of_these_pages_is_refused(operator: Asker, miss: str, announced: str | None) -> None:
    """One that announces its length is not read; another one until it is too long."""
    headers = {"Authorization": f"Bearer {operator.token}", "Content-Type": "application/x-www-form-urlencoded"}
    parts = iter([b"text=", *([bytes(2**20)] * 8)])
    announces = {"Content-Length": announced} if announced else {}

    answer = operator.client.post(
        f"/kafka-sla/misses/{miss}/notes", content=b"text=x" if announced else parts, headers=headers | announces
    )

    assert answer.status_code == 413
    assert "65536 bytes at most" in answer.text


def test_a_form_has_few_fields(operator: Asker, miss: str) -> None:
    assert 400 == write(operator, miss, **{f"field{number}": "x" for number in range(50)}).status_code


@pytest.mark.parametrize(
    ("referer", "leads_back"),
    [
        ("http://testserver/kafka-sla/misses/1", True),
        ("http://evil.test/kafka-sla/misses/1", False),
        ("//evil.test/", False),
        ("javascript:alert(1)", False),
        ("http://[evil", False),
    ],
)
def test_a_login_leads_back_to_airflow_only(stranger: Asker, miss: str, referer: str, leads_back: bool) -> None:
    answer = write(stranger, miss, {"Accept": "text/html", "Referer": referer}, kind="acknowledged")

    assert answer.status_code == 401
    assert ("evil" in answer.text or "javascript:" in answer.text, quote(referer, safe="") in answer.text) == (
        False,
        leads_back,
    )


@pytest.mark.parametrize("form", [{}, {"kind": "comment", "text": "  "}, {"kind": "deleted"}])
def test_an_empty_note_is_refused(operator: Asker, miss: str, form: dict[str, str]) -> None:
    assert 400 == write(operator, miss, **form).status_code


def test_an_acknowledgement_and_a_comment_are_seen_on_the_page_in_the_list_and_in_mails(
    operator: Asker, reader: Asker, miss: str
) -> None:
    from starlette.requests import Request

    from kafka_sla.web.queries.context import open_context

    answer = write(operator, miss, kind="acknowledged")
    write(operator, miss, kind="acknowledged")
    write(operator, miss, kind="comment", text=f"deploy of 14:02 rolled back {HOSTILE}")
    page = html.unescape(reader.get(f"/misses/{miss}").text)

    assert (answer.status_code, answer.headers["location"]) == (303, f"/kafka-sla/misses/{miss}#notes")
    assert "acknowledged</span>" in page
    assert "deploy of 14:02 rolled back" in page
    assert HOSTILE not in reader.get(f"/misses/{miss}").text
    assert "by somebody</small>" in reader.get("/misses").text
    assert "deploy of 14:02 rolled back" in reader.get(f"/misses/{miss}/document").text

    context = open_context(Request({"type": "http", "state": {}}))
    (found,) = [one for one in context.ledger.verdicts.misses() if one.id == miss]
    noted = surroundings(context.ledger, context.settings.sla(found.sla), found, found.opened_at).notes
    assert [(note.kind, note.author) for note in noted] == [("acknowledged", "somebody"), ("comment", "somebody")]


def test_a_comment_keeps_its_lines_and_holds_no_nul(operator: Asker, reader: Asker, miss: str) -> None:
    write(operator, miss, kind="comment", text="14:02 deployed\r\n14:10 rolled back")
    refused = write(operator, miss, kind="comment", text="a\0b")

    assert "14:02 deployed<br>14:10 rolled back" in reader.get(f"/misses/{miss}").text
    assert (400, True) == (refused.status_code, "text holds a NUL" in refused.text)


def test_the_page_of_a_miss_links_those_that_were_reported_with_it(reader: Asker, miss: str) -> None:
    from starlette.requests import Request

    from kafka_sla.ledger.alerts.report_plan import Opening
    from kafka_sla.web.queries.context import open_context

    ledger = open_context(Request({"type": "http", "state": {}})).ledger
    other = next(found for found in ledger.verdicts.misses() if found.id != miss)
    assert "Reported with" not in reader.get(f"/misses/{miss}").text

    together = [alert_of(found) for found in ledger.verdicts.misses() if found.id in (miss, other.id)]
    with ledger.alert_reports.planning() as plan:
        openings = [Opening("mail", a.id, a, sla_of(a.sla), None, "slow brokers", False) for a in together]
        plan.open(openings, lambda _, channel: channel)

    incidents = {found["id"]: found["incident"] for found in reader.json("/api/v1/misses")}
    assert incidents[miss] == incidents[other.id] is not None
    assert reader.json(f"/api/v1/misses/{miss}")["incident"] == incidents[miss]
    page = reader.get(f"/misses/{miss}").text
    assert f'1 other SLA missed by the same cause: <a href="/kafka-sla/misses/{other.id}">' in page
