"""What the read API says of a small world in which every state occurs."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from statistics import median
from typing import Any

import pytest

from kafka_sla.config.field_types import RESERVED
from kafka_sla.web.app import create_app
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import HOSTILE

PAYMENTS, ORDERS = "payments within 30 seconds", "orders within 5 minutes"


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


def test_every_sla_says_its_state_and_open_misses_come_first(reader: Asker) -> None:
    rows = reader.json("/api/v1/slas")

    assert {
        ORDERS: "missed",
        PAYMENTS: "met",
        "billing by night": "excluded",
        "search index": "unknown",
        "clicks in Berlin": "met",
        HOSTILE: "met",
    } == {row["name"]: row["state"] for row in rows}
    assert ORDERS == rows[0]["name"]
    assert "no data" in by_name(rows)["search index"]["reason"]


def test_a_period_shows_what_was_spent(reader: Asker) -> None:
    period = by_name(reader.json("/api/v1/slas"))[PAYMENTS]["period"]

    assert period["bad_ms"] > 0
    assert period["attainment"] == pytest.approx(period["good_ms"] / (period["good_ms"] + period["bad_ms"]))
    assert 0.001 * (_at(period["end"]) - _at(period["start"])) * 1000 == pytest.approx(period["budget_ms"])
    assert period["budget_ms"] - period["bad_ms"] == period["budget_left_ms"]
    assert (period["met"], period["budget"]) == (None if period["budget_left_ms"] >= 0 else False, _expected(period))


def test_an_open_burn_says_since_when_and_how_fast(reader: Asker) -> None:
    rows = by_name(reader.json("/api/v1/slas"))

    burn = next(burn for burn in rows[ORDERS]["burns"] if burn["severity"] == "page")
    assert ("page", None, 14.4, 3_600_000) == (
        burn["severity"],
        burn["end"],
        burn["alerted_above"],
        burn["long_ms"],
    )
    assert burn["burn_rate"] > 14.4
    assert [] == rows[PAYMENTS]["burns"]
    assert burn in reader.json(f"/api/v1/slas/{ORDERS}/burns")
    page = reader.get(f"/slas/{ORDERS}").text
    assert "of the error budget in this time" in page
    assert '<b class="bad">Page</b> open' in page


def test_an_objective_of_records_over_rolling_days_has_its_budget_in_records(reader: Asker) -> None:
    period = by_name(reader.json("/api/v1/slas"))[HOSTILE]["period"]

    assert ("28d", "records", None, None) == (
        period["period"],
        period["objective_of"],
        period["budget_ms"],
        period["budget_left_ms"],
    )
    assert _at(period["end"]) - _at(period["start"]) == 28 * 86_400
    assert period["end"] == period["as_of"]
    assert period["attainment"] == period["records_attainment"]
    assert period["attainment_low"] < period["attainment"] <= period["attainment_high"]
    assert 0 < period["budget_left_records"] <= period["budget_records"]
    assert ("met", True) == (period["decision"], period["met"])


def _expected(period: dict[str, Any]) -> str:
    spent = period["bad_ms"] / period["budget_ms"]
    elapsed = (_at(period["as_of"]) - _at(period["start"])) / (_at(period["end"]) - _at(period["start"]))
    return "exhausted" if spent > 1 else "at_risk" if spent > max(0.5, elapsed) else "on_track"


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_an_sla_says_when_it_will_have_caught_up_and_its_page_says_the_same(reader: Asker) -> None:
    late, prompt, gone = (reader.json(f"/api/v1/slas/{name}/catch-up") for name in (ORDERS, PAYMENTS, "search index"))

    assert late["state"] in ("catching_up", "never")
    assert late["behind"] > 0
    assert late["slowest"]["lag"] >= late["slowest"]["lag_low"] > 0
    page = html.unescape(reader.get(f"/slas/{ORDERS}").text)
    when, _, because = late["text"].partition(" at the pace ")
    assert f"Caught up: {when}" in page and f"At the pace {because}" in page
    assert (prompt["state"], prompt["text"]) == ("caught_up", "caught up")
    assert (gone["state"], gone["reason"]) == ("unknown", "no data for topic clicks")
    assert "Caught up: not known" in reader.get("/slas/search index").text


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"team": "Orders"}, {ORDERS}),
        ({"cluster": "dr", "team": "Search"}, {"search index", "clicks in Berlin"}),
        ({"group": "payments-service"}, {PAYMENTS}),
        ({"group": "billing.alerts-authorised-v2"}, {"billing by night"}),
        ({"group": "search-index.*"}, {"search index"}),
        ({"group": "search-index.blue"}, {"search index"}),
        ({"topic": "payments"}, {PAYMENTS, "billing by night"}),
        ({"topic": "clicks", "group": "search-index.*"}, {"search index"}),
        ({"topic": "pay"}, set()),
        ({"team": "nobody"}, set()),
    ],
)
def test_slas_are_filtered_by_cluster_group_and_team(reader: Asker, asked: dict[str, str], found: set[str]) -> None:
    assert found == set(by_name(reader.json("/api/v1/slas", **asked)))


def test_a_timeline_has_quantiles_in_order_below_their_maximum(reader: Asker) -> None:
    line = reader.json(f"/api/v1/slas/{PAYMENTS}/timeline")
    rows = [
        row
        for row in zip(line["p50_ms"], line["p95_ms"], line["p99_ms"], line["worst_latency_ms"], strict=True)
        if row[0]
    ]

    assert rows
    assert all(p50 <= p95 <= p99 <= 1.02 * worst for p50, p95, p99, worst in rows)
    assert "slot" == line["resolution"]
    assert {PAYMENTS} == {miss["sla"] for miss in line["misses"]}


def test_verdicts_of_a_step_add_up_to_what_was_judged(reader: Asker) -> None:
    line = reader.json("/api/v1/slas/clicks in Berlin/timeline")
    judged = [sum(row) for row in zip(line["good"], line["bad"], line["excluded"], line["unknown"], strict=True)]

    assert {0.0, 1.0} <= {round(total, 2) for total in judged}
    assert 4 == round(sum(line["unknown"]), 2), "twenty minutes without data are four slots"


def test_zooming_in_shows_windows_and_the_same_worst_latency(reader: Asker) -> None:
    wide = reader.json(f"/api/v1/slas/{ORDERS}/timeline")
    near = reader.json(f"/api/v1/slas/{ORDERS}/timeline", **{"from": _text(wide["end"], -1), "to": wide["end"]})

    assert ("window", 60_000) == (near["resolution"], near["step_ms"])
    assert max(v for v in wide["worst_latency_ms"] if v) == pytest.approx(max(v for v in near["worst_latency_ms"] if v))
    assert max(v for v in wide["p99_ms"] if v) <= max(v for v in near["p99_ms"] if v)


def _text(at: str, hours: int) -> str:
    return datetime.fromtimestamp(_at(at) + 3600 * hours, datetime.fromisoformat(at).tzinfo).isoformat()


def test_rates_tell_what_was_produced_and_consumed(reader: Asker) -> None:
    line = reader.json("/api/v1/slas/clicks in Berlin/timeline", steps=50)

    known = [(c, p) for c, p in zip(line["consumed_per_s"], line["produced_per_s"], strict=True) if c and p]
    # Medians: steps at the edges of what was published are only partly filled.
    assert 800 < median(consumed for consumed, _ in known) < 3_200
    assert median(produced / consumed for consumed, produced in known) == pytest.approx(1, rel=0.1)


def test_the_heat_map_has_a_row_per_partition(reader: Asker) -> None:
    heat = reader.json(f"/api/v1/slas/{ORDERS}/partitions")

    assert 12 == len(heat["partitions"]) == len(heat["worst_latency_ms"])
    assert "orders orders-0" == heat["partitions"][0], "the worst is first"
    assert {len(heat["at_ms"])} == {len(row) for row in heat["worst_latency_ms"]}


def test_misses_carry_cause_and_evidence(reader: Asker) -> None:
    rows = reader.json("/api/v1/misses", sla=ORDERS, state="open")

    (miss,) = rows
    assert miss["end"] is None
    assert miss["evidence"]["cause"] in ("stopped", "produce_rate_jumped", "too_slow", "unclear")
    assert miss == reader.json(f"/api/v1/misses/{miss['id']}")


def test_the_open_miss_is_first_then_the_newest(reader: Asker) -> None:
    found = [(miss["end"] is None, miss["start"]) for miss in reader.json("/api/v1/misses")]

    assert [True, False] == [is_open for is_open, _ in found]
    assert sorted(found, reverse=True) == found


def test_no_sla_can_have_the_name_of_an_address_below_another() -> None:
    below = re.compile(r"(?:/api/v1)?/slas/\{sla:path\}/([^/]+)")
    found = [below.fullmatch(route.path) for route in create_app().routes]  # type: ignore[attr-defined]

    assert set(RESERVED) == {one[1] for one in found if one}


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({"from": "soon"}, 400, "not a time"),
        ({"from": "2026-03-02", "to": "2026-03-01"}, 400, "exchange"),
        ({"from": "2001-01-01"}, 400, "five years"),
        ({"from": "2026-11-01T00:00:00 01:00"}, 400, "write the + of an offset as %2B"),
        ({"to": "2026-11-01 00:00 0100"}, 400, "write the + of an offset as %2B"),
        ({"from": "2026-11-01-05:00"}, 400, "T or a blank stands between date and time of day"),
    ],
)
def test_a_time_that_cannot_be_is_refused_with_what_is_allowed(
    reader: Asker, params: dict[str, str], status: int, words: str
) -> None:
    answer = reader.get("/api/v1/misses", **params)

    assert (status, True) == (answer.status_code, words in answer.json()["detail"])


def test_a_time_is_answered_in_whole_seconds_that_hold_it(reader: Asker) -> None:
    line = reader.json(
        f"/api/v1/slas/{PAYMENTS}/timeline", **{"from": "2026-11-28T05:00:00.2", "to": "2026-11-28T05:00:00.8"}
    )

    assert ("2026-11-28T05:00:00Z", "2026-11-28T05:00:01Z") == (line["start"], line["end"])


@pytest.mark.parametrize("path", ["/api/v1/slas/none such/timeline", "/api/v1/slas/none such", "/api/v1/misses/0123"])
def test_what_is_not_there_is_not_found(reader: Asker, path: str) -> None:
    assert 404 == reader.get(path).status_code


def test_quality_tells_the_newest_load_and_its_quarantined_rows(reader: Asker) -> None:
    rows = reader.json("/api/v1/quality")
    (broken,) = [row for row in rows if not row["success"]]
    kept = reader.json("/api/v1/quality/quarantine", load_id=broken["load_id"], expectation_id=broken["expectation_id"])

    assert (6, 3) == (len(rows), len(kept))
    assert [broken] == reader.json("/api/v1/quality/broken")


def test_coverage_tells_measured_from_reconstructed_and_missing(reader: Asker) -> None:
    days = reader.json("/api/v1/coverage")

    total = {name: sum(day[name] for day in days if day["cluster"] == "prod") for name in ("measured", "reconstructed")}
    assert total["measured"] * 24 == pytest.approx(3, abs=0.1)
    assert total["reconstructed"] == pytest.approx(0, abs=0.01)
    dr = [day for day in days if day["cluster"] == "dr"]
    assert sum(day["measured"] for day in dr) == 0
    assert sum(day["reconstructed"] for day in dr) * 24 == pytest.approx(3 - 1 / 3, abs=0.1)
    for day in days:
        assert sum(
            day[part] for part in ("measured", "reconstructed", "unknown", "missing", "before", "ahead")
        ) == pytest.approx(1, abs=0.001)


def test_time_before_the_first_publication_is_not_missing(reader: Asker) -> None:
    days = reader.json("/api/v1/coverage", **{"from": _text(datetime.now(UTC).isoformat(), -240)})
    older = [day for day in days if day["before"] == 1]

    assert len(older) >= 2 * 9
    assert {0} == {day["missing"] for day in older}
    assert sum(day["missing"] for day in days if day["cluster"] == "prod") * 24 < 0.2


def test_groups_and_topics_are_shown_as_the_configuration_writes_them(reader: Asker) -> None:
    rows = by_name(reader.json("/api/v1/slas"))

    assert ["billing.alerts-authorised-v2"] == rows["billing by night"]["groups"]
    assert ["search-index.*"] == rows["search index"]["groups"]


def test_the_document_of_the_api_names_every_route(reader: Asker) -> None:
    paths = reader.json("/api/v1/openapi.json")["paths"]

    assert {"/api/v1/slas", "/api/v1/slas/{sla}/timeline", "/api/v1/misses/{miss_id}"} <= set(paths)
