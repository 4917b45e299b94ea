from __future__ import annotations

from typing import Any

import pytest


def trigger(parsed: Any, dag_id: str, conf: dict[str, Any]) -> Any:
    """As the API server triggers a run from the form."""
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import sync_bag_to_db
    from airflow.utils.types import DagRunTriggeredByType

    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(parsed, "dags-folder", None)
    return trigger_dag(dag_id, triggered_by=DagRunTriggeredByType.UI, triggering_user_name="ann", conf=conf)


@pytest.mark.parametrize("dag_id", ["kafka_sla", "kafka_sla_history", "kafka_sla_report"])
def test_a_form_left_as_it_is_starts_a_run(parsed: Any, dag_id: str) -> None:
    assert trigger(parsed, dag_id, {}).conf == {}


def test_a_filled_form_starts_a_run(parsed: Any) -> None:
    conf = {
        "from": "2026-11-20T10:00:00+00:00",
        "to": "2026-11-20T11:00:00+00:00",
        "clusters": ["prod"],
        "slas": ["payments within 30 seconds"],
        "notify": "never",
        "driver_memory": "2g",
    }
    assert trigger(parsed, "kafka_sla", conf).conf == conf


def test_the_form_names_the_time_zone_that_its_picker_uses(parsed: Any) -> None:
    """Airflow's picker takes times in the zone of its pages: ten o'clock in Berlin is nine in UTC."""
    fields = parsed.dags["kafka_sla"].params

    for name in ("from", "to"):
        schema = fields.get_param(name).schema
        assert "UTC" not in schema["title"]
    assert "in the time zone that these pages are set to" in str(fields.get_param("from").description)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("from", "yesterday"),
        ("clusters", ["nowhere"]),
        ("slas", ["unheard of"]),
        ("notify", "maybe"),
        ("driver_memory", "plenty"),
        ("driver_memory", "1g --conf spark.x=y"),
    ],
)
def test_a_wrong_value_is_refused_before_a_run_begins(parsed: Any, field: str, value: object) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises((ParamValidationError, ValueError), match=field):
        trigger(parsed, "kafka_sla", {field: value})


def test_every_field_explains_itself(parsed: Any) -> None:
    for dag in parsed.dags.values():
        for name in dag.params:
            param = dag.params.get_param(name)
            assert param.description and param.schema["title"] and param.schema["section"]


def test_the_form_offers_the_names_of_the_configuration(parsed: Any) -> None:
    offered = parsed.dags["kafka_sla"].params.get_param("slas").schema["examples"]

    assert offered == ["payments within 30 seconds", "orders within 5 minutes"]


def test_history_does_not_ask_about_mails(parsed: Any) -> None:
    assert "notify" not in parsed.dags["kafka_sla_history"].params
