"""How alerts on burn rates do over a synthetic year of many SLAs: against Prometheus' rules, and against what happened.

    python -m benchmarks.burn              # the tables of docs/reference/burn.md
    python -m benchmarks.burn --slas 50    # a quick look

Three questions: do alerts begin and end when Prometheus' evaluation of the same rules says so (a plain loop over
every minute, and `promtool` where it is on the path); what do `for` alone, the SRE Workbook's pairs and the defaults
find of incidents that matter; how long does a run take to judge all SLAs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.burn_promtool import agrees
from benchmarks.burn_store import seconds_of_a_run
from benchmarks.burn_world import Incident, Year, year
from kafka_sla.model.entities import BurnPair, Patterns, Sla, SteadyState
from kafka_sla.sla.burn import Lookback, burns, lookbacks

START = datetime(2025, 1, 1, tzinfo=UTC)
MINUTE_MS = 60_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
FOR_MINUTES = 5
_WITHIN = 360
"""Minutes after an incident in which an alert still belongs to it: the ticket's short time."""


def _pairs(floor_ms: int) -> tuple[BurnPair, ...]:
    return (
        BurnPair(14.4, HOUR_MS, 5 * MINUTE_MS, "page", floor_ms),
        BurnPair(6.0, 6 * HOUR_MS, 30 * MINUTE_MS, "page", floor_ms),
        BurnPair(1.0, 3 * DAY_MS, 6 * HOUR_MS, "ticket", floor_ms),
    )


PLAIN, FLOORED = _pairs(1), _pairs(FOR_MINUTES * MINUTE_MS)
Alert = tuple[int, int | None]
"""Minutes at which an alert begins and ends; None: it does not end within the year."""


def alerted(pairs: tuple[BurnPair, ...]) -> Sla:
    """An SLA of 99.9 % with these alerts."""
    return Sla(
        "payments within 30 s",
        "prod",
        Patterns(),
        Patterns(),
        30_000,
        FOR_MINUTES * MINUTE_MS,
        0.999,
        SteadyState(30_000),
        period="30d",
        burn_pairs=pairs,
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """The alerts of one SLA's year, by who alerts."""

    by_for: list[Alert]
    by_pairs: dict[tuple[BurnPair, ...], list[tuple[str, Alert]]]
    """Severity and alert."""


def judge(of: Year) -> Judged:
    """The year through the library's rules."""
    back = _back(of)
    minutes = range(1, len(of.known) + 1)
    found = {
        pairs: [(b.severity, (b.start, b.end)) for b in _burns(alerted(pairs), minutes, back)]
        for pairs in (PLAIN, FLOORED)
    }
    return Judged(misses(of), found)


def _burns(sla: Sla, minutes: Any, back: dict[int, Lookback]) -> list[Any]:
    instants = _Instants(len(minutes))
    found = burns(sla, instants, back)
    return [_Minutes(b.severity, _minute(b.start), _minute(b.end) if b.end else None) for b in found]


@dataclass(frozen=True, slots=True)
class _Minutes:
    severity: str
    start: int
    end: int | None


class _Instants(list[datetime]):
    """Window ends of a year, made only where they are asked for."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return START + timedelta(minutes=int(index) + 1)


def _minute(at: datetime) -> int:
    return (at - START) // timedelta(minutes=1)


def _back(of: Year) -> dict[int, Lookback]:
    sums = {
        name: np.concatenate([[0], np.cumsum(values * MINUTE_MS)])
        for name, values in (("known", of.known.astype(np.int64)), ("bad", of.bad.astype(np.int64)))
    }
    ends = np.arange(1, len(of.known) + 1)

    def over(values: Any, length: int) -> Any:
        return values[ends] - values[np.maximum(0, ends - length // MINUTE_MS)]

    return {n: Lookback(over(sums["known"], n), over(sums["bad"], n)) for n in lookbacks(alerted(PLAIN))}


def misses(of: Year) -> list[Alert]:
    """Runs of bad windows with only unknown ones between them, once they are `for` long."""
    known = np.flatnonzero(of.known)
    bad = np.concatenate([[False], of.bad[known], [False]])
    first, after = np.flatnonzero(~bad[:-1] & bad[1:]), np.flatnonzero(bad[:-1] & ~bad[1:])
    return [
        (int(known[a + FOR_MINUTES - 1]) + 1, int(known[b - 1]) + 1)
        for a, b in zip(first, after, strict=True)
        if b - a >= FOR_MINUTES
    ]


def plain_loop(of: Year, pairs: tuple[BurnPair, ...]) -> list[tuple[str, Alert]]:
    """What Prometheus does, written down plainly: each minute, each rule over the samples of its ranges."""
    found: list[tuple[str, Alert]] = []
    for severity in ("page", "ticket"):
        mine = [pair for pair in pairs if pair.severity == severity]
        lengths = sorted({n // MINUTE_MS for pair in mine for n in (pair.long_ms, pair.short_ms)})
        total, bad = dict.fromkeys(lengths, 0), dict.fromkeys(lengths, 0)
        began: int | None = None
        knowns, bads = of.known.tolist(), of.bad.tolist()
        for minute in range(len(knowns)):
            for n in lengths:
                total[n] += knowns[minute]
                bad[n] += bads[minute]
                if minute >= n:
                    total[n] -= knowns[minute - n]
                    bad[n] -= bads[minute - n]
            state = _state(mine, total, bad)
            if state is True and began is None:
                began = minute + 1
            elif state is False and began is not None:
                found.append((severity, (began, minute + 1)))
                began = None
        if began is not None:
            found.append((severity, (began, None)))
    return found


def _state(pairs: list[BurnPair], total: dict[int, int], bad: dict[int, int]) -> bool | None:
    unknown = False
    for pair in pairs:
        long, short, limit = pair.long_ms // MINUTE_MS, pair.short_ms // MINUTE_MS, pair.burn_rate * (1 - 0.999)
        if not total[long] or not total[short]:
            unknown = True
        elif (
            bad[long] / total[long] > limit
            and bad[short] / total[short] > limit
            and (bad[long] * MINUTE_MS >= pair.min_bad)
        ):
            return True
    return None if unknown else False


@dataclass(frozen=True, slots=True)
class Score:
    """How alerts did."""

    alerts: int = 0
    right: int = 0
    """Alerts that belong to an incident that matters."""
    incidents: int = 0
    found: int = 0
    detection: tuple[int, ...] = ()
    """Minutes from the beginning of each incident that was found to its first alert."""
    reset: tuple[int, ...] = ()
    """Minutes from its end until its last alert ended."""


def score(incidents: list[Incident], alerts: list[Alert], so_far: Score) -> Score:
    """Alerts of one SLA against what happened; several of one incident are several alerts and one find."""
    serious = [one for one in incidents if one.matters]
    mine = [[a for a in alerts if one.start <= a[0] <= one.end + _WITHIN] for one in serious]
    right = {a for of in mine for a in of}
    found = [(one, of) for one, of in zip(serious, mine, strict=True) if of]
    ended = [(one, max(a[1] for a in of if a[1])) for one, of in found if any(a[1] for a in of)]
    return Score(
        so_far.alerts + len(alerts),
        so_far.right + len(right),
        so_far.incidents + len(serious),
        so_far.found + len(found),
        (*so_far.detection, *(min(of)[0] - one.start for one, of in found)),
        (*so_far.reset, *(max(0, end - one.end) for one, end in ended)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slas", type=int, default=1_000, help="SLAs with a year each (default 1000)")
    parser.add_argument("--loops", type=int, default=20, help="of them, compared with the plain loop (default 20)")
    parser.add_argument("--stored", type=int, default=1_000, help="SLAs that one run judges (default 1000)")
    parser.add_argument("--seed", type=int, default=17)
    given = parser.parse_args()
    table, compared, equal = _years(given.slas, given.loops, given.seed)
    loops = f"{min(given.loops, given.slas)} SLAs, with and without floors"
    print(f"{given.slas:,} SLAs, a year each, seed {given.seed}\n")
    print(f"equal to a plain loop over every minute: {equal:,} of {compared:,} alerts of {loops}")
    print(f"equal to promtool: {_promtool(given.seed)}\n")
    print("| alerts | a year and SLA | precision | recall | detection, median (95 %) | reset, median (95 %) |")
    print("|---|---|---|---|---|---|")
    for name, of_name in table.items():
        print(_line(name, of_name, given.slas))
    with tempfile.TemporaryDirectory() as folder:
        took = seconds_of_a_run(Path(folder), given.stored, alerted(FLOORED))
    print(f"\njudging {given.stored:,} SLAs after a run of five minutes: {'; '.join(took)}")
    return 0 if equal == compared else 1


def _years(slas: int, loops: int, seed: int) -> tuple[dict[str, Score], int, int]:
    """The scores by who alerts; of the first SLAs how many alerts were compared with the plain loop, and are equal."""
    table: dict[str, Score] = {}
    compared = equal = 0
    for number in range(slas):
        of = year(seed, number)
        found = judge(of)
        for name, alerts in _rows(found).items():
            table[name] = score(of.incidents, alerts, table.get(name, Score()))
        for pairs in (PLAIN, FLOORED) if number < loops else ():
            ours, theirs = set(found.by_pairs[pairs]), set(plain_loop(of, pairs))
            compared, equal = compared + len(ours | theirs), equal + len(ours & theirs)
    return table, compared, equal


def _rows(found: Judged) -> dict[str, list[Alert]]:
    def of(pairs: tuple[BurnPair, ...], *severities: str) -> list[Alert]:
        return [alert for severity, alert in found.by_pairs[pairs] if severity in severities]

    return {
        "`for: 5m` alone": found.by_for,
        "the Workbook's pages": of(PLAIN, "page"),
        "the Workbook's pages and ticket": of(PLAIN, "page", "ticket"),
        "`workbook`, pages: floor of 5 min": of(FLOORED, "page"),
        "`workbook`, pages and ticket": of(FLOORED, "page", "ticket"),
        "`ticket`: `for: 5m`, and the ticket": found.by_for + of(FLOORED, "ticket"),
    }


def _line(name: str, of: Score, slas: int) -> str:
    times = (
        f"{_minutes(median(v))} ({_minutes(float(np.percentile(v, 95)))})" if v else ""
        for v in (of.detection, of.reset)
    )
    shares = f"{of.right / max(1, of.alerts):.1%} | {of.found / max(1, of.incidents):.1%}"
    return f"| {name} | {of.alerts / slas:.1f} | {shares} | {' | '.join(times)} |"


def _minutes(value: float) -> str:
    return f"{value:.0f} min" if value < 120 else f"{value / 60:.1f} h"


def _promtool(seed: int) -> str:
    tool = shutil.which("promtool")
    if tool is None:
        return "not compared, promtool is not on the path"
    years = [year(seed, n, days=8, busy=20) for n in range(3)]
    return agrees(tool, [(of, judge(of).by_pairs[FLOORED]) for of in years], FLOORED)


if __name__ == "__main__":
    sys.exit(main())
