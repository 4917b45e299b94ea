"""The Grafana dashboard is what Grafana's own schema allows, and leads from a figure to the page of its SLA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

ROOT = Path(__file__).parents[4]


@pytest.fixture
def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "docs/how-to/kafka-sla-grafana.json").read_text())
    return found


def not_in(written: Any, read: Any, path: str = "") -> Iterator[str]:
    """What of the first is not in the second."""
    if isinstance(written, dict):
        known = read if isinstance(read, dict) else {}
        for key, value in written.items():
            yield from not_in(value, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}"]
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for index, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from not_in(one, other, f"{path}[{index}]")
    elif written != read:
        yield f"{path}: {written!r}, read as {read!r}"


def test_every_key_of_the_dashboard_is_in_grafana_s_schema(board: dict[str, Any]) -> None:
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))

    assert [] == list(not_in(board, read))


def test_a_key_that_grafana_does_not_know_would_be_found(board: dict[str, Any]) -> None:
    board["panels"][0]["gridPosition"] = {}
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))

    assert [".panels[0].gridPosition"] == list(not_in(board, read))


def test_figures_of_an_sla_lead_to_its_page(board: dict[str, Any]) -> None:
    linked = [p for p in board["panels"] if p["fieldConfig"]["defaults"].get("links")]
    urls = {link["url"] for p in linked for link in p["fieldConfig"]["defaults"]["links"]}

    assert len(linked) >= 6
    assert urls == {"${airflow}/kafka-sla/slas/${__field.labels.sla:percentencode}"}
    assert all("{{sla}}" in target["legendFormat"] for p in linked for target in p["targets"])
    assert quote("payments within 30 seconds") == "payments%20within%2030%20seconds"


def test_states_have_the_colours_of_the_pages_and_burn_rates_a_line_at_one(board: dict[str, Any]) -> None:
    panels = {p["title"]: p["fieldConfig"] for p in board["panels"]}
    states = panels["SLAs by state"]["overrides"]
    burn = panels["Burn rate over time (1 spends exactly the budget)"]["defaults"]

    assert {"missed", "pending", "met", "excluded", "unknown"} == {one["matcher"]["options"] for one in states}
    assert burn["custom"]["thresholdsStyle"] == {"mode": "line"}
    assert [step["value"] for step in burn["thresholds"]["steps"]] == [None, 1]


def test_burn_alerts_are_counted_by_severity_and_budgets_in_records_are_not_forgotten(board: dict[str, Any]) -> None:
    exprs = {p["title"]: p["targets"][0]["expr"] for p in board["panels"]}

    assert exprs["Burn alerts"].startswith("sum by (severity) (kafka_sla_burn_alert{")
    assert exprs["Burn alerts over time (1 while one is open)"].startswith("kafka_sla_burn_alert{")
    assert "kafka_sla_error_budget_left_records{" in exprs["Error budget left"]
    places = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"]) for p in board["panels"]]
    top = sorted((x, w) for x, y, w in places if y == 0)
    assert [sum(w for _, w in top[:n]) for n in range(len(top))] == [x for x, _ in top]
