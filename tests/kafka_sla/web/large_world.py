"""A company's world for the pages: 300 SLAs of 15 teams, judged from cheap rows, a few of them in every kind of
trouble."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla, SlaWindow, Verdict
from kafka_sla.sla.rollups import SLOT_MS, RecordStats, Rollup, judged

TEAMS = (
    "Payments",
    "Billing",
    "Ledger",
    "Fraud & Risk",
    "Cards",
    "Onboarding",
    "Search",
    "Catalogue",
    "Orders",
    "Warehouse",
    "Shipping",
    "Notifications",
    "Identity",
    "Data Platform",
    "Customer Service",
)
THINGS = (
    "alerts-authorised",
    "events.enriched",
    "invoices-issued",
    "snapshots",
    "refunds-requested",
    "audit.log",
    "customer-updates",
    "exports",
    "price-changes",
    "webhooks",
)
VERSIONS = ("v1", "v2")
HEAD = """\
clusters: {prod-eu-central-1: {}}
defaults: {objective: 99.99%, period: year, max_latency: 30s, for: 5m}
slas:
"""
MINUTE = timedelta(minutes=1)
NEWEST = 10
"""Minutes with a window each; what was before is in slots."""


@dataclass(frozen=True, slots=True)
class Fate:
    """How an SLA fared: its newest verdict, and bad minutes of the hour before."""

    newest: Verdict = "good"
    bad_before: float = 0


FATES = {
    0: Fate("bad"),
    37: Fate("bad", 55),
    74: Fate("good", 58),
    111: Fate("good", 53),
    148: Fate("good", 59),
    185: Fate("good", 52.55),
    222: Fate("unknown"),
    259: Fate("excluded"),
    296: Fate("good", 60),
}
"""By number; the others met their SLA. 52.56 bad minutes spend the budget of a year of 365 days."""


def names() -> Iterator[tuple[str, str, str]]:
    """Team, group and topic of each SLA."""
    for team in TEAMS:
        area = team.lower().replace(" & ", "-").replace(" ", "-")
        for thing in THINGS:
            for version in VERSIONS:
                yield team, f"{area}.{thing}-{version}", f"{area}.{thing}"


def configuration() -> str:
    slas = [
        f'  - {{name: "{group} within 30 seconds", group: {group}, topic: {topic}, team: "{team}"}}'
        for team, group, topic in names()
    ]
    return HEAD + "\n".join(slas) + "\n"


def build(folder: Path, end: datetime) -> tuple[Path, Store]:
    """The configuration file and the store, judged for an hour until `end`, a whole minute."""
    folder.mkdir(parents=True, exist_ok=True)
    config, store = folder / "kafka_sla.yml", Store.embedded(folder / "store")
    config.write_text(configuration())
    ledger = Ledger(store)
    ledger.open(writing=True)
    for number, sla in enumerate(load_settings(config).slas):
        _judge(ledger, sla, FATES.get(number, Fate()), end)
    return config, store


def _judge(ledger: Ledger, sla: Sla, fate: Fate, end: datetime) -> None:
    first = end - NEWEST * MINUTE
    windows = [window(sla, first + n * MINUTE, fate.newest) for n in range(NEWEST)]
    ledger.verdicts.replace(sla, Interval(first, end), windows)
    hour = Interval(first - timedelta(hours=1), first).start.replace(minute=0)
    bad = [
        Rollup(
            Interval(at := hour + n * 5 * MINUTE, at + 5 * MINUTE),
            *_spent(fate.bad_before - 5 * n),
            worst_latency_ms=90_000.0 if fate.bad_before > 5 * n else 2_000.0 + 100 * n,
            max_latency_ms=30_000,
        )
        for n in range(12)
    ]
    newest = judged(Interval(first, end), windows, RecordStats())
    span = Interval(hour, hour + timedelta(hours=3))
    ledger.rollups.replace(sla.name, span, [*bad, newest], SLOT_MS)


def _spent(bad_minutes: float) -> tuple[int, int]:
    bad_ms = round(min(5, max(0, bad_minutes)) * 60_000)
    return SLOT_MS - bad_ms, bad_ms


def window(sla: Sla, start: datetime, verdict: Verdict) -> SlaWindow:
    reason = {"unknown": f"no data for group {sla.name.split()[0]}", "excluded": "maintenance: broker upgrade"}
    worst = {"good": 4_000.0, "bad": 95_000.0}.get(verdict)
    place = {"worst_group": sla.name.split()[0], "worst_topic": "orders", "worst_partition": 3} if worst else {}
    return SlaWindow(
        sla.name,
        Interval(start, start + MINUTE),
        verdict,
        worst is not None,
        reason.get(verdict, ""),
        worst,
        worst,
        worst,
        max_latency_ms=30_000,
        **place,
    )  # type: ignore[arg-type]
