"""`python -m benchmarks.history [MINUTES]`: does the past say the same when it is told again?

A real broker with real consumers. Every minute is measured live, as the schedule does. The same time is then measured
in new stores: from Kafka alone, from Kafka after `__consumer_offsets` was compacted, and from files. Prints how windows
and verdicts compare with the live ones, as Markdown. Exit status 1 when equal evidence gives other rows, bounds
contradict each other, or a verdict differs and does not say so. Knows the order of things only.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer

from benchmarks.history_compaction import Compaction
from benchmarks.history_files import export_all, export_polls, import_files
from benchmarks.history_table import POLLS, Past, complaints, markdown, past
from benchmarks.order_worker import Plan, Worker, store_of
from benchmarks.truth_flows import FLOWS
from benchmarks.truth_traffic import Traffic
from demo.broker import Cluster as Broker
from demo.broker import archive_classes
from kafka_sla.model.entities import Interval, floor_time

MINUTES = int(sys.argv[1]) if len(sys.argv) > 1 else 5
_MINUTE = timedelta(minutes=1)
_LIMITS = {
    "steady": "3s",
    "steady, LogAppendTime": "5s",
    "bursty": "3s",
    "stopped": "10s",
    "rewound": "3s",
    "slow": "20s",
    "transactional": "1500ms",
}
"""Thresholds by flow; some lie where latencies are, so that verdicts are close."""
FLOWS_HERE = [flow for flow in FLOWS if flow.name in _LIMITS]
CONFIGURATION = "\n".join(
    [
        "clusters: {live: {%s}}",
        "window: 10s",
        "offset_lookups: {max_gap: 10s}",
        "slas:",
        *(
            f"  - {{name: '{flow.name}', group: {flow.group}, topic: {flow.topic}, max_latency: {_LIMITS[flow.name]}}}"
            for flow in FLOWS_HERE
        ),
    ]
)
_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True)
class Bench:
    """Where everything is."""

    folder: Path
    broker: str
    interval: Interval

    def measured(self, title: str, *, files: Path | None = None, equal_to: str | None = None) -> Past:
        """The whole time in a new store: from Kafka, or from files."""
        folder = _new(self.folder / title.replace(" ", "-"), kafka=files is None)
        if files:
            import_files(store_of(folder), files)
        Worker(Plan(folder, (self.interval,), broker=None if files else self.broker, checked=False)).run()
        _say(f"measured: {title}")
        return past(title, folder, self.interval, equal_to)


def main() -> int:
    """Run the experiment; 1 when the past is told otherwise without saying so."""
    archive_classes()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    properties = {"log.cleaner.backoff.ms": "500", "log.segment.delete.delay.ms": "1000"}
    with tempfile.TemporaryDirectory(prefix="kafka_sla-history-") as name, Broker(properties=properties) as broker:
        found = _all(Path(name), broker.client())
    print(markdown(found))
    wrong = complaints(found)
    for text in wrong:
        _say(text)
    return int(bool(wrong))


def _all(folder: Path, client: dict[str, str]) -> list[Past]:
    live, commits = _new(folder / "live", kafka=True), Compaction(client)
    with Traffic(client, FLOWS_HERE) as traffic:
        while not traffic.all_committed:
            time.sleep(0.1)
        commits.hold()
        interval = _measure_live(live, client["bootstrap.servers"], commits)
    bench = Bench(folder, client["bootstrap.servers"], interval)
    found = [past("live, minute by minute", live, interval, None)]
    found.append(bench.measured("from Kafka alone"))
    export_all(store_of(live), folder / "files-live", interval)
    export_all(store_of(folder / "from-Kafka-alone"), folder / "files-rebuilt", interval)
    export_polls(store_of(live), folder / "files-polls", interval)
    _say(f"{commits.compact_closed()} commits compacted away, of the first half")
    found.append(bench.measured("from Kafka, first half compacted"))
    _say(f"{commits.compact_all()} commits compacted away, of all")
    found.append(bench.measured("from Kafka, all compacted"))
    live_files, same = folder / "files-live", "live, minute by minute"
    found.append(bench.measured("files of the live facts", files=live_files, equal_to=same))
    rebuilt_files = folder / "files-rebuilt"
    found.append(bench.measured("files of the rebuilt facts", files=rebuilt_files, equal_to="from Kafka alone"))
    found.append(bench.measured(POLLS, files=folder / "files-polls"))
    return found


def _measure_live(folder: Path, broker: str, commits: Compaction) -> Interval:
    """Each minute when it is over; half-way the log of commits goes on in a new segment."""
    start = floor_time(datetime.now(UTC), 60_000) + _MINUTE
    _say(f"measuring {MINUTES} minutes live from {start:%H:%M}")
    half_way = Timer((start - datetime.now(UTC)).total_seconds() + MINUTES * 30, commits.roll)
    half_way.start()
    for number in range(MINUTES):
        minute = Interval(start + number * _MINUTE, start + (number + 1) * _MINUTE)
        while datetime.now(UTC) < minute.end:
            time.sleep(0.05)
        Worker(Plan(folder, (minute,), broker=broker, checked=False, live=True)).run()
        _say(f"measured {minute} live")
    half_way.join()
    return Interval(start, start + MINUTES * _MINUTE)


def _new(folder: Path, *, kafka: bool) -> Path:
    folder.mkdir()
    (folder / "kafka_sla.yml").write_text(CONFIGURATION % ("connection: broker" if kafka else ""))
    return folder


def _say(text: str) -> None:
    """Progress on standard error, so that standard output is the tables."""
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
