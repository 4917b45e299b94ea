"""A chain whose second stage becomes slow, as the pages, the API and the metrics show it: in the same words."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kafka_sla.chained import LATE, NAME, NOW, UNKNOWN, Chained, built
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import whole_minute


@pytest.fixture(scope="module")
def chained(reader: Asker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chained]:
    folder = tmp_path_factory.mktemp("chained")
    world = built(folder, whole_minute())
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KAFKA_SLA_CONFIG", str(folder / "kafka_sla.yml"))
        connection = {"conn_type": "sqlite", "host": world.store.url.database}
        environment.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", json.dumps(connection))
        yield world


def words(page: str) -> str:
    return " ".join(page.split())


def test_the_pages_say_the_same(reader: Asker, chained: Chained) -> None:
    page = words(reader.get(f"/slas/{NAME}").text)

    assert "Every record passes all 3 stages within 1 min" in page
    assert NOW in page
    assert LATE in words(reader.get(f"/misses/{chained.miss.id}").text)


def test_the_api_tells_what_each_stage_adds(reader: Asker, chained: Chained) -> None:
    found = reader.json(f"/api/v1/slas/{NAME}/chain")

    assert (found["slowest_stage"], found["latency_low_ms"], found["latency_high_ms"]) == (2, 75_000, None)
    assert [(s["stage"], s["added_low_ms"], s["added_high_ms"]) for s in found["stages"]] == [
        (1, 1_000, 2_000),
        (2, 70_000, 80_000),
        (3, 500, 900),
    ]
    assert found["text"] == f"1 min 15 s or more ({UNKNOWN}); {NOW}"


def test_metrics_tell_what_each_stage_adds(reader: Asker, chained: Chained) -> None:
    text = reader.get("/metrics").text
    low, high = (
        {
            s.labels["stage"]: s.value
            for family in text_string_to_metric_families(text)
            for s in family.samples
            if s.name == f"kafka_sla_chain_stage_{bound}_seconds"
        }
        for bound in ("low", "high")
    )

    assert (low, high) == ({"1": 1, "2": 70, "3": 0.5}, {"1": 2, "2": 80, "3": 0.9})
