"""`python -m benchmarks.truth_estate`: is each incident on an untidy cluster judged as on-call engineers expect?

Starts a real broker, plays one incident per topic (an unread partition, wrong producer clocks, an open transaction,
deleted records, two programs in one group, ...), samples the cluster twice at once, measures and judges the interval as
`kafka-sla run` does, and prints one line per incident: what was expected and what was reported. Exit status 1 when an
expectation does not hold.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.printed import put
from benchmarks.truth_estate_traffic import STOP_SECONDS, EstateTraffic
from benchmarks.truth_samples import Samples
from demo.broker import Cluster as Broker
from demo.broker import archive_classes
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import (
    Cluster,
    Connection,
    Interval,
    Miss,
    OffsetLookups,
    Patterns,
    Sla,
    SlaWindow,
    SteadyState,
    floor_time,
)
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark

CLUSTER = "estate"
WINDOW_MS = 10_000
MAX_LATENCY_MS = 15_000
FOR_MS = 30_000
DEADLINE_MS = 60_000
TRAFFIC_SECONDS = 240
SETTLED_SECONDS = 80
"""The first windows are not compared: groups begin then."""
_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was reported about one incident, from the time on at which the traffic has settled."""

    windows: Sequence[SlaWindow]
    misses: Sequence[Miss]

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(window.verdict for window in self.windows)

    def has_open_miss(self, *causes: str) -> bool:
        """A miss is open, with one of these causes; with any cause if none is given."""
        return any(miss.end is None and (not causes or miss.evidence.get("cause") in causes) for miss in self.misses)

    @property
    def is_good(self) -> bool:
        """Only good or unknown windows, at least one good one, and no miss."""
        return not self.misses and self.verdicts.keys() <= {"good", "unknown"} and self.verdicts["good"] > 0

    @property
    def is_never_wrong(self) -> bool:
        """No miss, and no window that is bad or excluded."""
        return not self.misses and self.verdicts.keys() <= {"good", "unknown"}


@dataclass(frozen=True, slots=True)
class Incident:
    """One topic and group of the estate. `story` is its number in docs/reference/stories.md."""

    story: int
    name: str
    expected: str
    holds: Callable[[Outcome], bool]


INCIDENTS = (
    Incident(2, "step-back", "one open miss: the small reset does not end it", lambda o: o.has_open_miss()),
    Incident(8, "unread", "an open miss: no position on partition 1", lambda o: o.has_open_miss("no_position")),
    Incident(11, "two-programs", "unknown: never good, never excluded", lambda o: _ends_in(o, {"unknown"})),
    Incident(16, "left", "an open miss: the group has left the topic", lambda o: o.has_open_miss("left_topic")),
    Incident(18, "ahead", "no miss, although the producer's clock is ahead", lambda o: o.is_never_wrong),
    Incident(19, "ahead-dead", "an open miss, although the producer's clock is ahead", lambda o: o.has_open_miss()),
    Incident(20, "behind", "judged and good, although the producer's clock is behind", lambda o: o.is_never_wrong),
    Incident(21, "seconds", "no miss: timestamps in seconds are impossible", lambda o: o.is_never_wrong),
    Incident(22, "hanging", "an open miss: an open transaction", lambda o: o.has_open_miss("open_transaction")),
    Incident(23, "deleted", "an open miss: records were deleted, then more waited", lambda o: o.has_open_miss()),
    Incident(24, "compacted", "the stop of a minute is visible", lambda o: o.verdicts["bad"] > 0),
    Incident(25, "sampled", "one open miss, although two samplers observe the topic", lambda o: o.has_open_miss()),
    Incident(27, "emptied", "good: a quiet topic without records", lambda o: o.is_good),
)


def _ends_in(outcome: Outcome, verdicts: set[str]) -> bool:
    """The last minute has only these verdicts."""
    return {window.verdict for window in outcome.windows[-6:]} <= verdicts


def main() -> int:
    """Run the experiment; 1 when an expectation does not hold."""
    archive_classes()
    with Broker(properties={"log.cleaner.backoff.ms": "1000"}) as broker, tempfile.TemporaryDirectory() as folder:
        client, settings, store = broker.client(), build_settings(), Store.embedded(Path(folder))
        with EstateTraffic(client) as traffic, Samples(store, client, settings.clusters * 2, WINDOW_MS):
            start = floor_time(datetime.now(UTC), WINDOW_MS) + timedelta(milliseconds=WINDOW_MS)
            print_progress(f"{len(INCIDENTS)} incidents run for {TRAFFIC_SECONDS} s")
            while traffic.seconds < TRAFFIC_SECONDS:
                time.sleep(0.5)
            traffic.check()
            interval = Interval(start, floor_time(datetime.now(UTC), WINDOW_MS))
            measure(settings, store, client, interval)
        outcomes = read_outcomes(settings, store, interval)
    text = format_outcomes(outcomes)
    print(text)
    put("truth.md", "make truth", text)
    return int(any(not incident.holds(outcomes[incident.name]) for incident in INCIDENTS))


def build_settings() -> Settings:
    """One SLA per incident on one cluster."""
    slas = tuple(
        Sla(
            name=incident.name,
            cluster=CLUSTER,
            groups=Patterns((f"g-{incident.name}",)),
            topics=Patterns((".*",)) if incident.name == "left" else Patterns((incident.name,)),
            max_latency_ms=MAX_LATENCY_MS,
            for_ms=FOR_MS,
            objective=0.99,
            steady_state=SteadyState(MAX_LATENCY_MS, progress_deadline_ms=DEADLINE_MS),
        )
        for incident in INCIDENTS
    )
    clusters = (Cluster(CLUSTER, "broker", Patterns(("g-.*",)), Patterns((".*",))),)
    return Settings(clusters, slas, window_ms=WINDOW_MS, offset_lookups=OffsetLookups(max_gap_ms=WINDOW_MS))


def measure(settings: Settings, store: Store, client: dict[str, str], interval: Interval) -> None:
    """Snapshot, measure, publish and judge the interval."""
    login = Connection("broker", extra={**client})
    steps.snapshot(settings, store, CLUSTER, lambda _: login, interval, live=True)
    print_progress("measuring with Spark")
    job = steps.prepare(settings, store, interval, [CLUSTER])
    run_spark(job)
    steps.validate(store, job)
    steps.publish(store, job)
    for name, result in steps.evaluate_all(settings, store, [sla.name for sla in settings.slas], interval):
        if isinstance(result, Exception):
            raise RuntimeError(f"{name} could not be judged") from result


def read_outcomes(settings: Settings, store: Store, interval: Interval) -> dict[str, Outcome]:
    """What the ledger holds of each SLA."""
    verdicts = Ledger(store).verdicts
    settled = Interval(interval.start + timedelta(seconds=SETTLED_SECONDS), interval.end)
    return {
        sla.name: Outcome(verdicts.windows(sla.name, settled), verdicts.misses(sla, interval)) for sla in settings.slas
    }


def format_outcomes(outcomes: dict[str, Outcome]) -> str:
    """A Markdown table with one line per incident."""
    lines = ["| story | incident | expected | windows | misses | holds |", "|---|---|---|---|---|---|"]
    for incident in INCIDENTS:
        outcome = outcomes[incident.name]
        windows = ", ".join(f"{verdict} {count}" for verdict, count in sorted(outcome.verdicts.items()))
        misses = ", ".join(
            f"{miss.evidence.get('cause')}{' (open)' if miss.end is None else ''}" for miss in outcome.misses
        )
        holds = "yes" if incident.holds(outcome) else "**no**"
        lines.append(
            f"| {incident.story} | {incident.name} | {incident.expected} | {windows} | {misses or 'none'} | {holds} |"
        )
    lines.append(
        f"\nConsumers that stop do so after {STOP_SECONDS} s; windows are compared from {SETTLED_SECONDS} s on."
    )
    return "\n".join(lines)


def print_progress(text: str) -> None:
    """Progress on standard error, so that standard output is the table."""
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
