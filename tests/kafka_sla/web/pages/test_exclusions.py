"""Time is excluded on the page of an SLA by who may, and everybody sees by whom and why."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kafka_sla.web.conftest import Asker, asker
from tests.kafka_sla.web.world import HOSTILE

PAYMENTS = "payments within 30 seconds"


@pytest.fixture(scope="module")
def operator(asgi: Any) -> Asker:
    """A user who may edit DAGs."""
    return asker(asgi, "OP")


@pytest.fixture
def miss(reader: Asker, operator: Asker) -> Iterator[dict[str, Any]]:
    """One that recovered; whatever is excluded counts again afterwards."""
    (found,) = [one for one in reader.json("/api/v1/misses") if one["sla"] == PAYMENTS]
    yield found
    for one in reader.json("/api/v1/exclusions"):
        if not one["undone_at"]:
            write(operator, f"/exclusions/{one['id']}/undo")


def write(who: Asker, path: str, headers: dict[str, str] | None = None, **form: str) -> Any:
    token = {"Authorization": f"Bearer {who.token}"} if who.token else {}
    return who.client.post(f"/kafka-sla{path}", data=form, headers=token | (headers or {}), follow_redirects=False)


def of(miss: dict[str, Any], **more: str) -> dict[str, str]:
    return {"from": miss["start"], "to": miss["end"], "reason": f"load test {HOSTILE}", **more}


def test_only_who_may_edit_the_dag_excludes_and_only_on_our_own_page(
    reader: Asker, outsider: Asker, stranger: Asker, operator: Asker, miss: dict[str, Any]
) -> None:
    path, abroad = f"/slas/{PAYMENTS}/exclusions", {"Sec-Fetch-Site": "cross-site"}

    assert [write(who, path, **of(miss)).status_code for who in (reader, outsider, stranger)] == [403, 403, 401]
    assert write(operator, path, abroad, **of(miss)).status_code == 403
    assert reader.json("/api/v1/exclusions") == []


def test_only_who_may_exclude_is_shown_how(reader: Asker, operator: Asker, miss: dict[str, Any]) -> None:
    path, of_sla = f"/slas/{PAYMENTS}", {"from": miss["start"], "to": miss["end"]}
    before = [(who.get(f"/misses/{miss['id']}").text, who.get(path, **of_sla).text) for who in (reader, operator)]
    write(operator, f"{path}/exclusions", **of(miss))
    after = [who.get(path, **of_sla).text for who in (reader, operator)]

    assert ["Exclude its time" in shown for shown, _ in before] == [False, True]
    assert ["<button>Exclude</button>" in shown for _, shown in before] == [False, True]
    assert ["Anyone who may edit the DAG" in shown for _, shown in before] == [True, False]
    assert ["<button>Undo</button>" in shown for shown in after] == [False, True]


def test_an_excluded_miss_is_shown_as_such_and_the_budget_comes_back_until_it_is_undone(
    reader: Asker, operator: Asker, miss: dict[str, Any]
) -> None:
    before = reader.json(f"/api/v1/slas/{PAYMENTS}")["period"]
    answer = write(operator, f"/slas/{PAYMENTS}/exclusions", **of(miss))
    during = reader.json(f"/api/v1/slas/{PAYMENTS}")["period"]
    page = reader.get(answer.headers["location"].removeprefix("/kafka-sla").partition("#")[0]).text

    assert answer.status_code == 303
    assert during["bad_ms"] < before["bad_ms"]
    assert during["excluded_ms"] > before["excluded_ms"] == 0
    assert HOSTILE not in page
    assert f"load test {HOSTILE}" in html.unescape(page)
    for text in (page, reader.get(f"/misses/{miss['id']}").text, reader.get("/misses").text):
        assert "not counted</span>" in text
        assert "xcluded afterwards by somebody" in text
    assert "excluded afterwards by somebody" in reader.json(f"/api/v1/misses/{miss['id']}")["exclusion"]

    (one,) = [one for one in reader.json("/api/v1/exclusions") if not one["undone_at"]]
    assert write(operator, f"/exclusions/{one['id']}/undo").status_code == 303
    assert write(operator, f"/exclusions/{one['id']}/undo").status_code == 400
    assert reader.json(f"/api/v1/slas/{PAYMENTS}")["period"] == before
    assert reader.json(f"/api/v1/misses/{miss['id']}") == miss
    assert "undone</span>" in reader.get(f"/slas/{PAYMENTS}").text


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": " "},
        {"from": "soon"},
        {"to": "2000-01-01"},
        {"to": "9998-01-01"},
        {"from": "0001-01-01"},
        {"reason": "x" * 1_001},
    ],
)
def test_an_impossible_exclusion_is_refused_with_what_to_do(
    reader: Asker, operator: Asker, miss: dict[str, Any], wrong: dict[str, str]
) -> None:
    answer = write(operator, f"/slas/{PAYMENTS}/exclusions", **of(miss, **wrong))

    assert answer.status_code == 400
    assert all(one["undone_at"] for one in reader.json("/api/v1/exclusions"))


def test_what_is_not_there_can_be_neither_excluded_nor_undone(operator: Asker, miss: dict[str, Any]) -> None:
    assert write(operator, "/slas/nobody's/exclusions", **of(miss)).status_code == 404
    assert write(operator, "/exclusions/0badcafe/undo").status_code == 400
