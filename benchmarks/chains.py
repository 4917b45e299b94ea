"""`python -m benchmarks.chains`: is what the package says of chains of topics and groups true, and how exactly?

Starts a real broker; real clients carry each record's birth through three topics under several loads, one stage slowed
or stopped in some. The finished interval is measured as `kafka-sla run` does it, from offsets alone; the truth is what
the topics hold in the end, and the broker's own log of commits. Exit status 1 when the truth left any bounds, or when
a late chain is not found with the stage that was late.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.chains_traffic import CHAINS, Chain, ChainTraffic, Written, contents
from benchmarks.truth_traffic import commits_of_partitions
from demo.broker import Cluster as Broker
from demo.broker import archive_classes
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import (
    Cluster,
    Connection,
    Interval,
    OffsetLookups,
    Patterns,
    Sla,
    SteadyState,
    epoch_ms,
    floor_time,
)
from kafka_sla.model.tables import CHAIN_LATENCY, CONSUMER_LATENCY
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark

WINDOW_MS = 10_000
TRAFFIC_SECONDS = 170
MAX_LATENCY_MS = 15_000
_BEGAN = time.monotonic()
Row = dict[str, Any]
Commits = Mapping[tuple[str, str, int], list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Passed:
    """A record in a stage's topic: when it was there, and when the stage had committed it (None: never)."""

    at_ms: int
    born_ms: int
    committed_ms: int | None


@dataclass(frozen=True, slots=True)
class Compared:
    """One chain."""

    chain: Chain
    windows: int
    inside: int
    judged: int
    """Values that were compared with their bounds."""
    width_ms: list[float]
    parts_ms: list[float]
    worst_ms: float
    named: tuple[int, ...]
    """The slowest stages of its bad windows."""


def main() -> int:
    """Run the experiment; 1 when it shows something untrue."""
    archive_classes()
    with Broker() as broker, tempfile.TemporaryDirectory(prefix="kafka_sla-chains-") as folder:
        client, store = broker.client(), Store.embedded(Path(folder))
        with ChainTraffic(client, CHAINS) as traffic:
            interval = _act(traffic)
        commits = commits_of_partitions(client)
        passed = {chain.name: _passed(client, chain, commits) for chain in CHAINS}
        settings = _settings()
        _measure(store, client, settings, interval)
        found = [_compare(store, settings, chain, interval, passed[chain.name]) for chain in CHAINS]
    print(_markdown(found))
    return int(any(not _is_right(one) for one in found))


def _act(traffic: ChainTraffic) -> Interval:
    """Wait for the whole windows from when all groups have committed."""
    while traffic.seconds < 20:
        time.sleep(0.5)
    start = floor_time(datetime.now(UTC), WINDOW_MS) + timedelta(milliseconds=WINDOW_MS)
    _say(f"{len(CHAINS)} chains run for {TRAFFIC_SECONDS} s")
    while traffic.seconds < TRAFFIC_SECONDS:
        time.sleep(0.5)
    return Interval(start, floor_time(datetime.now(UTC), WINDOW_MS))


def _settings() -> Settings:
    """A chain has a cluster of its own here: it is measured alone."""
    clusters = [Cluster(chain.name, "broker", *_selected(chain)) for chain in CHAINS]
    slas = [
        Sla(
            chain.name,
            chain.name,
            *_selected(chain),
            MAX_LATENCY_MS,
            0,
            0.99,
            SteadyState(MAX_LATENCY_MS),
            chain=chain.stages,
            when_uncertain="estimate",
        )
        for chain in CHAINS
    ]
    return Settings(
        tuple(clusters), tuple(slas), window_ms=WINDOW_MS, offset_lookups=OffsetLookups(max_gap_ms=WINDOW_MS)
    )


def _selected(chain: Chain) -> tuple[Patterns, Patterns]:
    stages = chain.stages
    return Patterns(tuple(re.escape(s.group) for s in stages)), Patterns(tuple(re.escape(s.topic) for s in stages))


def _measure(store: Store, client: dict[str, str], settings: Settings, interval: Interval) -> None:
    login, names = Connection("broker", extra={**client}), [chain.name for chain in CHAINS]
    for name in names:
        steps.snapshot(settings, store, name, lambda _: login, interval, live=False)
    _say("measuring with Spark")
    job = steps.prepare(settings, store, interval, names)
    run_spark(job)
    steps.validate(store, job)
    steps.publish(store, job)
    for name, outcome in steps.evaluate_all(settings, store, names, interval):
        if isinstance(outcome, Exception):
            raise RuntimeError(f"the chain {name!r} cannot be judged") from outcome


def _passed(client: dict[str, str], chain: Chain, commits: Commits) -> list[list[Passed]]:
    """Every record of each stage's topic."""
    return [
        [_one(record, commits.get((link.group, link.topic, record.partition), [])) for record in contents(client, link)]
        for link in chain.links
    ]


def _one(record: Written, commits: Sequence[tuple[int, int]]) -> Passed:
    after = bisect_right(commits, record.offset, key=lambda commit: commit[1])
    return Passed(record.at_ms, record.born_ms, commits[after][0] if after < len(commits) else None)


def _compare(
    store: Store, settings: Settings, chain: Chain, interval: Interval, passed: list[list[Passed]]
) -> Compared:
    lake = Lake(store)
    rows = lake.published(CHAIN_LATENCY.name, interval, [chain.name]).to_pylist()
    whole = {row["window_start"]: row for row in rows if row["stage"] == 0}
    parts = _parts(chain, lake.published(CONSUMER_LATENCY.name, interval, [chain.name]).to_pylist())
    checks, width, sums, worst = list[bool](), list[float](), list[float](), 0.0
    for window in interval.windows(WINDOW_MS):
        row, truth = whole[window.start], _truth(passed, epoch_ms(window.start), epoch_ms(window.end))
        for name, true in truth.items():
            checks.append(_holds(row, name, true))
            if not checks[-1]:
                _say(f"{chain.name} {window}: {name} was {true}: {row}")
        worst = max(worst, *(true or 0 for true in truth.values()))
        if row["records_latency_max_high_ms"] is not None and window.start in parts:
            width.append(row["records_latency_max_high_ms"] - row["records_latency_max_low_ms"])
            sums.append(parts[window.start])
    bad = [
        w.window.start for w in Ledger(store).verdicts.windows(settings.sla(chain.name), interval) if w.verdict == "bad"
    ]
    named = tuple(whole[start]["slowest_stage"] for start in bad)
    return Compared(chain, len(whole), sum(checks), len(checks), width, sums, worst, named)


def _truth(passed: list[list[Passed]], start: int, end: int) -> dict[str, float | None]:
    """What the window should say: the slowest record that came out, and the oldest that was on its way at the end."""
    out = [one.committed_ms - one.born_ms for one in passed[-1] if one.committed_ms and start <= one.committed_ms < end]
    waiting = [
        end - one.born_ms
        for stage in passed
        for one in stage
        if one.at_ms < end and (one.committed_ms is None or one.committed_ms >= end)
    ]
    return {"records_latency_max": max(out, default=None), "backlog_age": max(waiting, default=0)}


def _holds(row: Row, name: str, true: float | None) -> bool:
    low, high = row[f"{name}_low_ms"], row[f"{name}_high_ms"]
    if true is None:
        return low is None and high is None
    return low is not None and low <= true and (high is None or true <= high)


def _parts(chain: Chain, rows: Iterable[Row]) -> dict[datetime, float]:
    """How wide the bounds of the stages' own latency are in each window, added up; windows in which all have some."""
    bounds: dict[tuple[datetime, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row["records_latency_max_high_ms"] is not None:
            value = row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]
            bounds[row["window_start"], row["topic"]].append(value)
    sums: dict[datetime, list[float]] = defaultdict(list)
    for (start, _), known in bounds.items():
        sums[start].append(max(high for _, high in known) - max(low for low, _ in known))
    return {start: sum(widths) for start, widths in sums.items() if len(widths) == len(chain.links)}


def _is_right(one: Compared) -> bool:
    named = not one.chain.late_stage or (
        bool(one.named) and max(one.named, key=one.named.count) == one.chain.late_stage
    )
    return one.inside == one.judged and named


def _markdown(found: Sequence[Compared]) -> str:
    head = (
        "| load | windows | truth inside its bounds | slowest record, s | width of the chain, s | sum of its parts, s |"
        " windows not wider than that | bad windows: late stage |\n|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *map(_line, found)])


def _line(one: Compared) -> str:
    narrow = sum(width <= parts for width, parts in zip(one.width_ms, one.parts_ms, strict=True))
    widths = [f"{median(values) / 1000:.2f}" if values else "–" for values in (one.width_ms, one.parts_ms)]
    late = ", ".join(f"{one.named.count(stage)} × {stage}" for stage in sorted(set(one.named))) or "–"
    return (
        f"| {one.chain.name} | {one.windows} | {one.inside} of {one.judged} | {one.worst_ms / 1000:.1f} |"
        f" {widths[0]} | {widths[1]} | {narrow} of {len(one.width_ms)} | {late} |"
    )


def _say(text: str) -> None:
    """Progress on standard error, so that standard output is the table."""
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
