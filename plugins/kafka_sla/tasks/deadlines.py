"""Airflow's Deadline Alert for scheduled runs that are late. Knows Airflow, not what is published or mailed.

The plugin imports this module in every process of Airflow, so it imports nothing of weight.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kafka_sla.airflow_versions import AsyncCallback, BaseDeadlineReference, DeadlineAlert, deadline
from kafka_sla.model.entities import FreshnessAlert, Interval

if TYPE_CHECKING:
    from kafka_sla.config.settings import Settings

log = logging.getLogger(__name__)


class ScheduledIntervalEnd(BaseDeadlineReference or object):  # type: ignore[misc]
    """The end of a scheduled run's interval. Backfills and runs by hand have no deadline: nobody waits for them."""

    required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(self, *, session: Any, dag_id: str, run_id: str) -> datetime | None:
        from airflow.models.dagrun import DagRun
        from sqlalchemy import select

        run = select(DagRun.data_interval_end).where(
            DagRun.dag_id == dag_id, DagRun.run_id == run_id, DagRun.run_type == "scheduled"
        )
        found: datetime | None = session.scalar(run)
        return found


def late_alert(settings: Settings | None) -> DeadlineAlert | None:
    """The alert that the configuration asks for. The callback gets all of it: a triggerer reads no configuration."""
    if settings is None or settings.freshness_alert is None:
        return None
    if BaseDeadlineReference is None:
        log.warning("freshness_alert needs Airflow 3.2 or newer; nobody is mailed about late runs")
        return None
    asked = {
        "recipients": list(settings.freshness_alert.recipients),
        "after_ms": settings.freshness_alert.after_ms,
        "clusters": [cluster.name for cluster in settings.clusters],
        "smtp_connection": settings.smtp_connection,
        "store_connection": settings.store_connection,
        "base_url": settings.base_url,
    }
    after = timedelta(milliseconds=settings.freshness_alert.after_ms)
    return deadline(ScheduledIntervalEnd(), after, AsyncCallback(tell_late, kwargs=asked), "late")


async def tell_late(context: dict[str, Any], **asked: Any) -> str:
    """Airflow's triggerer calls this when a run is late; mail server and store are waited for in a thread."""
    return await asyncio.to_thread(_tell, context["dag_run"], **asked)


def _tell(
    run: dict[str, Any],
    *,
    recipients: Sequence[str],
    after_ms: int,
    clusters: Sequence[str],
    smtp_connection: str,
    store_connection: str,
    base_url: str | None,
) -> str:
    from kafka_sla.notifications.late_run_email import LateRun
    from kafka_sla.notifications.late_runs import tell_if_late
    from kafka_sla.tasks.connections import connection, store_of
    from kafka_sla.tasks.run_context import address_of

    url = address_of(base_url, run["dag_id"], run["dag_run_id"])
    interval = Interval(_instant(run["data_interval_start"]), _instant(run["data_interval_end"]))
    late = LateRun(run["dag_id"], run["dag_run_id"], interval, run["state"], url)
    freshness_alert, smtp = FreshnessAlert(tuple(recipients), after_ms), connection(smtp_connection)
    told = tell_if_late(lambda: store_of(store_connection), freshness_alert, late, clusters, smtp)
    log.info("%s: %s", run["dag_run_id"], told)
    return told


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
