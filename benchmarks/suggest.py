"""Do proposed objectives hold the next day, and how long does it take to propose them?

    python -m benchmarks.suggest                # the tables of docs/reference/suggest.md, written there too
    python -m benchmarks.suggest --cases 50     # a quick look
    python -m benchmarks.suggest --only holds   # or: speed

Consumers of eight kinds, from a seed: what is proposed after so many days of each, and whether the day after had the
attainment that it asks for. The rules were tuned on seeds below 100.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.printed import put
from benchmarks.speed_table import machine, table
from benchmarks.suggest_store import seconds_of
from benchmarks.suggest_world import DAY, KINDS, Floats, days
from kafka_sla.sla.suggestion import BAD, GOOD, LATE_SHARES, OTHER, Codes, Judging, Level, Proposal, proposals

HISTORIES = (1, 3, 7, 28)
CASES, GROUP_PARTITIONS = 200, 1_000
_WINDOW_MS = 60_000


@dataclass(slots=True)
class Score:
    """Proposals of one level for consumers of one kind."""

    cases: int = 0
    held: int = 0
    objectives: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    """Share of the next day's budget."""

    def add(self, one: Proposal, next_day: Floats) -> None:
        codes = judging(next_day)(one.max_latency_ms, one.max_latency_ms)
        bad_share = np.count_nonzero(codes == BAD) / np.count_nonzero(codes != OTHER)
        self.cases += 1
        self.held += bool(1 - bad_share >= one.objective)
        self.objectives.append(one.objective)
        self.spent.append(bad_share / (1 - one.objective))

    def plus(self, other: Score) -> Score:
        return Score(
            self.cases + other.cases,
            self.held + other.held,
            self.objectives + other.objectives,
            self.spent + other.spent,
        )


Scores = dict[tuple[str, Level], Score]


def judging(values: Floats) -> Judging:
    """A consumer that was steady all the time."""

    def codes(threshold_ms: int, limit_ms: float) -> Codes:
        return np.where(np.isnan(values), OTHER, np.where(values > limit_ms, BAD, GOOD)).astype(np.int8)

    return codes


def scores(seed: int, cases: int, history: int) -> tuple[Scores, int]:
    """By kind and level; and for how many nothing was proposed."""
    found: Scores = defaultdict(Score)
    refused = 0
    for kind in KINDS:
        for number in range(cases):
            values = days(kind, seed, number, history + 1)
            known, after = values[: history * DAY], values[history * DAY :]
            proposed = proposals(judging(known), int(np.count_nonzero(known > 0)), _WINDOW_MS)
            refused += isinstance(proposed, str)
            for one in () if isinstance(proposed, str) else proposed:
                found[kind, one.level].add(one, after)
    return found, refused


def holds(seed: int, cases: int) -> tuple[bool, str]:
    """Whether objectives held, and the tables; False where fewer than 95 % did of some level after some number of
    days."""
    rows, of_kinds, enough = [], [], True
    for history in HISTORIES:
        found, refused = scores(seed, cases, history)
        for level in LATE_SHARES:
            whole = Score()
            for kind in KINDS:
                whole = whole.plus(found[kind, level])
            enough &= whole.held >= 0.95 * whole.cases
            rows.append(
                (
                    history,
                    level,
                    f"{whole.held:,} of {whole.cases:,}",
                    _share(whole),
                    _low(whole),
                    f"{median(whole.objectives):.1%}",
                    f"{median(whole.spent):.0%}",
                    refused,
                )
            )
        of_kinds.append((history, *(_share(found[kind, "balanced"]) for kind in KINDS)))
    head = (
        "days known",
        "level",
        "held the next day",
        "share",
        "at least",
        "median objective",
        "median budget spent",
        "no proposal",
    )
    kinds = table(("days known", *KINDS), of_kinds)
    made = f"{cases:,} consumers of each kind, seed {seed}"
    return enough, f"{made}:\n\n{table(head, rows)}\n\nThe balanced ones by kind:\n\n{kinds}"


def _share(score: Score) -> str:
    return f"{score.held / score.cases:.1%}" if score.cases else ""


def _low(score: Score) -> str:
    """Low end of Wilson's interval of 95 % for the share."""
    n, p, z = score.cases, score.held / score.cases, 1.96
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return f"{(middle - half) / (1 + z * z / n):.1%}"


def speed(group_partitions: int) -> str:
    """How long one day of so many group-partitions takes, with many partitions to a topic and with one."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for partitions in (50, 1):
            pairs, clock, processors = seconds_of(Path(folder) / str(partitions), group_partitions, partitions)
            rows.append((f"{group_partitions:,}", partitions, f"{pairs:,}", clock, processors))
    head = ("group-partitions", "partitions of a topic", "groups and topics", "on the clock", "of processors")
    return f"{table(head, rows)}\n\n<sub>{machine()}</sub>"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES, help="consumers of each kind (default 200)")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument(
        "--group-partitions", type=int, default=GROUP_PARTITIONS, help="of the published day (default 1000)"
    )
    parser.add_argument("--only", choices=("holds", "speed"), help="one of the two questions")
    given = parser.parse_args()
    enough = True
    if given.only != "speed":
        enough, text = holds(given.seed, given.cases)
        _say("holds", text, put_down=given.cases == CASES)
    if given.only != "holds":
        _say("speed", speed(given.group_partitions), put_down=given.group_partitions == GROUP_PARTITIONS)
    return 0 if enough else 1


def _say(part: str, text: str, *, put_down: bool) -> None:
    """Print it; what a quick look found is not put into the documents."""
    print(text)
    if put_down:
        put("suggest.md", f"make suggest: {part}", text)


if __name__ == "__main__":
    sys.exit(main())
