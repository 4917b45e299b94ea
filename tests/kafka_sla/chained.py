"""A chain of three stages whose second one becomes slow: its published rows, judged by the pipeline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, SlaWindow
from kafka_sla.model.tables import (
    CHAIN_LATENCY,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    GROUP_STATES,
    NON_CONSUMED,
    STEADY_STATE,
)
from kafka_sla.pipeline import steps
from tests.kafka_sla.loads import write

NAME = "orders are billed within a minute"
STAGES = (
    ("order-enricher", "orders.placed.v2"),
    ("billing.invoice-writer", "orders.enriched.v1"),
    ("billing.alerts-authorised", "orders.billed.v1"),
)
CONFIG = f"""
clusters: {{prod: {{}}}}
slas:
  - name: {NAME}
    chain: {json.dumps([{"group": group, "topic": topic} for group, topic in STAGES])}
    max_latency: 1m
    for: 3m
    recipients: [orders-oncall@example.com]
"""
LATE = "Stage 2 of 3, billing.invoice-writer on orders.enriched.v1, was late: it added 1 min 10 s to 1 min 20 s."
NOW = "slowest stage 2 of 3, billing.invoice-writer on orders.enriched.v1, adds 1 min 10 s to 1 min 20 s"
UNKNOWN = "the position of one of its groups is not known, or that of the log end"


def bounds(name: str, low: float | None, high: float | None) -> dict[str, float | None]:
    middle = None if low is None else low if high is None else (low + high) / 2
    return {f"{name}_ms": middle, f"{name}_low_ms": low, f"{name}_high_ms": high}


def rows(window: Interval, number: int) -> list[dict[str, Any]]:
    """Minutes 0 to 4 are well, nobody knows of the sixth, in the seventh a group bootstraps, from 10 on it is slow."""
    slow, unknown = number >= 10, number == 5
    added = [(1_000, 2_000), (70_000, 80_000) if slow else (1_000, 2_000), (500, 900)]
    whole = (75_000, 90_000 if number < 19 else None) if slow else (2_000, None if unknown else 4_000)
    shared = {
        "sla": NAME,
        "cluster": "prod",
        "window_start": window.start,
        "window_end": window.end,
        "records_consumed": 60,
        "records_over_threshold": 60 * slow,
        "records_over_threshold_low": 60 * slow,
        "records_over_threshold_high": 60 * slow,
    }
    place = {"group": STAGES[1][0], "topic": STAGES[1][1], "partition": 3, "slowest_stage": 2}
    why = {"unknown_reason": UNKNOWN if None in whole else None}
    found = [{"stage": 0, **place, **bounds("records_latency_max", *whole), **bounds("backlog_age", 0, 1_000), **why}]
    for stage, ((group, topic), (low, high)) in enumerate(zip(STAGES, added, strict=True), 1):
        own = {"stage": stage, "group": group, "topic": topic, "partition": 3}
        found.append(own | bounds("records_latency_max", low, high) | bounds("backlog_age", 0, 0))
    return [shared | row for row in found]


def states(window: Interval, number: int) -> list[dict[str, Any]]:
    steady = {"state": "steady", "reason": "caught_up", "steady_whole_window": True}
    new = {"state": "bootstrapping", "reason": "rewind", "steady_whole_window": False}
    shared = {
        "sla": NAME,
        "cluster": "prod",
        "partition": 3,
        "window_start": window.start,
        "window_end": window.end,
        "since": window.start,
        "records_due": 0,
        "records_late": 0,
        "records_late_low": 0,
        "records_late_high": 0,
    }
    own = [new if number == 6 and stage == 2 else steady for stage in range(3)]
    return [shared | {"group": g, "topic": t} | state for (g, t), state in zip(STAGES, own, strict=True)]


def latencies(window: Interval, number: int) -> list[dict[str, Any]]:
    return [
        {
            "cluster": "prod",
            "group": group,
            "topic": topic,
            "partition": 3,
            "window_start": window.start,
            "window_end": window.end,
            "records_consumed": 60,
            "negative_latency_records": 0,
            "unknown_latency_records": 0,
            "records_lag": 40,
            "committed_offset": 60 * number,
            "log_end_offset": 60 * number + 40,
            "effective_position": 60 * number,
            "last_commit_at": window.start,
            **bounds("records_latency_max", 1_000, 2_000),
            **bounds("backlog_age", 0, 1_000),
            **bounds("backlog_age_max", 1_000, 2_000),
        }
        for group, topic in STAGES
    ]


@dataclass(frozen=True)
class Chained:
    settings: Settings
    store: Store
    whole: Interval

    @property
    def verdicts(self) -> list[SlaWindow]:
        return list(Ledger(self.store).verdicts.windows(self.settings.sla(NAME), self.whole))

    @property
    def miss(self) -> Miss:
        return Ledger(self.store).verdicts.misses(NAME)[0]


def built(folder: Path, end: datetime) -> Chained:
    (folder / "kafka_sla.yml").write_text(CONFIG)
    settings, store = load_settings(folder / "kafka_sla.yml"), Store.embedded(folder)
    whole, lake, ledger = Interval(end - timedelta(minutes=20), end), Lake(store), Ledger(store)
    ledger.open(writing=True)
    windows = list(enumerate(whole.windows(60_000)))
    made = {CHAIN_LATENCY: rows, STEADY_STATE: states, CONSUMER_LATENCY: latencies}
    files = {
        table.name: [write(lake, "load", whole, table, [row for number, of in windows for row in make(of, number)])]
        for table, make in made.items()
    }
    for table in (CONSUMER_STATUS, NON_CONSUMED, GROUP_STATES):  # a run makes every table before it judges
        lake.fact_files(table, None, end)
    lake.add_load("load", whole, files)
    ledger.publications.publish(["prod"], whole, "load", {"prod": 0})
    steps.evaluate(settings, store, NAME, whole)
    return Chained(settings, store, whole)
