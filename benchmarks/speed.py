"""`python -m benchmarks.speed [what …]`: how fast is it, beside what? One table a question, into docs/reference/.

Without names all are answered, in the order below. Each answer replaces the one between its markers in the page, and is
printed. Sizes are the ones that the promises are about; KAFKA_SLA_BENCHMARK_DAYS shortens the longest, and
KAFKA_SLA_BENCHMARK_GROUP_PARTITIONS=10000,100000 that of the cluster. Knows the questions only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks import (
    speed_cluster,
    speed_history,
    speed_mail,
    speed_merge,
    speed_newsla,
    speed_recompute,
    speed_sample,
    speed_scale,
    speed_slas,
    speed_snapshot,
    speed_tasks,
    speed_year,
)
from benchmarks.printed import PAGES, put
from benchmarks.speed_table import machine, say

_SHORTER = "KAFKA_SLA_BENCHMARK_DAYS"
_DAYS = float(os.environ.get(_SHORTER, "30"))
_SIZES = tuple(map(int, os.environ.get("KAFKA_SLA_BENCHMARK_GROUP_PARTITIONS", "10000,100000,1000000").split(",")))
_ASKED: dict[str, tuple[str, Callable[[], str]]] = {
    "snapshot": ("speed.md", speed_snapshot.compare),
    "tasks": ("speed.md", speed_tasks.compare),
    "merge": ("speed.md", speed_merge.compare),
    "growth": ("speed.md", lambda: speed_recompute.growth(PAGES)),
    "past": ("speed.md", lambda: speed_recompute.past(_DAYS)),
    "newsla": ("speed.md", lambda: speed_newsla.added([days for days in (1, 7, 30) if days <= _DAYS] or [_DAYS])),
    "mail": ("speed.md", speed_mail.starting),
    "minute": ("speed.md", speed_mail.standing),
    "history": ("speed.md", speed_history.day),
    "year": ("speed.md", lambda: speed_year.grown(max(1, round(float(os.environ.get(_SHORTER, "365")))))),
    "wire": ("scale.md", speed_snapshot.wire),
    "scale": ("scale.md", speed_scale.interval),
    "cluster": ("scale.md", lambda: speed_cluster.interval(_SIZES)),
    "slas": ("scale.md", speed_slas.grown),
    "sample": ("speed.md", speed_sample.cost),
}
"""By name: the page that the answer stands in, and what answers."""


def main(names: list[str]) -> int:
    if strangers := [name for name in names if name not in _ASKED]:
        print(f"no benchmark is called {strangers[0]!r}; there are: {', '.join(_ASKED)}", file=sys.stderr)
        return 2
    for name in names or list(_ASKED):
        page, answer = _ASKED[name]
        say(f"{name} …")
        text = answer() + f"\n\n<sub>{datetime.now(UTC):%Y-%m-%d}, {machine()}</sub>"
        put(page, f"make speed ONLY={name}", text)
        print(f"## {name}\n\n{text}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
