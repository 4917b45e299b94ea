"""Names that only some of the supported Airflows (3.1 to 3.3) have, or that moved between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, AirflowSkipException, conf
from airflow.sdk import Connection as AirflowConnection
from airflow.sdk import Variable
from airflow.sdk.definitions.deadline import DeadlineAlert

from kafka_sla.model.entities import Connection

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # 3.1
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

try:
    from airflow.sdk.definitions.callback import AsyncCallback
    from airflow.sdk.definitions.deadline import BaseDeadlineReference
except ImportError:  # 3.1 knows the deadlines that it ships, and no others
    from airflow.sdk.definitions.deadline import AsyncCallback  # type: ignore[attr-defined]

    BaseDeadlineReference = None  # type: ignore[assignment,misc]

__all__ = [
    "AirflowNotFoundException",
    "AirflowSkipException",
    "AsyncCallback",
    "BaseDeadlineReference",
    "CronDataIntervalTimetable",
    "DeadlineAlert",
    "airflow_address",
    "airflow_connection",
    "conf",
    "deadline",
    "not_tried_again",
    "variable",
]


def airflow_address(configured: str | None) -> str | None:
    """Where people reach Airflow: as configured here, else as Airflow has it of itself; None where neither says."""
    found = configured or conf.get("api", "base_url", fallback=None)
    return str(found).rstrip("/") if found else None


def variable(name: str) -> str | None:
    """The value of an Airflow variable; None when there is none of that name."""
    found = Variable.get(name, default=None)
    return None if found is None else str(found)


def airflow_connection(conn_id: str) -> Connection:
    """The connection of that id, as this project knows connections. Raises AirflowNotFoundException."""
    found = AirflowConnection.get(conn_id)
    return Connection(
        id=conn_id,
        host=found.host,
        port=found.port,
        login=found.login,
        password=found.password,
        schema=found.schema,
        conn_type=found.conn_type,
        extra=dict(found.extra_dejson),
    )


def not_tried_again(exceptions: Sequence[type[Exception]], reason: str) -> dict[str, Any]:
    """Arguments of tasks that fail at once with these errors. Before 3.3 Airflow tries them again like all others."""
    try:
        from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
    except ImportError:
        return {}
    rule = RetryRule(exception=list(exceptions), action=RetryAction.FAIL, reason=reason)
    return {"retry_policy": ExceptionRetryPolicy(rules=[rule])}


def deadline(reference: Any, interval: timedelta, callback: AsyncCallback, name: str) -> DeadlineAlert:
    """An alert by its name where alerts have one, from 3.3 on."""
    try:
        return DeadlineAlert(reference=reference, interval=interval, callback=callback, name=name)
    except TypeError:
        return DeadlineAlert(reference=reference, interval=interval, callback=callback)
