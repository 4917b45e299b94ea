"""What is published, judged and missed, as text that fits a terminal. Reads the ledger only; changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta

from kafka_sla.cli.console.results import aligned
from kafka_sla.cli.status import (
    ClusterStatus,
    SlaStatus,
    cluster_status,
    failed_intervals,
    last_validation,
    sla_status,
    unjudged_intervals,
)
from kafka_sla.config.settings import Settings
from kafka_sla.ledger.failures import Failure, Unjudged
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, Sla
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.catch_up import CatchUp
from kafka_sla.sla.chains import ChainState
from kafka_sla.sla.judged_interval import JudgedInterval
from kafka_sla.sla.root_cause.evidence import evidence_rows
from kafka_sla.sla.wording import (
    budget,
    budget_left,
    burning,
    catching_up,
    chained,
    doubt,
    limits,
    miss_outcome,
    place,
    requirement,
    violation,
    worst,
)
from kafka_sla.text.formatting import UNKNOWN, burn, moment, plural, share, span
from kafka_sla.text.natural_order import natural
from kafka_sla.text.timestamps import instant_text

WIDTH = 100
"""Columns that a status fits, unless it is wide."""
_MOST_FAILURES = 5
_NONE: Mapping[str, CatchUp] = {}
_NO_CHAINS: Mapping[str, ChainState] = {}
_ORDER = ("exhausted", "at risk", "unknown", "on track")


def status_text(
    settings: Settings,
    ledger: Ledger,
    catch_ups: Mapping[str, CatchUp] = _NONE,
    clusters: Sequence[ClusterStatus] | None = None,
    chains: Mapping[str, ChainState] = _NO_CHAINS,
    *,
    wide: bool = False,
) -> str:
    """Clusters, SLAs (those that need attention first), when those behind will have caught up, the last validation.
    `clusters`: where they are known already."""
    clusters = cluster_status(settings, ledger) if clusters is None else clusters
    parts = [_clusters_text(clusters)]
    if settings.slas:
        found = sorted(sla_status(settings, ledger, clusters), key=lambda s: (_needs_attention(s), natural(s.sla.name)))
        parts.append(_wide_text(found) if wide else _slas_text(found))
        paces = [catch_ups[s.sla.name] for s in found if s.sla.name in catch_ups]
        behind = [one for one in paces if one.state != "caught_up"]
        parts += [_catch_up_text(behind, wide=wide)] if behind else []
        parts += [_chains_text(chains, wide=wide)] if chains else []
        parts += [_burn(status.sla, burn) for status in found for burn in status.burns]
        parts += [_unjudged_partitions_text(found)] if any(status.unjudged for status in found) else []
    if failed := failed_intervals(ledger, clusters):
        parts.append(_failures_text(failed))
    if unjudged := unjudged_intervals(settings, ledger):
        parts.append(_unjudged_text(unjudged))
    parts.append(_validation_text(ledger, clusters))
    return "\n\n".join(parts)


def interval_text(slas: Sequence[Sla], ledger: Ledger, interval: Interval) -> str:
    """What one run found: verdicts, the worst latency and misses per SLA."""
    header = ("SLA", "threshold", "good", "bad", "excluded", "unknown", "worst", "misses")
    return aligned(header, [_interval_row(ledger.verdicts.judged(sla, interval)) for sla in slas])


def miss_text(miss: Miss) -> str:
    """One miss as its mail tells it: what and since when, why, and the figures."""
    length = span((miss.bad_until - miss.start) / timedelta(milliseconds=1))
    since = f"{miss_outcome(miss).upper()}: {miss.sla} at {moment(miss.bad_until)}, missed for {length}"
    if miss.state == "open":
        since = f"SLA MISSED: {miss.sla} since {moment(miss.start)} ({length} so far)"
    lines = [
        f"{since}: {violation(miss)}.",
        *([f"  {miss.end_reason[0].upper()}{miss.end_reason[1:]}."] if miss.end_reason else []),
        *(f"  {text}" for text in (miss.evidence.get("sentence"), doubt(miss)) if text),
        *([f"  Not counted: {miss.exclusion}."] if miss.exclusion else []),
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
        (c.cluster, moment(c.first), moment(c.last.end), share(c.coverage), str(len(c.gaps)), str(len(c.unknown)))
        if c.last
        else (c.cluster, "nothing published", "", "", "", "")
        for c in clusters
    ]
    return aligned(("cluster", "published from", "until", "covered", "gaps", "unknown spans"), rows)


def _slas_text(slas: Sequence[SlaStatus]) -> str:
    header = ("SLA", "open", "budget", "attainment", "budget left", "burn", "threshold")
    rows = [_sla_row(status) for status in slas]
    others = [max(len(row[i]) for row in (header, *rows)) for i in range(1, len(header))]
    room = max(20, WIDTH - sum(others) - 2 * len(others))
    return aligned(header, [(_cut(row[0], room), *row[1:]) for row in rows])


def _catch_up_text(behind: Sequence[CatchUp], *, wide: bool) -> str:
    """When those will have caught up that have not: beside its SLA in one line, as far as that fits."""
    rows = [(one.sla, catching_up(one)) if wide else (_cut(one.sla, 40), _cut(catching_up(one), 58)) for one in behind]
    return aligned(("SLA", "caught up"), rows)


def _chains_text(chains: Mapping[str, ChainState], *, wide: bool) -> str:
    """How long each chain takes and where, likewise."""
    texts = {sla: chained(found) for sla, found in chains.items()}
    rows = [(sla, text) if wide else (_cut(sla, 40), _cut(text, 58)) for sla, text in texts.items()]
    return aligned(("SLA", "chain"), rows)


def _sla_row(status: SlaStatus) -> tuple[str, ...]:
    sla, found = status.sla, status.attainment
    figures = (UNKNOWN, UNKNOWN, UNKNOWN)
    if found:
        figures = (share(found.attainment), budget_left(found), burn(found.burn_rate))
    attainment, threshold = f"{figures[0]} of {share(sla.objective)}", span(status.max_latency_ms)
    misses = str(status.open_misses) if status.open_misses else ""
    return (sla.name, misses, _budget(status), attainment, *figures[1:], threshold)


def _needs_attention(status: SlaStatus) -> int:
    return -1 if status.open_misses else _ORDER.index(_budget(status))


def _budget(status: SlaStatus) -> str:
    budget = status.attainment.budget if status.attainment else None
    return budget.replace("_", " ") if budget else "unknown"


def _burn(sla: Sla, burn: Burn) -> str:
    return f"{burn.severity} since {moment(burn.start)}: {sla.name}: {burning(burn, sla.objective_of)}"


def _unjudged_partitions_text(slas: Sequence[SlaStatus]) -> str:
    lines = [f"  {status.sla.name}: {part.text}" for status in slas for part in status.unjudged]
    return "\n".join(["not judged at present:", *lines])


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _wide_text(slas: Sequence[SlaStatus]) -> str:
    header = (
        "SLA",
        "threshold",
        "objective",
        "in time",
        "in records",
        "period",
        "coverage",
        "error budget",
        "left",
        "burn rate",
        "open misses",
    )
    return aligned(header, [_wide_row(status) for status in slas])


def _objective(sla: Sla) -> str:
    return share(sla.objective) + (" of records" if sla.objective_of == "records" else "")


def _wide_row(status: SlaStatus) -> tuple[str, ...]:
    sla, found = status.sla, status.attainment
    required = (sla.name, span(status.max_latency_ms), _objective(sla))
    if found is None:
        return (*required, UNKNOWN, *[""] * 6, str(status.open_misses))
    return (
        *required,
        share(found.time_attainment),
        share(found.records_attainment),
        f"{sla.period} from {found.period.start:%Y-%m-%d %H:%M} UTC",
        share(found.coverage),
        budget(found),
        budget_left(found),
        burn(found.burn_rate),
        str(status.open_misses),
    )


def _failures_text(failed: Sequence[Failure]) -> str:
    return _taken_up(
        f"{plural(len(failed), 'interval')} could not be measured:",
        [(f"{f.cluster}, {f.interval}: {f.step}: {f.reason}", f.interval, "--cluster", f.cluster) for f in failed],
    )


def _unjudged_text(unjudged: Sequence[Unjudged]) -> str:
    return _taken_up(
        f"{plural(len(unjudged), 'interval')} could not be judged:",
        [(f"{one.sla}, {one.interval}: {one.reason}", one.interval, "--sla", one.sla) for one in unjudged],
    )


def _taken_up(head: str, listed: Sequence[tuple[str, Interval, str, str]]) -> str:
    """The newest of them, each with the command that takes it up again: text, time, option and its value."""
    lines = [head]
    for text, interval, option, value in listed[:_MOST_FAILURES]:
        times = f"--from {instant_text(interval.start)} --to {instant_text(interval.end)}"
        lines += [f"  {text}", f"    kafka-sla run {times} {option} {shlex.quote(value)}"]
    if (older := len(listed) - _MOST_FAILURES) > 0:
        lines.append(f"  and {older} older ones: --json lists all")
    return "\n".join(lines)


def _validation_text(ledger: Ledger, clusters: Sequence[ClusterStatus]) -> str:
    results = last_validation(ledger, clusters)
    if not results:
        return "last validation: none"
    failed = [row for row in results if not row["success"]]
    interval = Interval(results[0]["interval_start"], results[0]["interval_end"])
    first = f"last validation: {interval}: {len(results) - len(failed)} of {len(results)} expectations held"
    rows = (f"  {r['severity']}: {r['table_name']}: {r['expectation']} (observed {r['observed']})" for r in failed)
    return "\n".join([first, *rows])


def _interval_row(found: JudgedInterval) -> tuple[str, ...]:
    state = ", ".join(f"{miss.id} ({miss.state})" for miss in found.misses) or "none"
    counts = (str(count) for count in found.verdicts.values())
    return (found.sla.name, limits(found.windows, found.sla), *counts, span(found.worst_latency_ms), state)
