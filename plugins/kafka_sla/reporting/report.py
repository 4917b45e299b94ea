"""One HTML file that says how promises were kept in an interval, readable and printable anywhere. Knows no metric."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kafka_sla.files import write_text
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, Sla, SlaWindow, Verdict
from kafka_sla.reporting.charts import latency_plot
from kafka_sla.reporting.templates import render
from kafka_sla.sla.attainment import Attainment, attainment_in, attainment_of, period_until
from kafka_sla.sla.root_cause.evidence import evidence_rows
from kafka_sla.text.formatting import UNKNOWN, bounds, count, moment, plural, share, span

Outcome = Literal["met", "missed", "excluded", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("good", "bad", "excluded", "unknown")
MANY = 20
"""Misses and broken expectations told one by one; of more only the number is said, and the command that lists them."""


@dataclass(frozen=True, slots=True)
class ReportedSla:
    """One promise in the reported interval, and in its calendar period until the interval's end."""

    sla: Sla
    interval: Interval
    windows: tuple[SlaWindow, ...]
    misses: tuple[Miss, ...]
    period: Attainment

    @property
    def within(self) -> Attainment:
        return attainment_in(self.sla, self.windows, self.interval)

    @property
    def outcome(self) -> Outcome:
        """Missed when a miss touches the interval; kept when something is known and none does."""
        verdicts = {w.verdict for w in self.windows}
        if self.misses:
            return "missed"
        if verdicts & {"good", "bad"}:
            return "met"
        return "excluded" if "excluded" in verdicts else "unknown"


def write_report(path: Path, ledger: Ledger, slas: Sequence[Sla], interval: Interval) -> Path:
    """Write the report of these SLAs from what the ledger holds, and answer where it is."""
    page = html_report(
        interval, [reported(ledger, sla, interval) for sla in slas], ledger.validations.results(interval)
    )
    write_text(str(path.absolute()), page)
    return path


def reported(ledger: Ledger, sla: Sla, interval: Interval) -> ReportedSla:
    """What the ledger holds of one SLA."""
    period, windows = period_until(sla, interval.end), ledger.verdicts.windows(sla, interval)
    sums = ledger.verdicts.sums(sla, Interval(period.start, interval.end))
    return ReportedSla(
        sla,
        interval,
        windows,
        tuple(ledger.verdicts.misses(sla, interval)),
        attainment_of(sla, period, interval.end, sums),
    )


def html_report(interval: Interval, slas: Sequence[ReportedSla], validation: Sequence[Mapping[str, Any]]) -> str:
    """The page: a summary of all promises, each with its plot and misses, and what validation said of the data."""
    told = [{**sla_values(one), "anchor": f"sla-{n}", "plot": _plot(one)} for n, one in enumerate(slas, 1)]
    values = {
        "start": moment(interval.start), "end": moment(interval.end), "length": span(_ms(interval)),
        "slas": told, "outcomes": Counter(one.outcome for one in slas), "quality": quality(validation), "many": MANY,
    }  # fmt: skip
    return render("reporting/report.html.j2", values)


def sla_values(one: ReportedSla) -> dict[str, Any]:
    """Every value that reports and digests tell of one SLA, in words."""
    within, period = one.within, one.period
    parts = {v: ms for v, ms in zip(VERDICTS, _lengths(within), strict=True) if ms}
    known = [w.worst_latency_ms for w in one.windows if w.worst_latency_ms is not None]
    return {
        "sla": one.sla, "outcome": one.outcome,
        "promised": span(one.sla.max_latency_ms),
        "lasting": span(one.sla.for_ms) if one.sla.for_ms else None,
        "objective": share(one.sla.objective), "worst": span(max(known)) if known else UNKNOWN,
        "attainment": share(within.attainment), "coverage": share(within.coverage),
        "records": share(within.records_attainment),
        "consumed": count(within.records_consumed), "over": count(within.records_over_threshold),
        "parts": [(v, 100 * ms / _ms(one.interval), span(ms)) for v, ms in parts.items()],
        "period": _period(one.sla, period),
        "misses": [_miss(m) for m in one.misses[:MANY]], "all_misses": len(one.misses),
        "reasons": _reasons(one.windows),
    }  # fmt: skip


def _plot(one: ReportedSla) -> str | None:
    return b64encode(latency_plot(one.sla, one.windows, one.misses)).decode() if one.windows else None


def _lengths(within: Attainment) -> tuple[int, ...]:
    return within.good_ms, within.bad_ms, within.excluded_ms, within.unknown_ms


def _period(sla: Sla, found: Attainment) -> dict[str, Any]:
    burn = found.burn_rate
    return {
        "name": sla.period, "start": moment(found.period.start), "zone": sla.time_zone, "met": found.met,
        "attainment": share(found.attainment), "records": share(found.records_attainment),
        "coverage": share(found.coverage),
        "budget": span(found.budget_ms), "left": span(found.budget_left_ms), "overspent": found.budget_left_ms < 0,
        "burn": UNKNOWN if burn is None else f"{burn:,.0f}" if burn >= 10 else f"{burn:.2g}",
    }  # fmt: skip


def _miss(miss: Miss) -> dict[str, Any]:
    length = span(_ms(Interval(miss.start, miss.end))) if miss.end else None
    return {
        "miss": miss, "start": moment(miss.start), "end": moment(miss.end) if miss.end else None, "length": length,
        "worst": span(miss.worst_latency_ms), "worst_at": moment(miss.worst_at),
        "bounds": bounds(miss.worst_latency_low_ms, miss.worst_latency_high_ms),
        "windows": plural(miss.bad_windows, "bad window"), "cause": miss.evidence.get("sentence"),
        "figures": evidence_rows(miss.evidence),
    }  # fmt: skip


def _reasons(windows: Sequence[SlaWindow]) -> list[tuple[str, str, str]]:
    """Why time was excluded or unknown, the longest first: verdict, reason, how long."""
    lengths: Counter[tuple[str, str]] = Counter()
    for window in windows:
        if window.reason:
            lengths[window.verdict, window.reason] += _ms(window.window)
    return [(verdict, reason, span(ms)) for (verdict, reason), ms in lengths.most_common(5)]


def quality(validation: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many expectations held, of which loads, and the ones that did not: the gravest and newest first."""
    gravity = {"critical": 0, "warning": 1, "info": 2}
    broken = sorted((r for r in validation if not r["success"]), key=lambda r: r["interval_start"], reverse=True)
    broken.sort(key=lambda r: gravity.get(r["severity"], 3))
    return {
        "all": len(validation), "held": len(validation) - len(broken), "loads": len({r["load_id"] for r in validation}),
        "broken": [{**r, "when": moment(r["interval_start"]), "rows": r["unexpected_rows"]} for r in broken[:MANY]],
        "all_broken": len(broken),
    }  # fmt: skip


def _ms(interval: Interval) -> int:
    return round((interval.end - interval.start).total_seconds() * 1000)
