"""Airflow assets that other people's DAGs may wait for: published tables, misses and burns. Knows no step and no
store."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias, Context

from kafka_sla.ledger.notices.burn_notices import BurnNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import METRICS

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


def announcer(context: Context) -> Callable[[Notice], None]:
    """What the pipeline calls for each miss that nobody's DAG has heard of; the running task has MISSES as outlet."""

    def announce(notice: Notice) -> None:
        miss = notice.miss
        extra = {
            "kind": notice.kind,
            "miss_id": notice.thread or miss.id,
            "sla": miss.sla,
            "cluster": miss.cluster,
            "start": miss.start.isoformat(),
            "end": miss.end.isoformat() if miss.end else None,
            "state": miss.state,
            "end_reason": miss.end_reason,
            "worst_latency_ms": miss.worst_latency_ms,
            "cause": miss.evidence.get("sentence"),
        }
        context["outlet_events"][MISSES].add(miss_asset(miss.sla), extra=extra)

    return announce


def burn_announcer(context: Context) -> Callable[[BurnNotice], None]:
    """The same for burns; the running task has BURNS as outlet."""

    def announce(notice: BurnNotice) -> None:
        burn = notice.burn
        extra = {
            "kind": notice.kind,
            "burn_id": notice.thread or burn.id,
            "sla": burn.sla,
            "cluster": burn.cluster,
            "severity": burn.severity,
            "start": burn.start.isoformat(),
            "end": burn.end.isoformat() if burn.end else None,
            "burn_rate": burn.burn_rate,
            "cause": notice.behind.evidence.get("sentence") if notice.behind else None,
        }
        context["outlet_events"][BURNS].add(burn_asset(burn.sla), extra=extra)

    return announce
