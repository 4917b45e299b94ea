"""`python -m benchmarks.order_reader PLAN SEEN`: polls published rows until its input ends; writes down what it saw.

A reader sees no load, no journal and no kill: only what everybody may read. Each poll takes one interval, its latency
first and its steady states second. As nothing visible goes away, the second must be at least as new as the first.
"""

from __future__ import annotations

import hashlib
import json
import random
import select
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.order_worker import read_plan, store_of
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import TABLES

_PAUSE_SECONDS = 0.3


def digest(name: str, rows: list[dict[str, Any]]) -> str:
    """The same for the same rows in any order; empty for none."""
    return hashlib.sha256(b"\n".join(canonical(name, rows))).hexdigest()[:16] if rows else ""


def canonical(name: str, rows: list[dict[str, Any]]) -> list[bytes]:
    """Each row as bytes, sorted by the table's key."""
    key = TABLES[name].key
    ranked = sorted(rows, key=lambda row: tuple(str(_plain(row[k])) for k in key))
    return [json.dumps({k: _plain(v) for k, v in row.items()}, sort_keys=True).encode() for row in ranked]


def _plain(value: Any) -> Any:
    """Times as ISO text in UTC, maps in the order of their keys; floats stay what they are, to the last digit."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, list):
        is_map = bool(value) and isinstance(value[0], tuple)
        return sorted(value) if is_map else [_plain(one) for one in value]
    return value


def seen_now(lake: Lake, interval: Interval) -> tuple[str, ...]:
    """Digests of what is published of the interval at this moment: latency, steady states, and verdicts by SLA."""
    metrics = [
        digest(name, lake.published(name, interval).to_pylist()) for name in ("consumer_latency", "steady_state")
    ]
    verdicts: dict[str, list[dict[str, Any]]] = {}
    for row in lake.published("sla_windows", interval).to_pylist():
        verdicts.setdefault(row["sla"], []).append(row)
    return (*metrics, *(f"{sla}: {digest('sla_windows', rows)}" for sla, rows in sorted(verdicts.items())))


def main(plan_path: Path, seen_path: Path) -> None:
    plan, lots = read_plan(plan_path), random.Random(0)  # noqa: S311
    lake, seen = Lake(store_of(plan.folder)), Counter[tuple[int, tuple[str, ...]]]()
    while not select.select([sys.stdin], [], [], _PAUSE_SECONDS)[0]:
        number = lots.randrange(len(plan.intervals))
        seen[number, seen_now(lake, plan.intervals[number])] += 1
    told = [(number, digests, count) for (number, digests), count in seen.items()]
    seen_path.write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
