"""Verdicts of many SLAs over what is published: judged together, none of them in the way of another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SlaWindow, Stage, SteadyState
from kafka_sla.pipeline.verdicts import verdicts
from tests.kafka_sla.loads import load, span

SETTINGS = Settings((Cluster("eu-1", None), Cluster("us-1", None)))
HOUR = span("10:00", "11:00")
SLA = Sla(
    name="payments",
    cluster="eu-1",
    groups=Patterns(("payments",)),
    topics=Patterns(("orders",)),
    max_latency_ms=30_000,
    for_ms=120_000,
    objective=0.999,
    steady_state=SteadyState(30_000),
)
LATE = {"backlog_age_max_ms": 20_000.0, "backlog_age_max_low_ms": 19_000.0, "backlog_age_max_high_ms": 21_000.0}


@pytest.fixture
def published(lake: Lake, ledger: Ledger) -> Lake:
    """An hour in which the group is 20 s late everywhere."""
    load(lake, ledger, "one", HOUR, ["eu-1", "us-1"], **LATE)
    return lake


def found(slas: list[Sla], lake: Lake, interval: Interval = HOUR) -> dict[str, Any]:
    return {sla.name: windows for sla, windows in verdicts(SETTINGS, slas, lake, interval)}


def kinds(windows: list[SlaWindow]) -> set[str]:
    return {window.verdict for window in windows}


def test_slas_of_several_clusters_are_judged_by_their_own_rows(published: Lake) -> None:
    there = replace(SLA, cluster="us-1")
    judged = found([SLA, there, replace(there, name="absent", groups=Patterns(("payments-v2",)))], published)

    assert {name: len(windows) for name, windows in judged.items()} == {"payments": 60, "absent": 60}
    assert kinds(judged["payments"]) == {"good"}
    assert {w.reason for w in judged["absent"]} == {"no data for group payments-v2, topic orders"}


def test_one_that_cannot_be_judged_keeps_no_other_from_its_verdicts(published: Lake) -> None:
    poison = replace(SLA, name="poison", groups=Patterns(("payments(",)))

    judged = found([replace(SLA, name="before"), poison, replace(SLA, name="after")], published)

    assert isinstance(judged["poison"], Exception)
    assert len(judged["before"]) == len(judged["after"]) == 60


def test_hundreds_of_slas_over_days_are_judged_some_at_a_time(published: Lake) -> None:
    slas = [*(replace(SLA, name=f"billing.alerts-{number:03}") for number in range(40)), SLA]
    days = Interval(HOUR.start, HOUR.start + 72 * (HOUR.end - HOUR.start))

    judged = found(slas, published, days)

    assert list(judged) == [sla.name for sla in slas]
    assert {len(windows) for windows in judged.values()} == {72 * 60}
    assert [w.verdict for w in judged["payments"]] == ["good"] * 60 + ["unknown"] * 71 * 60
    assert {w.reason for w in judged["billing.alerts-007"][60:]} == {"no data for group payments, topic orders"}


def test_a_chain_is_judged_beside_the_others(published: Lake) -> None:
    chain = replace(SLA, name="chain", chain=(Stage("payments", "orders"), Stage("billing", "invoices")))

    judged = found([chain, SLA], published)

    assert (kinds(judged["chain"]), len(judged["payments"])) == ({"unknown"}, 60)
    assert {w.reason for w in judged["chain"]} == {"no data: no group and topic of this SLA has been seen"}
