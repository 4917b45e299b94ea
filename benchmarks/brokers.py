"""`python -m benchmarks.brokers`: are slow brokers and pairs told apart, at every load?

Real brokers of this machine with a controller of their own; TCP proxies between them are slowed (demo/links.py), which
needs no root. Each case is sampled twice through the exporters and measured as the Spark job does it. Prints Markdown.
Exit status 1 when a verdict is wrong, or the delay lies outside the bounds of a pair.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession

from demo.broker import archive_classes
from demo.measured_cluster import MeasuredCluster
from demo.trickle import Trickle
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Exporter, Interval, floor_time
from kafka_sla.model.tables import BROKER_REQUESTS, FETCH_LATENCY, REPLICA_FETCHES, Table
from kafka_sla.sources.jmx_exporters import Scraped, scrape
from kafka_sla.spark.job_spec import Job, Replay, measured_cluster
from kafka_sla.spark_jobs import fetch_latency
from kafka_sla.spark_jobs.metrics import Inputs

_DELAY_MS = 100.0
_SECONDS = 15.0
_SETTLING_SECONDS = 3.0
_WINDOW_MS = 1_000
_NOISE_MS = 30.0
"""What a busy machine may add to a delay."""
_RATES = (0, 6, 60, 600)
"""Records per second; at a few, followers wait for the same records."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Which links are slow, and what is to be found."""

    name: str
    verdict: str
    broker: int | None = None
    pair: frozenset[int] = frozenset()

    def delay_ms(self, a: int, b: int) -> float:
        return _DELAY_MS if self.broker in (a, b) or {a, b} == self.pair else 0.0


CASES = (
    Case("none", "even"),
    Case("broker 0", "slow_broker", 0),
    Case("pair 0–1", "slow_pair", None, frozenset((0, 1))),
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """One case at one load."""

    brokers: int
    case: Case
    rate: int
    before: Scraped
    after: Scraped


def main() -> int:
    """Run the experiment; 1 when it shows something untrue."""
    archive_classes()
    found = [one for brokers in (3, 5) for one in _sample(brokers)]
    rows = _measured(found)
    print(
        "| brokers | records/s | delayed | plain total, ms | late pairs, ms | other pairs, ms | verdict | confidence |"
    )
    print("|---|---|---|---|---|---|---|---|")
    wrong = [words for one in found for words in _told(one, rows)]
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


def _sample(brokers: int) -> list[Sampled]:
    found = []
    with MeasuredCluster(brokers) as cluster:
        partitions = 2 * brokers
        create_topic(AdminClient({**cluster.client()}), NewTopic("r", partitions, 3))
        config = Cluster(
            f"{brokers}", None, jmx_exporters=tuple(Exporter(*one) for one in cluster.jmx_exporters.items())
        )
        for rate in _RATES:
            for case in CASES:
                _say(f"{brokers} brokers, {rate} records/s, delayed: {case.name}")
                cluster.links.slow(case.broker, case.pair, _DELAY_MS / 1000)
                with ExitStack() as load:
                    if rate:
                        load.enter_context(Trickle(cluster.client(), "r", partitions, rate))
                    time.sleep(_SETTLING_SECONDS)
                    before = scrape(config)
                    time.sleep(_SECONDS)
                    found.append(Sampled(brokers, case, rate, before, scrape(config)))
    return found


def _measured(found: list[Sampled]) -> list[Row]:
    """All rows of `fetch_latency`."""
    every = [scraped for one in found for scraped in (one.before, one.after)]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take whatever python3 is on the path
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frames: dict[Table, DataFrame] = {
        BROKER_REQUESTS: spark.createDataFrame(pa.concat_tables(one.broker_requests for one in every)),
        REPLICA_FETCHES: spark.createDataFrame(pa.concat_tables(one.replica_fetches for one in every)),
    }
    start, end = (floor_time(_at(one), _WINDOW_MS) for one in (every[0], every[-1]))
    replays = tuple(
        Replay(measured_cluster(Cluster(str(brokers), None)), None) for brokers in {one.brokers for one in found}
    )
    job = Job("load", Interval(start, end + timedelta(seconds=2)), _WINDOW_MS, replays, (), {}, {}, "", {}, 0, 0)
    nothing = spark.createDataFrame([], FETCH_LATENCY.ddl)
    measured = fetch_latency.measure(Inputs(job, lambda table: frames[table], nothing, lambda table: nothing))
    rows: list[Row] = measured.toArrow().to_pylist()
    spark.stop()
    return rows


def _at(scraped: Scraped) -> datetime:
    at: datetime = scraped.broker_requests["at"][0].as_py()
    return at


def _told(one: Sampled, rows: list[Row]) -> list[str]:
    """Print one line of the table; answers what is untrue."""
    mine = [
        r
        for r in rows
        if r["cluster"] == str(one.brokers)
        and r["follower"] != "consumers"
        and (r["sampled_from"], r["sampled_until"]) == (_at(one.before), _at(one.after))
    ]
    pairs = [r for r in mine if r["window_start"] == min(m["window_start"] for m in mine) and r["fetch_latency_ms"]]
    delays = [one.case.delay_ms(r["leader"], int(r["follower"])) for r in pairs]
    late = [r["fetch_latency_ms"] for r, delay in zip(pairs, delays, strict=True) if delay]
    usual = [r["fetch_latency_ms"] for r, delay in zip(pairs, delays, strict=True) if not delay]
    verdict, broker, sure = (pairs[0][name] for name in ("verdict", "verdict_broker", "confidence"))
    named = verdict if broker is None else f"{verdict} {broker}"
    cells = (
        one.brokers,
        one.rate,
        one.case.name,
        _span([r["leader_total_ms"] for r in pairs]),
        _span(late),
        _span(usual),
        named,
        "" if sure is None else f"{sure:.2f}",
    )
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    where = f"{one.brokers} brokers, {one.rate} records/s, delayed: {one.case.name}"
    wrong = [] if (verdict, broker) == (one.case.verdict, one.case.broker) else [f"{where}: {named}"]
    outside = [
        r
        for r, delay in zip(pairs, delays, strict=True)
        if not r["fetch_latency_low_ms"] - _NOISE_MS <= delay <= r["fetch_latency_high_ms"]
    ]
    return wrong + [f"{where}: {r['follower']} from {r['leader']} is outside its bounds: {r}" for r in outside]


def _span(values: list[float]) -> str:
    return f"{min(values):.0f}–{max(values):.0f}" if values else ""


def _say(text: str) -> None:
    """Progress on standard error, so that standard output is the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
