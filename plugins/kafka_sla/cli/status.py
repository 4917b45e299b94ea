"""What is published, judged and missed, as values. Reads the ledger only; changes nothing and writes no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from kafka_sla.config.settings import Settings
from kafka_sla.ledger.failures import Failure, Unjudged
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING, Interval, Sla
from kafka_sla.pipeline.judged_time import attainments
from kafka_sla.sla.attainment import Attainment
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.catch_up import CatchUp
from kafka_sla.sla.chains import ChainState
from kafka_sla.sla.judged_interval import JudgedInterval
from kafka_sla.sla.unjudged_partitions import UnjudgedPartitions
from kafka_sla.sla.wording import catching_up, chained
from kafka_sla.text.timestamps import instant_text

_NONE: Mapping[str, CatchUp] = {}
_NO_CHAINS: Mapping[str, ChainState] = {}


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What is published of one cluster; None where nothing is."""

    cluster: str
    first: datetime | None
    """Start of the oldest published time."""
    last: Interval | None
    """The newest published time without a gap."""
    coverage: float | None
    """Share of the time from `first` until the end of `last` about which something is known: it is published, and some
    verdict is not unknown."""
    gaps: tuple[Interval, ...]
    """Time that is not published."""
    unknown: tuple[Interval, ...] = ()
    """Published time in which every verdict is unknown."""

    def holds(self, interval: Interval) -> bool:
        """Is all of this time published?"""
        if self.first is None or self.last is None:
            return False
        inside = self.first <= interval.start and interval.end <= self.last.end
        return inside and not any(gap.overlaps(interval) for gap in self.gaps)


@dataclass(frozen=True, slots=True)
class SlaStatus:
    """One SLA in the calendar period that holds the newest published time of its cluster."""

    sla: Sla
    attainment: Attainment | None
    open_misses: int
    max_latency_ms: int
    """The threshold that the newest window was judged by, or the configured one."""
    burns: tuple[Burn, ...]
    """Those that go on."""
    unjudged: tuple[UnjudgedPartitions, ...] = ()
    """Partitions that are not judged at present."""


def cluster_status(settings: Settings, ledger: Ledger) -> tuple[ClusterStatus, ...]:
    """Every configured cluster."""
    slices = ledger.publications.slices(None, EVERYTHING)
    return tuple(
        _cluster(
            c.name,
            [s.interval for s in slices if s.cluster == c.name],
            ledger.rollups.unknown_spans([sla.name for sla in settings.slas if sla.cluster == c.name], EVERYTHING),
        )
        for c in settings.clusters
    )


def sla_status(settings: Settings, ledger: Ledger, clusters: Sequence[ClusterStatus]) -> tuple[SlaStatus, ...]:
    """Every configured SLA."""
    until = {c.cluster: c.last.end for c in clusters if c.last}
    misses = [miss.sla for miss in ledger.verdicts.misses(open_only=True)]
    newest = ledger.queries.newest_verdicts([sla.name for sla in settings.slas])
    burns = ledger.burns.of([sla.name for sla in settings.slas if sla.burn_pairs])
    reached = attainments(ledger, [(sla, until[sla.cluster]) for sla in settings.slas if sla.cluster in until])
    unjudged = ledger.unjudged_partitions.of([sla.name for sla in settings.slas])
    return tuple(
        SlaStatus(
            sla,
            reached.get(sla.name),
            misses.count(sla.name),
            newest[sla.name].max_latency_ms if sla.name in newest else sla.max_latency_ms,
            tuple(burn for burn in burns if burn.sla == sla.name),
            tuple(unjudged.get(sla.name, ())),
        )
        for sla in settings.slas
    )


def last_validation(ledger: Ledger, clusters: Sequence[ClusterStatus]) -> list[dict[str, Any]]:
    """What each expectation said of the newest validated load; nothing where none was."""
    newest = max((c.last.end for c in clusters if c.last), default=None)
    results = ledger.validations.results(Interval(newest - timedelta(days=1), EVERYTHING.end) if newest else EVERYTHING)
    if not results:
        return []
    last = max((row["interval_end"], row["interval_start"], row["load_id"]) for row in results)
    return [row for row in results if row["load_id"] == last[2]]


def failed_intervals(ledger: Ledger, clusters: Sequence[ClusterStatus]) -> list[Failure]:
    """Time of these clusters that could not be measured and is not published, the newest first."""
    by_name = {one.cluster: one for one in clusters}
    known = [one for one in ledger.failures.within(EVERYTHING) if one.cluster in by_name]
    return [one for one in known if not by_name[one.cluster].holds(one.interval)]


def unjudged_intervals(settings: Settings, ledger: Ledger) -> list[Unjudged]:
    """Published time that the configured SLAs could not be judged in, the newest first."""
    known = {sla.name for sla in settings.slas}
    return [one for one in ledger.failures.unjudged_within(EVERYTHING) if one.sla in known]


def status_values(
    settings: Settings,
    ledger: Ledger,
    catch_ups: Mapping[str, CatchUp] = _NONE,
    clusters: Sequence[ClusterStatus] | None = None,
    chains: Mapping[str, ChainState] = _NO_CHAINS,
) -> dict[str, Any]:
    """All of it for programs; keys are never renamed, null is unknown, times are ISO-8601 in UTC. `clusters`: where
    they are known already."""
    clusters = cluster_status(settings, ledger) if clusters is None else clusters
    validation = last_validation(ledger, clusters)
    return {
        "clusters": [_cluster_values(one) for one in clusters],
        "slas": [
            _sla_values(one)
            | {"catch_up": _in_words(catch_ups.get(one.sla.name)), "chain": _in_words(chains.get(one.sla.name))}
            for one in sla_status(settings, ledger, clusters)
        ],
        "failed_intervals": [_failure_values(one) for one in failed_intervals(ledger, clusters)],
        "unjudged_intervals": [_unjudged_values(one) for one in unjudged_intervals(settings, ledger)],
        "last_validation": {
            "expectations": len(validation),
            "failed": [_failed(row) for row in validation if not row["success"]],
        },
    }


def interval_values(slas: Sequence[Sla], ledger: Ledger, interval: Interval) -> list[dict[str, Any]]:
    """What one run found of each SLA, for programs."""
    return [_judged_values(ledger.verdicts.judged(sla, interval)) for sla in slas]


def _judged_values(found: JudgedInterval) -> dict[str, Any]:
    return {
        "sla": found.sla.name,
        "max_latency_ms": found.sla.max_latency_ms,
        **found.verdicts,
        "worst_latency_ms": found.worst_latency_ms,
        "misses": [{"id": m.id, "state": m.state, "end_reason": m.end_reason} for m in found.misses],
    }


def _cluster_values(one: ClusterStatus) -> dict[str, Any]:
    return {
        "cluster": one.cluster,
        "published_from": one.first and instant_text(one.first),
        "published_until": one.last and instant_text(one.last.end),
        "coverage": one.coverage,
        "gaps": _spans(one.gaps),
        "unknown": _spans(one.unknown),
    }


def _spans(spans: Sequence[Interval]) -> list[dict[str, str]]:
    return [{"start": instant_text(span.start), "end": instant_text(span.end)} for span in spans]


def _sla_values(status: SlaStatus) -> dict[str, Any]:
    sla, found = status.sla, status.attainment
    values = {
        "sla": sla.name,
        "cluster": sla.cluster,
        "team": sla.team,
        "open_misses": status.open_misses,
        "burns": [
            {"id": burn.id, "severity": burn.severity, "start": instant_text(burn.start), "burn_rate": burn.burn_rate}
            for burn in status.burns
        ],
        "unjudged": [
            {
                "group": part.group,
                "topic": part.topic,
                "partitions": list(part.partitions),
                "since": instant_text(part.since),
                "reason": part.reason,
                "text": part.text,
            }
            for part in status.unjudged
        ],
        "max_latency_ms": status.max_latency_ms,
        "objective": sla.objective,
        "objective_of": sla.objective_of,
        "period": sla.period,
    }
    names = (
        "attainment",
        "attainment_low",
        "attainment_high",
        "time_attainment",
        "records_attainment",
        "coverage",
        "decision",
        "met",
        "budget",
        "budget_ms",
        "budget_left_ms",
        "budget_records",
        "budget_left_records",
        "burn_rate",
    )
    return values | {
        "period_start": found and instant_text(found.period.start),
        "period_end": found and instant_text(found.period.end),
        "as_of": found and instant_text(found.at),
        **{name: getattr(found, name, None) for name in names},
    }


def _failure_values(one: Failure) -> dict[str, Any]:
    return {
        "cluster": one.cluster,
        "start": instant_text(one.interval.start),
        "end": instant_text(one.interval.end),
        "step": one.step,
        "reason": one.reason,
        "failed_at": instant_text(one.at),
    }


def _unjudged_values(one: Unjudged) -> dict[str, Any]:
    return {
        "sla": one.sla,
        "start": instant_text(one.interval.start),
        "end": instant_text(one.interval.end),
        "reason": one.reason,
        "failed_at": instant_text(one.at),
    }


def _in_words(found: CatchUp | ChainState | None) -> dict[str, Any] | None:
    if found is None:
        return None
    text = catching_up(found) if isinstance(found, CatchUp) else chained(found)
    return asdict(found) | {"at": instant_text(found.at), "text": text}


def _failed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("severity", "table_name", "expectation", "observed", "unexpected_rows")}


def _cluster(name: str, spans: Sequence[Interval], unknown_spans: Sequence[Interval]) -> ClusterStatus:
    merged: list[Interval] = []
    for one in sorted(spans):
        if merged and one.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(one.end, merged[-1].end))
        else:
            merged.append(one)
    if not merged:
        return ClusterStatus(name, None, None, None, ())
    unknown = tuple(part for span in merged for one in unknown_spans if (part := one.within(span)))
    known = sum((s.end - s.start for s in merged), timedelta()) - sum((s.end - s.start for s in unknown), timedelta())
    gaps = tuple(Interval(a.end, b.start) for a, b in pairwise(merged))
    return ClusterStatus(name, merged[0].start, merged[-1], known / (merged[-1].end - merged[0].start), gaps, unknown)
