"""A run, or sampling, whose login sees nothing of a cluster: a hidden name fails it; what may be an empty cluster is a
warning."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from demo.broker import Cluster
from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.model.entities import Connection, Interval, floor_time
from kafka_sla.pipeline import steps
from kafka_sla.text.timestamps import instant_text

Captured = pytest.CaptureFixture[str]
NAMED = "{name: named, group: billing.alerts-authorised-v2, topic: prod-eu.payments, max_latency: 30s}"
NAMED_GROUP = "{name: named, group: billing.alerts-authorised-v2, max_latency: 30s}"
CATCH_ALL = '{name: all, group: "*", topic: "*", max_latency: 30s}'


pytestmark = pytest.mark.usefixtures("empty_folder")


def configured(sla: str) -> None:
    """Whatever else other tests left on the broker is not selected."""
    selected = "{connection: kafka_prod, topics: [prod-eu.*], groups: [billing.*]}"
    Path("kafka_sla.yml").write_text(f"clusters: {{prod: {selected}}}\nslas: [{sla}]\n")


def logged_in(broker: Cluster, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"conn_type": "kafka", "extra": broker.client(user)}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PROD", json.dumps(connection))


def newest_minute() -> Interval:
    end = floor_time(datetime.now(UTC), 60_000)
    return Interval(end - timedelta(minutes=1), end)


def run(*more: str) -> int:
    span = newest_minute()
    return main(["run", "--from", instant_text(span.start), "--to", instant_text(span.end), *more])


def snapshot(broker: Cluster, user: str, sla: str) -> dict[str, Any]:
    configured(sla)
    login = Connection("kafka_prod", extra=dict(broker.client(user)))
    settings, store = load_settings("kafka_sla.yml"), Store.embedded(Path("store"))
    return steps.snapshot(settings, store, "prod", lambda _: login, newest_minute(), live=True)


@pytest.mark.parametrize(
    ("sla", "hidden", "right"),
    [
        (NAMED, "the topic 'prod-eu.payments'", "DESCRIBE on the topics"),
        (NAMED_GROUP, "the group 'billing.alerts-authorised-v2'", "DESCRIBE on the groups"),
    ],
    ids=["topic", "group"],
)
def test_a_run_whose_login_may_not_see_what_an_sla_names_fails_and_covers_nothing(
    kafka_sasl: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: Captured, sla: str, hidden: str, right: str
) -> None:
    configured(sla)
    logged_in(kafka_sasl, "reader", monkeypatch)

    assert run("--quiet") == 1
    printed = capsys.readouterr()
    (said,) = printed.err.splitlines()
    assert said.startswith("kafka-sla: cluster 'prod' (connection 'kafka_prod'): no topic is seen")
    assert hidden in said and right in said and printed.out == ""

    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "nothing published" in shown and "1 interval could not be measured" in shown and hidden in shown


@pytest.mark.parametrize(
    ("sla", "hidden"),
    [(NAMED, "the topic 'prod-eu.payments'"), (NAMED_GROUP, "the group 'billing.alerts-authorised-v2'")],
    ids=["topic", "group"],
)
def test_sampling_by_a_login_that_may_not_see_what_an_sla_names_fails_in_the_same_words(
    kafka_sasl: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: Captured, sla: str, hidden: str
) -> None:
    configured(sla)
    logged_in(kafka_sasl, "reader", monkeypatch)
    assert run("--quiet") == 1
    of_the_run = capsys.readouterr().err

    assert main(["sample", "--for", "10m", "--every", "1s", "--quiet"]) == 1, "long before its time"
    printed = capsys.readouterr()

    assert (printed.err, printed.out) == (of_the_run, "")
    assert hidden in printed.err


def test_a_run_and_sampling_that_cannot_tell_a_blind_login_from_an_empty_cluster_warn_even_when_quiet(
    kafka_sasl: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    configured(CATCH_ALL)
    logged_in(kafka_sasl, "reader", monkeypatch)

    assert run("--quiet") == 0
    warning, absent = capsys.readouterr().err.splitlines()
    assert warning.startswith("kafka-sla: warning: cluster prod: 0 topics and 0 groups are seen")
    assert "DESCRIBE on the topics" in warning and "DESCRIBE on the groups" in warning
    assert "does not hold of what was measured: consumer_latency: every group that an SLA names has rows" in absent

    assert main(["sample", "--for", "5s", "--every", "1s", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert set(printed.err.splitlines()) == {warning}
    assert printed.out == "0 new rows\n"


@pytest.mark.parametrize("sla", [NAMED, NAMED_GROUP, CATCH_ALL], ids=["topic", "group", "all"])
def test_what_an_sla_names_need_not_be_there_yet(kafka_sasl: Cluster, sla: str) -> None:
    assert snapshot(kafka_sasl, "admin", sla)["cluster"] == "prod"


def test_of_topics_that_are_not_seen_nothing_counts_as_readable(
    kafka_sasl: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    logged_in(kafka_sasl, "reader", monkeypatch)

    assert main(["check", "--connection", "kafka_prod"]) == 1
    said = capsys.readouterr().out
    assert "FAIL no topic matches, or none may be seen" in said
    assert "of the topics can be read" not in said
    assert "note the settings of the topics were not tried: no topic is visible\n" in said
