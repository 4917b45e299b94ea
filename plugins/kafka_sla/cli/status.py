"""What is published, judged and missed, as values. Reads the ledger only; changes nothing and writes no text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, get_args

from kafka_sla.config.settings import Settings
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING, Interval, Sla, Verdict
from kafka_sla.sla.attainment import Attainment, attainment_of, period_until
from kafka_sla.text.timestamps import instant_text


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What is published of one cluster; None where nothing is."""

    cluster: str
    first: datetime | None
    """Start of the oldest published time."""
    last: Interval | None
    """The newest published time without a gap."""
    coverage: float | None
    """Share of the time from `first` until the end of `last` that is published."""
    gaps: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class SlaStatus:
    """One SLA in the calendar period that holds the newest published time of its cluster."""

    sla: Sla
    attainment: Attainment | None
    open_misses: int
    max_latency_ms: int
    """The threshold that the newest window was judged by, or the configured one."""


def cluster_status(settings: Settings, ledger: Ledger) -> tuple[ClusterStatus, ...]:
    """Every configured cluster."""
    slices = ledger.publications.slices(None, EVERYTHING)
    return tuple(_cluster(c.name, [s.interval for s in slices if s.cluster == c.name]) for c in settings.clusters)


def sla_status(settings: Settings, ledger: Ledger, clusters: Sequence[ClusterStatus]) -> tuple[SlaStatus, ...]:
    """Every configured SLA."""
    until = {c.cluster: c.last.end for c in clusters if c.last}
    misses = [miss.sla for miss in ledger.verdicts.misses(open_only=True)]
    newest = ledger.queries.newest_verdicts([sla.name for sla in settings.slas])
    return tuple(
        SlaStatus(
            sla, _attainment(sla, ledger, until[sla.cluster]) if sla.cluster in until else None, misses.count(sla.name),
            newest[sla.name].max_latency_ms if sla.name in newest else sla.max_latency_ms,
        )
        for sla in settings.slas
    )  # fmt: skip


def last_validation(ledger: Ledger, clusters: Sequence[ClusterStatus]) -> list[dict[str, Any]]:
    """What each expectation said of the newest validated load; nothing where none was."""
    newest = max((c.last.end for c in clusters if c.last), default=None)
    results = ledger.validations.results(Interval(newest - timedelta(days=1), EVERYTHING.end) if newest else EVERYTHING)
    if not results:
        return []
    last = max((row["interval_end"], row["interval_start"], row["load_id"]) for row in results)
    return [row for row in results if row["load_id"] == last[2]]


def status_values(settings: Settings, ledger: Ledger) -> dict[str, Any]:
    """All of it for programs; keys are never renamed, null is unknown, times are ISO-8601 in UTC."""
    clusters = cluster_status(settings, ledger)
    validation = last_validation(ledger, clusters)
    return {
        "clusters": [_cluster_values(one) for one in clusters],
        "slas": [_sla_values(one) for one in sla_status(settings, ledger, clusters)],
        "last_validation": {
            "expectations": len(validation), "failed": [_failed(row) for row in validation if not row["success"]]
        },
    }  # fmt: skip


def interval_values(slas: Sequence[Sla], ledger: Ledger, interval: Interval) -> list[dict[str, Any]]:
    """What one run found of each SLA, for programs."""
    return [_judged(sla, ledger, interval) for sla in slas]


def _judged(sla: Sla, ledger: Ledger, interval: Interval) -> dict[str, Any]:
    windows, misses = ledger.verdicts.windows(sla, interval), ledger.verdicts.misses(sla, interval)
    verdicts = Counter(window.verdict for window in windows)
    known = [w.worst_latency_ms for w in windows if w.worst_latency_ms is not None]
    return {
        "sla": sla.name, "max_latency_ms": sla.max_latency_ms,
        **{verdict: verdicts[verdict] for verdict in get_args(Verdict)}, "worst_latency_ms": max(known, default=None),
        "misses": [{"id": miss.id, "state": "recovered" if miss.end else "open"} for miss in misses],
    }  # fmt: skip


def _cluster_values(one: ClusterStatus) -> dict[str, Any]:
    return {
        "cluster": one.cluster, "published_from": one.first and instant_text(one.first),
        "published_until": one.last and instant_text(one.last.end), "coverage": one.coverage,
        "gaps": [{"start": instant_text(gap.start), "end": instant_text(gap.end)} for gap in one.gaps],
    }  # fmt: skip


def _sla_values(status: SlaStatus) -> dict[str, Any]:
    sla, found = status.sla, status.attainment
    values = {
        "sla": sla.name, "cluster": sla.cluster, "team": sla.team, "open_misses": status.open_misses,
        "max_latency_ms": status.max_latency_ms, "objective": sla.objective, "period": sla.period,
    }  # fmt: skip
    names = ("attainment", "records_attainment", "coverage", "met", "budget", "budget_ms", "budget_left_ms",
             "burn_rate")  # fmt: skip
    return values | {
        "period_start": found and instant_text(found.period.start), "period_end": found
        and instant_text(found.period.end), "as_of": found and instant_text(found.at),
        **{name: getattr(found, name, None) for name in names},
    }  # fmt: skip


def _failed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("severity", "table_name", "expectation", "observed", "unexpected_rows")}


def _cluster(name: str, spans: Sequence[Interval]) -> ClusterStatus:
    merged: list[Interval] = []
    for one in sorted(spans):
        if merged and one.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(one.end, merged[-1].end))
        else:
            merged.append(one)
    if not merged:
        return ClusterStatus(name, None, None, None, ())
    known = sum((one.end - one.start for one in merged), timedelta())
    gaps = tuple(Interval(a.end, b.start) for a, b in pairwise(merged))
    return ClusterStatus(name, merged[0].start, merged[-1], known / (merged[-1].end - merged[0].start), gaps)


def _attainment(sla: Sla, ledger: Ledger, at: datetime) -> Attainment:
    period = period_until(sla, at)
    return attainment_of(sla, period, at, ledger.verdicts.sums(sla, Interval(period.start, at)))
