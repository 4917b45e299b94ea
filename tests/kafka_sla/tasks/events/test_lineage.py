"""What lineage is told of the assets: Airflow knows their addresses through the installed package."""

from __future__ import annotations

import pytest

from kafka_sla.model.tables import CONSUMER_LATENCY, METRICS
from kafka_sla.tasks.events import lineage
from kafka_sla.tasks.events.assets import TABLES, burn_asset, miss_asset


def test_airflow_finds_our_addresses_and_what_translates_them() -> None:
    """Airflow itself checks what the package says of itself, and drops what it cannot import."""
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    found = ProvidersManagerTaskRuntime()

    assert found.asset_uri_handlers["kafka-sla"] is lineage.sanitize
    assert found.asset_to_openlineage_converters["kafka-sla"] is lineage.dataset


def test_every_asset_has_an_address_that_airflow_takes_as_it_is() -> None:
    assets = [*TABLES, miss_asset("payments / 30 s, 100 %"), burn_asset("payments / 30 s, 100 %")]

    assert [asset.normalized_uri for asset in assets] == [asset.uri for asset in assets]


def test_a_table_is_named_with_its_contract_and_a_promise_by_its_own_name() -> None:
    assert [lineage.named(asset.uri) for asset in TABLES] == [("kafka-sla://tables", t.name, t) for t in METRICS]
    assert ("kafka-sla://tables", "consumer_latency", CONSUMER_LATENCY) in map(lineage.named, (a.uri for a in TABLES))
    name = "payments / 30 s, 100 %"
    assert lineage.named(miss_asset(name).uri) == ("kafka-sla://misses", name, None)
    assert lineage.named(burn_asset(name).uri) == ("kafka-sla://burns", name, None)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("kafka-sla://tables/consumer_latecny", "no such table; there are .*consumer_latency"),
        ("kafka-sla://misses/", "use kafka-sla://tables/<table>, kafka-sla://misses/<SLA> or kafka-sla://burns/<SLA>"),
        (
            "kafka-sla://miss/payments",
            "use kafka-sla://tables/<table>, kafka-sla://misses/<SLA> or kafka-sla://burns/<SLA>",
        ),
    ],
)
def test_a_dag_that_waits_for_what_cannot_be_does_not_load(uri: str, told: str) -> None:
    from airflow.sdk import Asset

    with pytest.raises(ValueError, match=told):
        Asset(name="wanted", uri=uri)
