"""Flows of real clients on one broker, measured in every way of reaching it: does the truth lie in the bounds?"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.truth_flows import Flow, bursts, steady
from benchmarks.truth_log import truth
from benchmarks.truth_samples import Samples
from benchmarks.truth_table import left_bounds
from benchmarks.truth_traffic import Traffic, commits_kept
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, epoch_ms, floor_time
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark

FLOWS = (
    Flow("orders.placed-v2", steady(50)),
    Flow("billing.alerts-authorised", bursts(200, every=13), reads_per_second=60),
    Flow("audit-trail.stopped", steady(20), absent=(25, 45)),
    Flow("payments.transactional", steady(30), transaction_seconds=0.5),
)
_SECONDS, _WINDOW_MS = 60, 10_000
Logins = Mapping[str, dict[str, str]]
"""How to reach the broker, by a name of this way."""


@dataclass(frozen=True, slots=True)
class Held:
    """Windows of all flows, seen in one way."""

    windows: int
    outside: tuple[str, ...]
    """What the truth left the bounds of. Polls may see no read of a window: then nothing is said of its latency."""
    unbounded: int
    """Windows of whose latency or backlog no high bound is known."""

    def __str__(self) -> str:
        wide = f", {self.unbounded} without a high bound" if self.unbounded else ""
        return f"{self.windows - len(self.outside)} of {self.windows}{wide}"


def held(direct: dict[str, str], ways: Logins, sampled: Collection[str]) -> dict[str, Held]:
    """Run the flows once, and measure the same interval in every way, from a live snapshot and the commit log;
    `sampled`: ways in which positions are polled meanwhile, as with `sample_every`."""
    with tempfile.TemporaryDirectory(prefix="kafka_sla-compatibility-") as folder:
        store = Store.embedded(Path(folder))
        with Traffic(direct, FLOWS) as traffic:
            while not traffic.all_committed:
                time.sleep(0.1)
            with ExitStack() as sampling:
                for way in sampled:
                    sampling.enter_context(Samples(store, ways[way], [_cluster(way)], _WINDOW_MS))
                start = floor_time(datetime.now(UTC), _WINDOW_MS) + timedelta(milliseconds=_WINDOW_MS)
                while traffic.seconds < _SECONDS:
                    time.sleep(0.5)
                interval = Interval(start, floor_time(datetime.now(UTC), _WINDOW_MS))
        _measure(store, ways, interval)
        kept, lake = commits_kept(direct), Lake(store)
        rows = lake.published(CONSUMER_LATENCY.name, interval).to_pylist()
    really = {flow.name: truth(flow.name, traffic.logs[flow.name], kept[flow.group, flow.topic]) for flow in FLOWS}
    found = {}
    for way in ways:
        windows = [row for row in rows if row["cluster"] == way]
        outside = []
        for row in windows:
            of_flow = really[next(flow.name for flow in FLOWS if flow.topic == row["topic"])]
            latencies = of_flow.latencies(epoch_ms(row["window_start"]), epoch_ms(row["window_end"]))
            left = [
                text for text in left_bounds(latencies, of_flow, row) if not (row["polled_only"] and "told" in text)
            ]
            outside += [f"{row['topic']} {row['window_start']:%H:%M:%S} {text}" for text in left[:1]]
        found[way] = Held(len(windows), tuple(outside), sum(_is_unbounded(row) for row in windows))
    return found


def _is_unbounded(row: Mapping[str, object]) -> bool:
    unknown = row["records_latency_max_ms"] is None and row["records_consumed"] != 0
    return row["backlog_age_max_high_ms"] is None or unknown


def _cluster(way: str) -> Cluster:
    """All flows, by their full names."""
    groups, topics = ({re.escape(getattr(flow, of)) for flow in FLOWS} for of in ("group", "topic"))
    return Cluster(way, way, Patterns(tuple(sorted(groups))), Patterns(tuple(sorted(topics))))


def _measure(store: Store, ways: Logins, interval: Interval) -> None:
    clusters = tuple(_cluster(way) for way in ways)
    settings = Settings(clusters, window_ms=_WINDOW_MS, offset_lookups=OffsetLookups(max_gap_ms=_WINDOW_MS))
    for way, login in ways.items():
        connection = Connection("broker", extra={**login})
        steps.snapshot(settings, store, way, lambda _, found=connection: found, interval, live=True)
    job = steps.prepare(settings, store, interval, list(ways))
    run_spark(job)
    steps.validate(store, job)
    steps.publish(store, job)
