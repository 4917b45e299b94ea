"""The Airflow run that a task belongs to: its request, its configuration, its address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from airflow.sdk import get_current_context

from kafka_sla.airflow_versions import airflow_address, variable
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Interval
from kafka_sla.tasks.connections import store_of
from kafka_sla.tasks.dag_config import configuration_path
from kafka_sla.tasks.run_plan import Frozen, Request


def request_of_run(every: timedelta, watches: bool) -> Request:
    """The run as Airflow describes it."""
    context = get_current_context()
    run, params = context["dag_run"], context["params"]
    return Request(
        every=every,
        watches=watches,
        run_after=run.run_after,
        backfill=run.run_type == "backfill",
        data_interval=data_interval(),
        start=_instant(params, "from"),
        end=_instant(params, "to"),
        clusters=tuple(params["clusters"] or ()),
        slas=tuple(params["slas"] or ()),
        tell=params.get("notify", "auto"),
        stored=params["facts"] == "stored",
    )


def data_interval() -> Interval | None:
    """The run's data interval; a run that was triggered without a logical date has none."""
    context = get_current_context()
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    return Interval(plain(start), plain(end)) if start and end and start < end else None


def read_settings() -> tuple[Settings, Frozen]:
    """The configuration file as it is now, kept in the store for the run's other tasks; for its first task only."""
    from kafka_sla.ledger.ledger import Ledger

    settings = load_settings(configuration_path(get_current_context()["dag"].fileloc), variable)
    store = settings.store_connection
    return settings, Frozen(store=store, configuration=Ledger(store_of(store)).configurations.freeze(settings))


def frozen(of: Frozen) -> tuple[Settings, Store]:
    """The configuration and the store of the run, whatever the file says by now."""
    from kafka_sla.ledger.ledger import Ledger

    store = store_of(of["store"])
    return Ledger(store).configurations.frozen(of["configuration"]), store


def run_url(settings: Settings) -> str:
    """Where the Airflow UI shows this run."""
    context = get_current_context()
    return address_of(settings.base_url, context["dag"].dag_id, context["run_id"])


def address_of(base_url: str | None, dag_id: str, run_id: str) -> str:
    """Where the Airflow UI shows a run; without a configured base URL, at the one that Airflow knows of itself."""
    return f"{airflow_address(base_url) or 'http://localhost:8080'}/dags/{dag_id}/runs/{quote(run_id, safe='')}"


def plain(at: datetime) -> datetime:
    """Airflow's pendulum instants as plain UTC datetimes."""
    return datetime.fromtimestamp(at.timestamp(), UTC)


def _instant(params: Mapping[str, Any], name: str) -> datetime | None:
    if not (text := params[name]):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRequest(f"{name} is {text!r}, which is no time; write it as 2026-11-21T10:00:00Z") from error
