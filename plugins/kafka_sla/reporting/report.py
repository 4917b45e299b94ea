"""One HTML file that says how SLAs were met in an interval, readable and printable anywhere."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kafka_sla.files import write_text
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.verdicts import JudgedTime
from kafka_sla.model.entities import Interval, Miss, Sla, Verdict
from kafka_sla.reporting.charts import latency_plots
from kafka_sla.reporting.templates import render
from kafka_sla.sla.attainment import Attainment, attainment_of
from kafka_sla.sla.periods import period_around, period_until
from kafka_sla.sla.wording import limits_of
from kafka_sla.text.formatting import moment

Outcome = Literal["met", "missed", "excluded", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("good", "bad", "excluded", "unknown")
Plots = Mapping[str, bytes]
"""One SLA's plot for light and for dark screens, by that name."""
MANY = 20
"""Misses and broken expectations told one by one; of more only the number is said, and the command that lists them."""
_MOST_PLOTS = 20
"""SLAs that are plotted, those in trouble first: more take minutes to draw and megabytes to send."""
_GRAVITY: dict[Outcome, int] = {"missed": 0, "unknown": 1, "excluded": 2, "met": 3}


@dataclass(frozen=True, slots=True)
class ReportedSla:
    """One SLA in the reported interval, and in its own period until the interval's end. Keeps no windows: hundreds of
    SLAs have millions of them in a month."""

    sla: Sla
    interval: Interval
    judged: tuple[JudgedTime, ...]
    misses: tuple[Miss, ...]
    within: Attainment
    period: Attainment
    limits: str

    @property
    def worst_latency_ms(self) -> float | None:
        return max((t.worst_latency_ms for t in self.judged if t.worst_latency_ms is not None), default=None)

    @property
    def parts(self) -> list[tuple[Verdict, int, float]]:
        """Verdicts that time was spent in, how long, and per cent of the interval."""
        spent = {verdict: getattr(self.within, f"{verdict}_ms") for verdict in VERDICTS}
        return [(verdict, ms, 100 * ms / _ms(self.interval)) for verdict, ms in spent.items() if ms]

    @property
    def reasons(self) -> list[tuple[str, str, int]]:
        """Why time was excluded or unknown, the longest first: verdict, reason, how long."""
        lengths: Counter[tuple[str, str]] = Counter()
        for time in self.judged:
            if time.reason and time.verdict != "bad":
                lengths[time.verdict, time.reason] += time.ms
        return [(verdict, reason, ms) for (verdict, reason), ms in lengths.most_common(5)]

    @property
    def counted(self) -> tuple[Miss, ...]:
        """The misses that nobody excluded afterwards."""
        return tuple(miss for miss in self.misses if not miss.exclusion)

    @property
    def outcome(self) -> Outcome:
        """Missed when a miss touches the interval; kept when something is known and none does; excluded when all that
        was judged was."""
        verdicts = {time.verdict for time in self.judged}
        if self.counted:
            return "missed"
        if verdicts & {"good", "bad"}:
            return "met"
        return "excluded" if verdicts == {"excluded"} else "unknown"


def write_report(path: Path, ledger: Ledger, slas: Sequence[Sla], interval: Interval) -> Path:
    """Write the report of these SLAs from what the ledger holds, and answer where it is."""
    with ledger.at_one_moment():
        found = [reported(ledger, sla, interval) for sla in slas]
        plots = plots_of(ledger, found, _MOST_PLOTS)
        validation = ledger.validations.results(interval)
    page = html_report(interval, [(one, plots.get(one.sla.name, {})) for one in found], validation)
    write_text(str(path.absolute()), page)
    return path


def gravity(one: ReportedSla) -> int:
    """For sorting: who is in trouble comes first."""
    return _GRAVITY[one.outcome]


def plots_of(
    ledger: Ledger, slas: Sequence[ReportedSla], at_most: int, size: tuple[float, float] = (8.0, 3.0)
) -> dict[str, Plots]:
    """Plots of so many of these SLAs, by name: of those in trouble first, of none of which nothing was judged."""
    judged = sorted((one for one in slas if one.judged), key=gravity)[:at_most]
    return {
        one.sla.name: latency_plots(one.sla, ledger.verdicts.windows(one.sla, one.interval), one.counted, size=size)
        for one in judged
    }


def reported(ledger: Ledger, sla: Sla, interval: Interval, last: datetime | None = None) -> ReportedSla:
    """What the ledger holds of one SLA; `last`: an instant of the calendar period to report, else its end decides."""
    period = period_around(sla, last, interval.end) if last else period_until(sla, interval.end)
    until, verdicts = min(interval.end, period.end), ledger.verdicts
    return ReportedSla(
        sla,
        interval,
        tuple(verdicts.judged_time(sla.name, interval)),
        tuple(verdicts.misses(sla, interval)),
        attainment_of(sla, interval, interval.end, verdicts.sums(sla, interval)),
        attainment_of(sla, period, until, verdicts.sums(sla, Interval(period.start, until))),
        limits_of(verdicts.thresholds(sla.name, interval), sla),
    )


def html_report(
    interval: Interval, slas: Sequence[tuple[ReportedSla, Plots]], validation: Sequence[Mapping[str, Any]]
) -> str:
    """The page: a summary of all SLAs, each with its plot and misses, and what validation said of the data."""
    values = {
        "interval": interval,
        "length_ms": _ms(interval),
        "slas": [(one, {name: b64encode(plot).decode() for name, plot in plots.items()}) for one, plots in slas],
        "outcomes": Counter(one.outcome for one, _ in slas),
        "quality": quality(validation),
        "many": MANY,
    }
    return render("reporting/report.html.j2", values)


def quality(validation: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many expectations held, of which loads, and the ones that did not: the gravest and newest first."""
    ranks = {"critical": 0, "warning": 1, "info": 2}
    broken = sorted((r for r in validation if not r["success"]), key=lambda r: r["interval_start"], reverse=True)
    broken.sort(key=lambda r: ranks.get(r["severity"], 3))
    return {
        "all": len(validation),
        "held": len(validation) - len(broken),
        "loads": len({r["load_id"] for r in validation}),
        "broken": [{**r, "when": moment(r["interval_start"]), "rows": r["unexpected_rows"]} for r in broken[:MANY]],
        "all_broken": len(broken),
    }


def _ms(interval: Interval) -> int:
    return round((interval.end - interval.start).total_seconds() * 1000)
