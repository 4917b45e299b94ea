"""`python -m benchmarks.truth`: is what the package says of consumers true?

Starts a real broker, lets real clients write down what they do, measures the finished interval from what Kafka
remembers (snapshot, Spark, publication, as `kafka-sla run` does), and once more from samples, with the commit log
hidden; prints all as Markdown. Exit status 1 when the truth left any bounds, a flow's 99th percentile is off by more
than 5 % and 250 ms, or a verdict from samples is opposed to the other. Knows the order of things only.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.lag_exporter import LagExporter
from benchmarks.truth_flows import FLOWS
from benchmarks.truth_log import truth
from benchmarks.truth_samples import Samples, judged, polls, verdicts
from benchmarks.truth_table import Comparison, Row, compare, markdown
from benchmarks.truth_traffic import Traffic, commits_kept
from demo.broker import Cluster as Broker
from demo.broker import archive_classes
from demo.degraded_broker import DegradedBroker
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, floor_time
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark

WINDOW_MS = 10_000
TRAFFIC_SECONDS = 180
_BEGAN = time.monotonic()


def main() -> int:
    """Run the experiment; 1 when it shows something untrue."""
    archive_classes()
    with (
        Broker(properties={"log.cleaner.backoff.ms": "1000"}) as broker,
        _store() as store,
        _store() as closed_store,
        DegradedBroker(broker.bootstrap, hidden=frozenset({"__consumer_offsets"})) as hidden,
    ):
        client, settings = broker.client(), _settings()
        with Traffic(client, FLOWS) as traffic, LagExporter(client, FLOWS) as exporter:
            while not traffic.all_committed:
                time.sleep(0.1)
            with Samples(closed_store, hidden.client(), settings.clusters, WINDOW_MS):
                interval = _act(traffic)
        kept, polled = commits_kept(client), polls(closed_store)
        rows, offset_lookups = _measured(store, client, settings, interval, live=False)
        sampled, _ = _measured(closed_store, hidden.client(), settings, interval, live=True)
    found, closed = [], []
    for flow in FLOWS:
        really = truth(flow.name, traffic.logs[flow.name], kept[flow.group, flow.topic])
        told = rows[flow.name], exporter.samples[flow.name], offset_lookups[flow.name]
        found.append(compare(flow.name, interval, WINDOW_MS, really, *told))
        closed.append(
            judged(
                flow.name,
                interval,
                WINDOW_MS,
                really,
                rows[flow.name],
                sampled[flow.name],
                polled[flow.name],
                exporter.samples[flow.name],
            )
        )
    print(f"{markdown(found)}\n\nWith the commit log hidden, from samples:\n\n{verdicts(closed)}")
    return _complain(found) or int(any(one.opposed or one.outside for one in closed))


def _act(traffic: Traffic) -> Interval:
    """Wait for the whole windows from now on."""
    start = floor_time(datetime.now(UTC), WINDOW_MS) + timedelta(milliseconds=WINDOW_MS)
    _say(f"{len(FLOWS)} flows run for {TRAFFIC_SECONDS} s")
    while traffic.seconds < TRAFFIC_SECONDS:
        time.sleep(0.5)
    return Interval(start, floor_time(datetime.now(UTC), WINDOW_MS))


def _settings() -> Settings:
    """A flow is a cluster here: it is counted alone."""
    return Settings(
        tuple(
            Cluster(flow.name, "broker", Patterns((re.escape(flow.group),)), Patterns((re.escape(flow.topic),)))
            for flow in FLOWS
        ),
        window_ms=WINDOW_MS,
        offset_lookups=OffsetLookups(max_gap_ms=WINDOW_MS),
    )


@contextmanager
def _store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory(prefix="kafka_sla-truth-") as folder:
        yield Store.embedded(Path(folder))


def _measured(
    store: Store, client: dict[str, str], settings: Settings, interval: Interval, *, live: bool
) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Published rows of `consumer_latency` and look-ups by flow."""
    names, login = [flow.name for flow in FLOWS], Connection("broker", extra={**client})
    snapshots = [steps.snapshot(settings, store, name, lambda _: login, interval, live=live) for name in names]
    _say(f"{sum(s['offset_lookups'] for s in snapshots)} look-ups of offsets; measuring with Spark")
    job = steps.prepare(settings, store, interval, names)
    run_spark(job)
    steps.validate(store, job)
    steps.publish(store, job)
    published = Lake(store).published(CONSUMER_LATENCY.name, interval).to_pylist()
    rows = {name: [row for row in published if row["cluster"] == name] for name in names}
    return rows, {s["cluster"]: s["offset_lookups"] for s in snapshots}


def _complain(found: list[Comparison]) -> int:
    for one in found:
        for text in one.outside:
            _say(f"{one.name}: outside its bounds: {text}")
        if not one.p99_holds:
            _say(f"{one.name}: p99 is {one.ours.p99}, in truth {one.true.p99}")
    return int(any(one.outside or not one.p99_holds for one in found))


def _say(text: str) -> None:
    """Progress on standard error, so that standard output is the tables."""
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
