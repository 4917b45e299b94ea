"""What a mail about a miss adds to the miss: where to read on, what it cost, what else is missed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode, urlsplit

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.triage import Note
from kafka_sla.model.entities import Interval, Miss, Sla, SlaWindow
from kafka_sla.notifications.notices import Notice
from kafka_sla.sla.attainment import Attainment, attainment_of
from kafka_sla.sla.catch_up import CatchUp
from kafka_sla.sla.periods import period_until
from kafka_sla.sla.wording import budget, budget_left
from kafka_sla.text.formatting import count, plural, span
from kafka_sla.text.natural_order import natural
from kafka_sla.text.periods import the_period
from kafka_sla.text.timestamps import instant_text

_BEFORE = timedelta(minutes=30)
_NAMED = 5
"""Other SLAs that a mail names; of more only the number."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the ledger holds beside the miss."""

    period: Attainment | None = None
    """The SLA's period up to its newest verdict."""
    others: tuple[Miss, ...] = ()
    """Misses of other SLAs at the same time."""
    notes: tuple[Note, ...] = ()
    """What people noted about the miss."""
    catch_up: CatchUp | None = None
    """When the SLA's consumers will have caught up; None where it is over, or nobody computed it."""


def surroundings(ledger: Ledger, sla: Sla, miss: Miss, until: datetime) -> Surroundings:
    """What the ledger holds: the period up to that time, and what else was missed during the miss."""
    period = period_until(sla, until)
    sums = ledger.verdicts.sums(sla, Interval(period.start, until))
    others = ledger.verdicts.misses(None, Interval(miss.start, miss.end or until))
    notes = ledger.triage.notes([miss])[miss.id]
    return Surroundings(attainment_of(sla, period, until, sums), tuple(others), tuple(notes))


def links(sla: Sla, notice: Notice) -> list[tuple[str, str]]:
    """Name and address of what helps, first what says what to do; addresses of anything but web pages are left out."""
    found = [
        ("Runbook", sla.runbook),
        ("Miss", miss_url(notice.run_url, notice.miss.id)),
        ("SLA", sla_url(notice.run_url, sla.name)),
        ("Airflow run", _run(notice.run_url)),
    ]
    return [(name, url) for name, url in found if url and urlsplit(url).scheme in ("http", "https")]


def miss_url(run_url: str | None, miss_id: str) -> str:
    """The page of a miss; empty where nobody knows where Airflow is."""
    base = _base(run_url)
    return f"{base}/kafka-sla/misses/{miss_id}" if base else ""


def sla_url(run_url: str | None, name: str) -> str:
    """The page of an SLA; empty where nobody knows where Airflow is."""
    base = _base(run_url)
    return f"{base}/kafka-sla/slas/{quote(name)}" if base else ""


def overview_url(run_url: str | None) -> str:
    """The page of all SLAs; empty where nobody knows where Airflow is."""
    base = _base(run_url)
    return f"{base}/kafka-sla/" if base else ""


def misses_url(run_url: str | None, since: datetime) -> str:
    """The page of all misses from that time on; empty where nobody knows where Airflow is."""
    base = _base(run_url)
    return f"{base}/kafka-sla/misses?{urlencode({'from': instant_text(since)})}" if base else ""


def incident_links(run_url: str | None, misses: Sequence[Miss]) -> list[tuple[str, str]]:
    """Name and address of what helps with several misses."""
    url = misses_url(run_url, min(miss.start for miss in misses))
    return [*([("All misses", url)] if url else []), *run_link(run_url)]


def run_link(run_url: str | None) -> list[tuple[str, str]]:
    """Name and address of the run that found it; nothing where that is no page."""
    return [("Airflow run", url)] if (url := _run(run_url)) else []


def commands(sla: Sla, miss: Miss, until: datetime) -> list[str]:
    """What to type to see more, at a shell that has the configuration."""
    start, end = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (miss.start - _BEFORE, until))
    named = shlex.quote(f"--sla={sla.name}") if sla.name.startswith("-") else f"--sla {shlex.quote(sla.name)}"
    return [
        f"kafka-sla misses {named} --from {start} --json",
        f"kafka-sla export consumer_latency --cluster {miss.cluster} --from {start} --to {end}",
    ]


def cost(sla: Sla, miss: Miss, windows: Sequence[SlaWindow], period: Attainment | None) -> str:
    """`21 min of the 43 min 12 s of error budget of this month; 22 min 12 s are left. 18,900 records were late.`"""
    inside = Interval(miss.start, miss.end) if miss.end else None
    bad = [
        w
        for w in windows
        if w.verdict == "bad" and w.window.start >= miss.start and (inside is None or w.window.end <= inside.end)
    ]
    if not bad:
        return ""
    lost = span(sum((w.window.end - w.window.start for w in bad), timedelta()) / timedelta(milliseconds=1))
    late = sum(w.records_late for w in bad)
    records = f" {plural(late, 'record')} {'was' if late == 1 else 'were'} late." if late else ""
    if period is None or not period.allowed:
        return f"{lost} of bad time.{records}"
    left = budget_left(period)
    rest = f"{left} left" if period.left >= 0 else f"overspent by {left.removeprefix('−')}"
    if period.objective_of == "records":
        return (
            f"{lost} of bad time, {plural(late, 'late record')} of the {budget(period)} that may be late in"
            f" {the_period(sla.period)}; {rest}."
        )
    return f"{lost} of the {budget(period)} error budget of {the_period(sla.period)}; {rest}.{records}"


def also_missed(miss: Miss, others: Sequence[Miss]) -> str:
    """Other SLAs that were missed at the same time, the nearest first: of the same group, topic or cluster."""
    found = [(distance, other.sla) for other in others if (distance := _distance(miss, other)) is not None]
    near = sorted(found, key=lambda one: (one[0], natural(one[1])))
    if not near:
        return ""
    words = ("same group", "same topic", "same cluster")
    named = [f"{name} ({words[distance]})" for distance, name in near[:_NAMED]]
    more = len(near) - len(named)
    return ", ".join(named) + (f", and {count(more)} more" if more else "")


def _distance(miss: Miss, other: Miss) -> int | None:
    """0: the same group, 1: topic, 2: cluster; None: they have nothing in common."""
    if other.cluster != miss.cluster or other.sla == miss.sla:
        return None
    return 0 if other.worst_group == miss.worst_group else 1 if other.worst_topic == miss.worst_topic else 2


def _run(run_url: str | None) -> str:
    return run_url if run_url and _base(run_url) and "/dags/" in run_url else ""


def _base(run_url: str | None) -> str:
    """Where Airflow is, from the address of one of its runs."""
    url = run_url or ""
    if urlsplit(url).scheme not in ("http", "https"):
        return ""
    return (url.rpartition("/dags/")[0] or url).rstrip("/")
