"""Slow brokers that make many SLAs miss at once: the SLAs, their misses, and a ledger that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import create_engine, select, update

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.schema import ALERT_REPORTS
from kafka_sla.model.entities import Interval, Miss, Patterns, Sla
from tests.kafka_sla.notifications.misses import EVIDENCE, MINUTE, START, miss, promise

RUN = "https://airflow.example.com/dags/kafka_sla/runs/scheduled__2026-03-02T10:00:00+00:00"
BROKER = "every pair of broker 3 takes about 1200 ms, the others 2 ms"
SLOW: dict[str, Any] = {
    **EVIDENCE,
    "cause": "slow_broker",
    "broker_verdict": "slow_broker",
    "broker_reason": BROKER,
    "sentence": f"Brokers were slow: {BROKER} (confidence 99%), unlike before.",
}
OVER = miss()
OPEN = replace(OVER, state="open", end=None, settled_at=None)
INTERVAL = Interval(START + 20 * MINUTE, START + 25 * MINUTE)


def slas(number: int) -> list[Sla]:
    """Three of five are of team Billing, the others of team Shop."""
    return [
        promise(
            name=f"billing.alerts-{n:03}",
            groups=Patterns((f"group-{n:03}",)),
            team=team,
            runbook=runbook,
            recipients=(f"{team.lower()}-oncall@example.com",),
        )
        for n in range(number)
        for team, runbook in [("Billing", "https://wiki.example.com/billing") if n % 5 < 3 else ("Shop", "")]
    ]


def slow(sla: Sla, *, end: bool = False, **evidence: Any) -> Miss:
    """The miss of that SLA; its group stands in its name."""
    return replace(
        OVER if end else OPEN,
        id=f"m-{sla.name}",
        sla=sla.name,
        cluster=sla.cluster,
        worst_group=sla.groups.include[0],
        evidence={**SLOW, **evidence},
    )


def judged(ledger: Ledger, slas: Sequence[Sla], misses: Sequence[Miss]) -> None:
    """Each SLA has this miss and no other."""
    for sla, found in zip(slas, misses, strict=True):
        ledger.verdicts.replace(sla, INTERVAL, [], lambda *_, found=found: [found])  # type: ignore[misc]


def minutes_pass(store: Store, minutes: int) -> None:
    """All that was sent so far was sent that much earlier."""
    t = ALERT_REPORTS.c
    with create_engine(store.url).begin() as connection:
        for seq, at in connection.execute(select(t.seq, t.opened_at).where(t.opened_at.is_not(None))).all():
            earlier = at - timedelta(minutes=minutes)
            connection.execute(update(ALERT_REPORTS).where(t.seq == seq).values(opened_at=earlier))
