"""What is published, judged and missed, as values and as text. Reads the ledger only; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from kafka_sla.cli.text_table import aligned
from kafka_sla.config.settings import Settings
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING, Interval, Miss, Sla, SlaWindow
from kafka_sla.sla.attainment import Attainment, attainment_of, period_until
from kafka_sla.sla.root_cause.evidence import evidence_rows
from kafka_sla.sla.wording import doubt, duration, limits, place, requirement, worst
from kafka_sla.text.formatting import UNKNOWN, burn, moment, plural, share, span


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


def status_text(settings: Settings, ledger: Ledger) -> str:
    """Clusters, SLAs and the last validation as text."""
    clusters = cluster_status(settings, ledger)
    parts = [_clusters_text(clusters)]
    if settings.slas:
        parts.append(_slas_text(sla_status(settings, ledger, clusters)))
    parts.append(_validation_text(ledger, clusters))
    return "\n\n".join(parts)


def interval_text(slas: Sequence[Sla], ledger: Ledger, interval: Interval) -> str:
    """What one run found: verdicts, the worst latency and misses per SLA."""
    header = ("SLA", "threshold", "good", "bad", "excluded", "unknown", "worst", "misses")
    return aligned(header, [_interval_row(sla, ledger, interval) for sla in slas])


def miss_text(miss: Miss) -> str:
    """One miss with its evidence, a few lines."""
    lines = [
        f"{miss.sla}  [{miss.id}]",
        f"  missed {duration(miss)}, {plural(miss.bad_windows, 'bad window')}",
        f"  required: {requirement(miss)}",
        f"  worst latency {worst(miss)} at {moment(miss.worst_at)}: {place(miss)}",
        *(f"  {text}" for text in (doubt(miss), miss.evidence.get("sentence")) if text),
    ]
    return "\n".join([*lines, *(f"    {text}" for text in map(_figures, evidence_rows(miss.evidence)))])


def _figures(row: tuple[str, str, str]) -> str:
    name, before, during = row
    return f"{name}: " + ", ".join(filter(None, [f"{before} before" if before else "", during]))


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


def _clusters_text(clusters: Sequence[ClusterStatus]) -> str:
    rows = [
        (c.cluster, moment(c.first), moment(c.last.end), share(c.coverage), str(len(c.gaps)))
        if c.last
        else (c.cluster, "nothing published", "", "", "")
        for c in clusters
    ]
    return aligned(("cluster", "published from", "until", "covered", "gaps"), rows)


def _slas_text(slas: Sequence[SlaStatus]) -> str:
    header = (
        "SLA", "threshold", "objective", "in time", "in records", "period", "coverage",
        "error budget", "left", "burn rate", "open misses",
    )  # fmt: skip
    return aligned(header, [_sla_row(status) for status in slas])


def _sla_row(status: SlaStatus) -> tuple[str, ...]:
    sla, found = status.sla, status.attainment
    required = (sla.name, span(status.max_latency_ms), share(sla.objective))
    if found is None:
        return (*required, UNKNOWN, *[""] * 6, str(status.open_misses))
    return (
        *required, share(found.attainment), share(found.records_attainment),
        f"{sla.period} from {found.period.start:%Y-%m-%d %H:%M} UTC", share(found.coverage),
        span(found.budget_ms), span(found.budget_left_ms), burn(found.burn_rate), str(status.open_misses),
    )  # fmt: skip


def _validation_text(ledger: Ledger, clusters: Sequence[ClusterStatus]) -> str:
    newest = max((c.last.end for c in clusters if c.last), default=None)
    results = ledger.validations.results(Interval(newest - timedelta(days=1), EVERYTHING.end) if newest else EVERYTHING)
    if not results:
        return "last validation: none"
    last = max((row["interval_end"], row["interval_start"], row["load_id"]) for row in results)
    mine = [row for row in results if row["load_id"] == last[2]]
    broken = [row for row in mine if not row["success"]]
    first = f"last validation: {Interval(last[1], last[0])}: {len(mine) - len(broken)} of {len(mine)} expectations held"
    told = (f"  {r['severity']}: {r['table_name']}: {r['expectation']} (observed {r['observed']})" for r in broken)
    return "\n".join([first, *told])


def _interval_row(sla: Sla, ledger: Ledger, interval: Interval) -> tuple[str, ...]:
    windows = ledger.verdicts.windows(sla, interval)
    verdicts = [window.verdict for window in windows]
    counts = (str(verdicts.count(verdict)) for verdict in ("good", "bad", "excluded", "unknown"))
    misses = ledger.verdicts.misses(sla, interval)
    state = ", ".join(f"{miss.id} ({'recovered' if miss.end else 'open'})" for miss in misses) or "none"
    return (sla.name, limits(windows, sla), *counts, _worst(windows), state)


def _worst(windows: Sequence[SlaWindow]) -> str:
    known = [w.worst_latency_ms for w in windows if w.worst_latency_ms is not None]
    return span(max(known)) if known else "unknown"
