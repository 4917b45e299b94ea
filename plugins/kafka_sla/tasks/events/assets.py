"""Airflow assets that other people's DAGs may wait for: published tables, misses and burns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias, Context

from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import METRICS
from kafka_sla.sla.burn import Burn

MISSES = AssetAlias("kafka_sla_misses")
"""Every opened and recovered miss of any SLA is an event of this alias, and of the asset of its SLA."""

BURNS = AssetAlias("kafka_sla_burns")
"""The same of every burn of an error budget that begins and is over."""


def table_asset(name: str) -> Asset:
    """An event each time an interval of the metric table is published; its extra names interval, clusters and load."""
    return Asset(f"kafka_sla_{name}", uri=f"kafka-sla://tables/{name}")


def miss_asset(sla: str) -> Asset:
    """An event for each opened and recovered miss of the SLA; its extra says which miss."""
    return Asset(f"kafka_sla_misses of {sla}", uri=f"kafka-sla://misses/{quote(sla, safe='')}")


def burn_asset(sla: str) -> Asset:
    """An event for each burn of the SLA's error budget that begins and that is over; its extra says which burn."""
    return Asset(f"kafka_sla_burns of {sla}", uri=f"kafka-sla://burns/{quote(sla, safe='')}")


TABLES = tuple(table_asset(table.name) for table in METRICS)


def say_published(context: Context, interval: Interval, found: dict[str, str]) -> None:
    """Tell with the events of TABLES, which the running task has as outlets, what was published."""
    extra = {"start": interval.start.isoformat(), "end": interval.end.isoformat(), **found}
    for asset in TABLES:
        context["outlet_events"][asset].extra = dict(extra)


def announcer(context: Context) -> Callable[[AlertMessage], None]:
    """What the pipeline calls for each alert that opened or ended; the running task has MISSES and BURNS as outlets."""

    def announce(message: AlertMessage) -> None:
        for report in message.reports:
            alert, is_open = report.alert, message.state == "open"
            extra = {
                "sla": alert.sla,
                "start": alert.start.isoformat(),
                "end": alert.end.isoformat() if alert.end else None,
                "end_reason": "" if is_open else alert.end_reason,
                "cause": alert.miss.evidence.get("sentence") if alert.miss else None,
            }
            if alert.burn:
                kind, of_burn = "began" if is_open else "over", _describe_burn(alert.burn)
                extra |= {"kind": kind, "burn_id": report.thread, **of_burn}
                context["outlet_events"][BURNS].add(burn_asset(alert.sla), extra=extra)
            elif alert.miss:
                kind, miss = "opened" if is_open else "recovered", alert.miss
                extra |= {"kind": kind, "miss_id": report.thread, "cluster": miss.cluster}
                extra |= {"worst_latency_ms": miss.worst_latency_ms}
                context["outlet_events"][MISSES].add(miss_asset(alert.sla), extra=extra)

    return announce


def _describe_burn(burn: Burn) -> dict[str, Any]:
    return {"cluster": burn.cluster, "severity": burn.severity, "burn_rate": burn.burn_rate}
