"""Downloads and the figures for Prometheus."""

from __future__ import annotations

import codecs
import csv
import html
import io
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import csv as arrow_csv

from kafka_sla.model.tables import TABLES
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import HOSTILE

ROOT = Path(__file__).resolve().parents[4]
PAYMENTS = "payments within 30 seconds"


def test_verdicts_come_as_csv_and_as_parquet(reader: Asker) -> None:
    text = reader.get(f"/api/v1/slas/{PAYMENTS}/windows")
    binary = reader.get(f"/api/v1/slas/{PAYMENTS}/windows", format="parquet")

    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert 180 == len(rows) == pq.read_table(io.BytesIO(binary.content)).num_rows
    assert {PAYMENTS} == {row["sla"] for row in rows}
    assert 'attachment; filename="sla_windows.csv"' == text.headers["content-disposition"]


def test_a_metric_table_comes_by_cluster(reader: Asker) -> None:
    answer = reader.get("/api/v1/tables/consumer_latency", cluster="dr", format="parquet")

    rows = pq.read_table(io.BytesIO(answer.content))
    assert {"dr"} == set(rows["cluster"].to_pylist())
    assert 160 * 16 == rows.num_rows


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_span_without_rows_is_a_file_without_rows_for_every_table(reader: Asker, form: str) -> None:
    before_everything = {"from": "2001-01-01T00:00Z", "to": "2001-01-02T00:00Z"}

    answers = {name: reader.get(f"/api/v1/tables/{name}", format=form, **before_everything) for name in TABLES}

    assert dict.fromkeys(TABLES, 200) == {name: answer.status_code for name, answer in answers.items()}
    for name, answer in answers.items():
        assert (0, TABLES[name].names) == _rows_and_columns(answer.content, form, TABLES[name].names)


def _rows_and_columns(content: bytes, form: str, names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """JSON without rows names no columns."""
    if form == "json":
        return len(json.loads(content)), names
    rows = pq.read_table(io.BytesIO(content)) if form == "parquet" else arrow_csv.read_csv(io.BytesIO(content))
    return rows.num_rows, tuple(rows.column_names)


def test_what_the_page_draws_comes_as_csv(reader: Asker) -> None:
    rows = list(csv.DictReader(io.StringIO(reader.get(f"/api/v1/slas/{PAYMENTS}/timeline.csv").text)))

    assert {"start", "p99_ms", "worst_latency_ms", "good", "produced_per_s"} <= set(rows[0])
    assert 288 <= len(rows) <= 290


def test_what_the_page_offers_as_csv_tells_excel_that_it_is_utf_8_and_what_programs_ask_for_does_not(
    reader: Asker,
) -> None:
    page = reader.get(f"/slas/{PAYMENTS}").text
    links = [html.unescape(link) for link in re.findall(r'href="/kafka-sla([^"]+)">\w+ as CSV<', page)]
    plain = [re.sub("&bom=[^&]*", "", link) for link in links]

    assert [True, True] == [reader.get(link).content.startswith(codecs.BOM_UTF8) for link in links]
    assert [False, False] == [reader.get(link).content.startswith(codecs.BOM_UTF8) for link in plain]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_only_csv_begins_with_a_byte_order_mark(reader: Asker, form: str) -> None:
    asked = {"format": form, "bom": "true", "from": "2001-01-01", "to": "2001-01-02"}

    assert not reader.get("/api/v1/tables/sla_misses", **asked).content.startswith(codecs.BOM_UTF8)


def test_a_table_that_does_not_exist_is_named_with_those_that_do(reader: Asker) -> None:
    answer = reader.get("/api/v1/tables/secrets")

    assert (404, True) == (answer.status_code, "consumer_latency" in answer.json()["detail"])


def test_more_rows_than_the_web_server_can_hold_are_refused(reader: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sla.web.api.downloads.MOST_ROWS", 1_000)

    answer = reader.get("/api/v1/tables/consumer_latency")

    assert (413, True) == (answer.status_code, "kafka-sla export" in answer.json()["detail"])


def test_verdicts_are_counted_as_they_are_not_as_they_might_be(reader: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small world judged three hours of five years."""
    monkeypatch.setattr("kafka_sla.web.api.downloads.MOST_ROWS", 200)
    long = {"from": f"{datetime.now(UTC) - timedelta(days=5 * 365):%Y-%m-%d}"}

    rows = list(csv.DictReader(io.StringIO(reader.get(f"/api/v1/slas/{PAYMENTS}/windows", **long).text)))

    assert 180 == len(rows)
    assert sorted(row["window_start"] for row in rows) == [row["window_start"] for row in rows]


def test_more_verdicts_than_the_web_server_can_hold_are_refused(reader: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sla.web.api.downloads.MOST_ROWS", 179)

    answer = reader.get(f"/api/v1/slas/{PAYMENTS}/windows")

    assert (413, True) == (answer.status_code, "180 rows, which is more than 179 rows;" in answer.json()["detail"])


def samples(reader: Asker, **params: Any) -> dict[str, list[Any]]:
    answer = reader.get("/metrics", **params)
    assert 200 == answer.status_code
    return {family.name: family.samples for family in text_string_to_metric_families(answer.text)}


def test_our_own_metrics_keep_to_the_conventions_of_prometheus(reader: Asker) -> None:
    families = list(text_string_to_metric_families(reader.get("/metrics").text))
    ours = [family for family in families if family.name.startswith("kafka_sla_")]

    assert len({family.name for family in families}) == len(families)
    assert [] == [family.name for family in families if not family.documentation or family.type == "unknown"]
    assert [] == [family.name for family in ours if family.name.endswith(("_total", "_ms")) and family.type == "gauge"]
    labels = {label for family in ours for sample in family.samples for label in sample.labels}
    assert "sla" in labels
    assert set() == labels & {"le", "quantile", "job", "instance"}, "Prometheus gives these a meaning of its own"


def test_prometheus_gets_state_attainment_budget_and_quantiles(reader: Asker) -> None:
    found = samples(reader)

    states = {(s.labels["sla"], s.labels["state"]) for s in found["kafka_sla_state"] if s.value}
    assert ("orders within 5 minutes", "missed") in states
    assert (HOSTILE, "met") in states
    assert 6 == len(states), "each SLA is in one state"
    percentiles = {
        s.labels["percentile"]: s.value for s in found["kafka_sla_latency_seconds"] if s.labels["sla"] == PAYMENTS
    }
    assert percentiles["50"] <= percentiles["95"] <= percentiles["99"]
    assert {"kafka_sla_attainment_ratio", "kafka_sla_error_budget_left_seconds", "kafka_sla_burn_rate"} <= set(found)
    alerts = {(s.labels["sla"], s.labels["severity"]): s.value for s in found["kafka_sla_burn_alert"]}
    assert {("orders within 5 minutes", "page"), ("orders within 5 minutes", "ticket")} == set(alerts)
    assert 1 == alerts["orders within 5 minutes", "page"]
    assert [HOSTILE] == [s.labels["sla"] for s in found["kafka_sla_error_budget_left_records"]]
    assert HOSTILE not in {s.labels["sla"] for s in found["kafka_sla_error_budget_left_seconds"]}
    (low, high) = (
        next(s.value for s in found[f"kafka_sla_attainment_{bound}_ratio"] if s.labels["sla"] == HOSTILE)
        for bound in ("low", "high")
    )
    assert low < high


def test_prometheus_gets_when_each_sla_will_have_caught_up(reader: Asker) -> None:
    found = samples(reader)
    low, estimate, high = (
        {s.labels["sla"]: s.value for s in found[f"kafka_sla_catch_up{bound}_seconds"]}
        for bound in ("_low", "", "_high")
    )

    assert "search index" not in estimate, "what is not known is left out"
    assert (low[PAYMENTS], estimate[PAYMENTS], high[PAYMENTS]) == (0, 0, 0)
    assert 0 < low["orders within 5 minutes"] <= estimate["orders within 5 minutes"] <= high["orders within 5 minutes"]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("kafka_consumergroup_group_lag", {"cluster_name", "group", "topic", "partition"}),
        ("kafka_consumergroup_group_max_lag_seconds", {"cluster_name", "group"}),
        ("burrow_kafka_consumer_partition_lag", {"cluster", "consumer_group", "topic", "partition"}),
        ("kminion_kafka_consumer_group_topic_lag", {"cluster", "group_id", "topic_name"}),
    ],
)
def test_dashboards_of_other_exporters_find_their_names(reader: Asker, name: str, labels: set[str]) -> None:
    found = samples(reader)[name]

    assert found
    assert labels == set(found[0].labels)


def test_sums_are_those_of_the_partitions(reader: Asker) -> None:
    found = samples(reader)
    single = [s for s in found["kafka_consumergroup_group_lag"] if s.labels["group"] == "payments-service"]
    (total,) = [s for s in found["kafka_consumergroup_group_sum_lag"] if s.labels["group"] == "payments-service"]

    assert 6 == len(single)
    assert sum(s.value for s in single) == total.value


@pytest.fixture
def damaged(reader: Asker) -> Iterator[Path]:
    """A truncated file of the cluster prod's latency."""
    store = Path(os.environ["KAFKA_SLA_CONFIG"]).parent / "store"
    path = store / "warehouse" / "staging" / "load0000" / "consumer_latency" / "part-00000.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-1_000])
    yield path
    path.write_bytes(content)


def test_a_truncated_file_costs_its_own_series_only_and_is_counted(reader: Asker, damaged: Path) -> None:
    found = samples(reader)

    assert {"dr"} == {s.labels["cluster_name"] for s in found["kafka_consumergroup_group_lag"]}
    assert {"prod", "dr"} == {s.labels["cluster"] for s in found["burrow_kafka_consumer_status"]}
    assert [1.0] == [s.value for s in found["kafka_sla_damaged_files"]]


def test_no_damage_is_counted_as_none(reader: Asker) -> None:
    assert [0.0] == [s.value for s in samples(reader)["kafka_sla_damaged_files"]]


def test_a_download_says_which_file_is_damaged_instead_of_leaving_rows_out(reader: Asker, damaged: Path) -> None:
    refused = reader.get("/api/v1/tables/consumer_latency", cluster="prod")

    assert (503, True) == (refused.status_code, f"{damaged} cannot be read" in refused.json()["detail"])
    assert 200 == reader.get("/api/v1/tables/consumer_latency", cluster="dr").status_code


def test_series_of_partitions_can_be_left_out(reader: Asker) -> None:
    found = samples(reader, partitions="false")

    assert "kafka_consumergroup_group_lag" not in found
    assert "kafka_consumergroup_group_sum_lag" in found


def test_the_grafana_dashboard_asks_for_series_and_labels_that_there_are(reader: Asker) -> None:
    board = json.loads((ROOT / "docs/how-to/kafka-sla-grafana.json").read_text())
    labels = {name: set(found[0].labels) for name, found in samples(reader).items() if found}
    asked = [(target["expr"], target.get("legendFormat", "")) for p in board["panels"] for target in p["targets"]]
    asked += [(v["query"]["query"], "") for v in board["templating"]["list"] if v["type"] == "query"]

    series = [
        (name, set(re.findall(r"(\w+)\s*[=!]", wanted)))
        for query, _ in asked
        for name, wanted in re.findall(rf"\b({_NAMES})\b(?:\{{([^}}]*)\}})?", query)
    ]
    assert len({name for name, _ in series}) >= 12
    assert [one for one in series if not one[1] <= labels.get(one[0], set())] == []
    for query, legend in asked:
        there = set.intersection(*(labels[name] for name in re.findall(_NAMES, query)))
        shown = re.findall(r"\{\{(\w+)\}\}", legend) + re.findall(r"label_values\([^,]+, (\w+)\)", query)
        shown += [label for listed in re.findall(r"by \(([^)]*)\)", query) for label in listed.split(", ")]
        assert set(shown) <= there, f"{query} has {sorted(there)}"


def test_the_alerting_rules_ask_for_series_and_labels_that_there_are(reader: Asker) -> None:
    (group,) = yaml.safe_load((ROOT / "docs/how-to/kafka-sla-alerts.rules.yml").read_text())["groups"]
    labels = {name: set(found[0].labels) for name, found in samples(reader).items() if found}

    for rule in group["rules"]:
        names = re.findall(_NAMES, rule["expr"])
        assert names
        assert set(names) <= set(labels), rule["alert"]
        there = set.union(*(labels[name] for name in names))
        used = re.findall(r"(\w+)=", rule["expr"]) + re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))
        assert set(used) <= there, f"{rule['alert']} has {sorted(there)}"


_NAMES = r"(?:kafka|burrow|kminion)_\w+"


def test_the_grafana_dashboard_filters_by_its_own_variables(reader: Asker) -> None:
    board = json.loads((ROOT / "docs/how-to/kafka-sla-grafana.json").read_text())
    known = {variable["name"] for variable in board["templating"]["list"]}

    used = set(re.findall(r"\$\{?(\w+)", json.dumps([board["panels"], board["templating"]])))

    assert used - {"__all", "__rate_interval", "__interval", "__field"} == known
