"""What is published, judged and missed, as text that fits a terminal. Reads the ledger only; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kafka_sla.cli.status import ClusterStatus, SlaStatus, cluster_status, last_validation, sla_status
from kafka_sla.cli.text_table import aligned
from kafka_sla.config.settings import Settings
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, Sla, SlaWindow
from kafka_sla.sla.root_cause.evidence import evidence_rows
from kafka_sla.sla.wording import doubt, limits, place, requirement, violation, worst
from kafka_sla.text.formatting import UNKNOWN, burn, moment, plural, share, span

WIDTH = 100
"""Columns that a status fits, unless it is wide."""
_ORDER = ("missed", "exhausted", "at risk", "unknown", "on track")


def status_text(settings: Settings, ledger: Ledger, *, wide: bool = False) -> str:
    """Clusters, SLAs (those that need attention first) and the last validation."""
    clusters = cluster_status(settings, ledger)
    parts = [_clusters_text(clusters)]
    if settings.slas:
        found = sorted(sla_status(settings, ledger, clusters), key=lambda s: (_ORDER.index(_state(s)), s.sla.name))
        parts.append(_wide_text(found) if wide else _slas_text(found))
    parts.append(_validation_text(ledger, clusters))
    return "\n\n".join(parts)


def interval_text(slas: Sequence[Sla], ledger: Ledger, interval: Interval) -> str:
    """What one run found: verdicts, the worst latency and misses per SLA."""
    header = ("SLA", "threshold", "good", "bad", "excluded", "unknown", "worst", "misses")
    return aligned(header, [_interval_row(sla, ledger, interval) for sla in slas])


def miss_text(miss: Miss, windows: Sequence[SlaWindow] = ()) -> str:
    """One miss as its mail tells it: what and since when, why, and the figures."""
    bad = [w.window for w in windows if w.verdict == "bad" and w.window.start >= miss.start]
    until = miss.end or max((window.end for window in bad), default=miss.opened_at)
    length = span((until - miss.start) / timedelta(milliseconds=1))
    since = f"RECOVERED: {miss.sla} at {moment(miss.end)}, missed for {length}"
    if miss.end is None:
        since = f"SLA MISSED: {miss.sla} since {moment(miss.start)} ({length} so far)"
    lines = [
        f"{since}: {violation(miss)}.",
        *(f"  {text}" for text in (miss.evidence.get("sentence"), doubt(miss)) if text),
        f"  Required: {requirement(miss)}",
        f"  Worst: {worst(miss)} at {moment(miss.worst_at)}: {place(miss)}, cluster {miss.cluster}",
        f"  Since: {moment(miss.start)}, {plural(miss.bad_windows, 'bad window')}; miss {miss.id}",
    ]
    return "\n".join([*lines, *(f"    {text}" for text in map(_figures, evidence_rows(miss.evidence)))])


def _figures(row: tuple[str, str, str]) -> str:
    name, before, during = row
    return f"{name}: " + ", ".join(filter(None, [f"{before} before" if before else "", during]))


def _clusters_text(clusters: Sequence[ClusterStatus]) -> str:
    rows = [
        (c.cluster, moment(c.first), moment(c.last.end), share(c.coverage), str(len(c.gaps)))
        if c.last
        else (c.cluster, "nothing published", "", "", "")
        for c in clusters
    ]
    return aligned(("cluster", "published from", "until", "covered", "gaps"), rows)


def _slas_text(slas: Sequence[SlaStatus]) -> str:
    header = ("SLA", "state", "attainment", "objective", "budget left", "burn rate", "threshold")
    rows = [_sla_row(status) for status in slas]
    others = [max(len(row[i]) for row in (header, *rows)) for i in range(1, len(header))]
    room = max(20, WIDTH - sum(others) - 2 * len(others))
    return aligned(header, [(_cut(row[0], room), *row[1:]) for row in rows])


def _sla_row(status: SlaStatus) -> tuple[str, ...]:
    sla, found = status.sla, status.attainment
    figures = (UNKNOWN, UNKNOWN, UNKNOWN)
    if found:
        figures = (share(found.attainment), span(found.budget_left_ms), burn(found.burn_rate))
    return (sla.name, _state(status), figures[0], share(sla.objective), *figures[1:], span(status.max_latency_ms))


def _state(status: SlaStatus) -> str:
    if status.open_misses:
        return "missed"
    budget = status.attainment.budget if status.attainment else None
    return budget.replace("_", " ") if budget else "unknown"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _wide_text(slas: Sequence[SlaStatus]) -> str:
    header = (
        "SLA", "threshold", "objective", "in time", "in records", "period", "coverage",
        "error budget", "left", "burn rate", "open misses",
    )  # fmt: skip
    return aligned(header, [_wide_row(status) for status in slas])


def _wide_row(status: SlaStatus) -> tuple[str, ...]:
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
    results = last_validation(ledger, clusters)
    if not results:
        return "last validation: none"
    failed = [row for row in results if not row["success"]]
    interval = Interval(results[0]["interval_start"], results[0]["interval_end"])
    first = f"last validation: {interval}: {len(results) - len(failed)} of {len(results)} expectations held"
    rows = (f"  {r['severity']}: {r['table_name']}: {r['expectation']} (observed {r['observed']})" for r in failed)
    return "\n".join([first, *rows])


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
