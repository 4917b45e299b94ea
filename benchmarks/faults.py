"""`python -m benchmarks.faults [kafka] [store]`: what becomes of the measuring when the world around it fails?

Breaks real brokers, a real Postgres, the disk and a mail server while the steps of the pipeline run with the retries
that the DAGs have, and prints as Markdown what happened. Exit status 1 when rows were lost, or a person had to come.
Knows the order of things only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from benchmarks import faults_kafka, faults_store
from benchmarks.faults_grid import HEAD, Outcome, line
from demo.broker import archive_classes

_BEGAN = time.monotonic()
_HALVES = {"kafka": faults_kafka.experiments, "store": faults_store.experiments}


def main(halves: Sequence[str]) -> int:
    """Run the experiments of these halves, or all; 1 when one shows a loss, 2 for a half that is none."""
    if strangers := [half for half in halves if half not in _HALVES]:
        print(f"no half of the faults is called {strangers[0]!r}; there are: {', '.join(_HALVES)}", file=sys.stderr)
        return 2
    archive_classes()
    found: list[Outcome] = []
    print(HEAD, flush=True)
    for half in halves or list(_HALVES):
        for outcome in _HALVES[half]():
            found.append(outcome)
            print(line(outcome), flush=True)
            print(f"[{time.monotonic() - _BEGAN:4.0f} s] {outcome.fault}: {outcome.state}", file=sys.stderr, flush=True)
    return int(not all(outcome.held for outcome in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
