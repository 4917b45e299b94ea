"""A login that sees nothing of a cluster."""

from __future__ import annotations

import json

import pytest

from demo.broker import Cluster
from kafka_sla.cli.main import main


def test_of_topics_that_are_not_seen_nothing_counts_as_readable(
    kafka_sasl: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = {"conn_type": "kafka", "extra": kafka_sasl.client("reader")}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PROD", json.dumps(connection))

    assert main(["check", "--connection", "kafka_prod"]) == 1
    said = capsys.readouterr().out
    assert "FAIL no topic matches, or none may be seen" in said
    assert "of the topics can be read" not in said
    assert "note the settings of the topics were not tried: no topic is visible\n" in said
