"""A configuration that refers to an Airflow variable: pages go by what the variable holds now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka_sla.web.conftest import Asker, Served

NAME = "payments within 30 seconds"


def test_pages_follow_an_airflow_variable_that_the_configuration_refers_to(
    reader: Asker, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.variable import Variable

    config = tmp_path / "kafka_sla.yml"
    said = "Card payments are booked while the customer waits."
    config.write_text(served.config.read_text().replace(said, '"${var:payments.promise}"'))
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(config))

    assert "there is no Airflow variable payments.promise" in reader.get("/api/v1/slas").text
    seen = []
    try:
        for value in ("Booked at once.", "Booked within the hour."):
            Variable.set("payments.promise", value)
            seen.append(next(sla for sla in reader.json("/api/v1/slas") if sla["name"] == NAME)["description"])
    finally:
        Variable.delete("payments.promise")
    assert seen == ["Booked at once.", "Booked within the hour."]
