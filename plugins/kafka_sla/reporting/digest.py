"""What a digest says of a calendar period: each SLA, what changed since the period before, what was not measured.

Pure but for the ledger that it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Digest, Interval, Sla
from kafka_sla.reporting.digest_schedule import last_instant, period_name, period_of
from kafka_sla.reporting.report import MANY, ReportedSla, gravity, plots_of, quality, reported
from kafka_sla.sla.attainment import Attainment, attainment_of
from kafka_sla.sla.unjudged_partitions import LONG
from kafka_sla.text.formatting import plural, share, span

PLOTS = 6
"""SLAs that are plotted, those in trouble first: a mail with more pictures is not read, and cut by mail readers."""
_SIZE = (6.2, 2.6)
_WORSE = 0.00001
"""Change of attainment below which nothing is said of it: what `share` does not show."""


@dataclass(frozen=True, slots=True)
class Told:
    """A digest in words and pictures, ready for the templates."""

    values: dict[str, Any]
    plots: tuple[tuple[str, bytes], ...]
    """Key that `plots` of `values["slas"]` refer to, and PNG bytes."""


def tell(ledger: Ledger, digest: Digest, slas: Sequence[Sla], period: Interval) -> Told:
    """What the ledger holds of these SLAs in the period, all of one moment; the gravest first."""
    with ledger.at_one_moment():
        return _told(ledger, digest, slas, period)


def _told(ledger: Ledger, digest: Digest, slas: Sequence[Sla], period: Interval) -> Told:
    found = [_of_sla(ledger, digest, sla, period) for sla in slas]
    found.sort(key=lambda row: (gravity(row["sla"]), not row["needs_attention"]))
    judged = [row["sla"] for row in found if row["sla"].judged]
    plots = plots_of(ledger, judged, PLOTS, _SIZE)
    keys = {name: {screen: f"plot-{n}-{screen}" for screen in drawn} for n, (name, drawn) in enumerate(plots.items())}
    rows = [row | {"plots": keys.get(row["sla"].sla.name, {})} for row in found]
    outcomes = Counter(row["sla"].outcome for row in rows)
    name = period_name(digest, period)
    values = {
        "digest": digest,
        "title": f"{digest.name}: {name}",
        "period": name,
        "summary": _summary(outcomes),
        "subject": f"SLA {_ADJECTIVES[digest.every]}: {digest.name}, {name}: {_short(outcomes)}",
        "every": digest.every,
        "slas": rows,
        "many": MANY,
        "attention": sum(row["needs_attention"] for row in rows),
        "details": [row for row in rows if row["plots"] or row["sla"].misses or row["burns"]],
        "quality": quality(ledger.validations.results(period)),
        "changes": [row["change"] for row in rows if row["change"]],
        "gaps": [row["gap"] for row in rows if row["gap"]],
        "unjudged": [text for row in rows for text in row["unjudged"]],
        "exclusions": [text for row in rows for text in row["exclusions"]],
        "plots_left_out": len(judged) - len(plots),
    }
    return Told(values, tuple((keys[name][screen], png) for name in plots for screen, png in plots[name].items()))


def _of_sla(ledger: Ledger, digest: Digest, sla: Sla, period: Interval) -> dict[str, Any]:
    one = reported(ledger, sla, period, last_instant(digest, sla, period))
    burns = ledger.burns.of([sla.name], period) if sla.burn_pairs else []
    before = period_of(digest, period.start - timedelta(microseconds=1))
    past = attainment_of(sla, before, before.end, ledger.verdicts.sums(sla, before))
    misses = sum(not miss.exclusion for miss in ledger.verdicts.misses(sla, before))
    return {
        "sla": one,
        "change": _change(digest, sla, one.within, past, len(one.counted), misses),
        "notes": ledger.triage.notes(one.misses),
        "gap": _gap(digest, one),
        "unjudged": _describe_unjudged(ledger, sla, period),
        "exclusions": _exclusions(one),
        "trend": _trend(one.within.attainment, past.attainment),
        "burns": burns,
        "needs_attention": _needs_attention(one) or bool(burns),
    }


def _needs_attention(one: ReportedSla) -> bool:
    return one.outcome != "met" or bool(one.misses) or one.period.budget in ("at_risk", "exhausted")


def _change(digest: Digest, sla: Sla, now: Attainment, past: Attainment, misses: int, before: int) -> str | None:
    """What is worth a sentence; None when the two periods are alike, or one of them is unknown."""
    if now.attainment is None or past.attainment is None:
        return None
    told = []
    if abs(moved := now.attainment - past.attainment) >= _WORSE:
        verb = "rose" if moved > 0 else "fell"
        told.append(f"attainment {verb} from {share(past.attainment)} to {share(now.attainment)}")
    if misses != before:
        told.append(
            f"{plural(misses, 'miss', 'misses') if misses else 'no miss'}, after {before or 'none'} the"
            f" {digest.every} before"
        )
    return f"{sla.name}: {'; '.join(told)}." if told else None


def _gap(digest: Digest, one: ReportedSla) -> str | None:
    """How much of the period is unknown and why; None when all of it was measured."""
    unknown = one.within.unknown_ms
    if not unknown:
        return None
    why: Counter[str] = Counter()
    for time in one.judged:
        if time.verdict == "unknown":
            why[time.reason or "no data"] += time.ms
    why["never measured"] = unknown - sum(why.values())
    told = ", ".join(f"{span(ms)} {reason}" for reason, ms in why.most_common(3) if ms)
    return f"{one.sla.name}: nothing is known about {span(unknown)} of the {digest.every} ({told})."


def _describe_unjudged(ledger: Ledger, sla: Sla, period: Interval) -> list[str]:
    """Partitions that have not been judged for longer than a day at the end of the period."""
    parts = ledger.unjudged_partitions.of([sla.name]).get(sla.name, [])
    return [f"{sla.name}: {part.text}." for part in parts if part.since <= period.end - LONG]


def _exclusions(one: ReportedSla) -> list[str]:
    """What people excluded afterwards, the longest first: `payments: 2 h excluded afterwards by ada: load test.`"""
    excluded = Counter[str]()
    for time in one.judged:
        if time.excluded_afterwards:
            excluded[time.reason] += time.ms
    return [f"{one.sla.name}: {span(ms)} {reason}." for reason, ms in excluded.most_common()]


def _trend(now: float | None, past: float | None) -> str:
    """In words, so that it is not told by colour or arrow alone."""
    if now is None or past is None:
        return "not known before" if past is None else ""
    if abs(now - past) < _WORSE:
        return "as before"
    return f"{'better' if now > past else 'worse'}, was {share(past)}"


def _summary(outcomes: Counter[str]) -> str:
    total = sum(outcomes.values())
    if not total:
        return "No SLA belongs to this digest."
    rest = [
        f"{outcomes[kind]} {_were(outcomes[kind])} {words}"
        for kind, words in (("excluded", "excluded throughout"), ("unknown", "not measured"))
        if outcomes[kind]
    ]
    return " ".join([_judged(outcomes["met"], outcomes["missed"]), *(f"{text}." for text in rest)])


def _judged(met: int, missed: int) -> str:
    if not met + missed:
        return "No SLA could be judged."
    if not missed:
        return f"{_all(met)} met."
    if not met:
        return f"{_all(missed)} missed."
    return f"{met} of {met + missed} SLAs {_were(met)} met, {missed} {_were(missed)} missed."


def _all(number: int) -> str:
    return {1: "The SLA was", 2: "Both SLAs were"}.get(number, f"All {number} SLAs were")


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _short(outcomes: Counter[str]) -> str:
    return ", ".join(f"{outcomes[k]} {k}" for k in ("missed", "met", "excluded", "unknown") if outcomes[k]) or "nothing"


_ADJECTIVES = {"day": "daily", "week": "weekly", "month": "monthly"}
