"""SLAs of a configuration as OpenSLO documents (v1): what fits, and by name what does not. Pure; writes no file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka_sla.config.schema import BurnPairKeys, SlaKeys
from kafka_sla.text.durations import duration_text

SOURCE = "kafka-sla"
"""Type of the metric source that names a cluster, groups and topics, or a chain of them."""
PERIODS = {"day": "1d", "week": "1w", "month": "1M", "quarter": "1Q", "year": "1Y"}
BUDGETING = {"time": "Timeslices", "records": "Occurrences"}
"""OpenSLO's word for what an objective counts."""
_STARTS = {"week": "2024-01-01 00:00:00"}
"""A Monday; every other period may start here, too."""
PLACE = ("cluster", "group", "groups", "topic", "topics", "chain")
_MAPPED = {*PLACE, "name", "description", "team", "max_latency", "objective", "objective_of", "period", "time_zone"}
KEPT = {
    "for",
    "when_uncertain",
    "allowed_lag",
    "partitions",
    "latency_from",
    "min_time_to_expiry",
    "steady_state",
    "maintenance",
    "recipients",
    "on_miss",
    "notifiers",
    "webhooks",
    "runbook",
    "burn_alerts",
    "burn_pairs",
    "time_zone",
}
"""Keys that OpenSLO has no place for: they travel as annotations."""
PREFIX = "kafka-sla/"
NOTIFIED = {"alertWhenBreaching": True, "alertWhenResolved": True, "alertWhenNoData": False}
"""When a burn is notified, in the words of an alert policy."""
_SHORTHAND = re.compile(r"[1-9][0-9]*[mhdw]")


def export_slos(
    raw_slas: Iterable[Mapping[str, Any]], window_ms: int
) -> Iterator[tuple[str, dict[str, Any] | None, list[str]]]:
    """Name, document and notes of each SLA; no two documents have one name."""
    names: Counter[str] = Counter()
    for raw in raw_slas:
        document, notes = export_slo(raw, window_ms)
        if document:
            slug = document["metadata"]["name"]
            names[slug] += 1
            document["metadata"]["name"] = f"{slug}-{names[slug]}" if names[slug] > 1 else slug
        yield str(raw["name"]), document, notes


def export_slo(raw: Mapping[str, Any], window_ms: int) -> tuple[dict[str, Any] | None, list[str]]:
    """The document of an SLA, as the configuration writes it with its defaults; None with the keys that do not fit."""
    if unknown := [f"{key}: OpenSLO documents cannot hold it yet" for key in raw if key not in _MAPPED | KEPT]:
        return None, unknown
    keys = SlaKeys.model_validate(raw)
    slug, in_time = _slug(keys.name), keys.objective_of == "time"
    policies = _policies(keys, slug, window_ms)
    with_place = ({"time_zone"} if keys.period in PERIODS else set()) | ({"burn_pairs"} if policies else set())
    kept = {f"{PREFIX}{key}": json.dumps(raw[key], default=str) for key in raw if key in KEPT - with_place}
    metric = {"type": SOURCE, "spec": {key: raw[key] for key in PLACE if key in raw}}
    document = {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": slug, "displayName": keys.name}
        | ({"labels": {"team": keys.team}} if keys.team else {})
        | ({"annotations": kept} if kept else {}),
        "spec": {
            **({"description": keys.description} if keys.description else {}),
            "service": _slug(keys.team) if keys.team else SOURCE,
            "indicator": {
                "metadata": {"name": f"{slug}-latency"},
                "spec": {"thresholdMetric": {"metricSource": metric}},
            },
            "timeWindow": [_time_window(keys)],
            "budgetingMethod": BUDGETING[keys.objective_of],
            "objectives": [
                {"op": "lte", "value": (keys.max_latency or 0) / 1000, "target": keys.objective}
                | ({"timeSliceTarget": 1, "timeSliceWindow": duration_text(window_ms)} if in_time else {})
            ],
            **({"alertPolicies": policies} if policies else {}),
        },
    }
    return document, [f"{name} is an annotation: only kafka-sla reads it" for name in kept]


def _time_window(keys: SlaKeys) -> dict[str, Any]:
    if keys.period not in PERIODS:
        return {"duration": keys.period, "isRolling": True}
    zone = {"startTime": _STARTS.get(keys.period, "2024-01-01 00:00:00"), "timeZone": keys.time_zone}
    return {"duration": PERIODS[keys.period], "isRolling": False, "calendar": zone}


def _slug(name: str) -> str:
    """A name as OpenSLO allows it: lower-case letters, digits and hyphens, 63 at most."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:55].rstrip("-") or "sla"


def _policies(keys: SlaKeys, name: str, window_ms: int) -> list[dict[str, Any]]:
    """The own pairs of an SLA as alert policies; none where OpenSLO has no words for one of them: a condition has one
    time to look back, and no bad time that there must be at least."""
    if not all(_fits(pair, keys, window_ms) for pair in keys.burn_pairs):
        return []
    return [_policy(f"{name}-burn-{number}", pair) for number, pair in enumerate(keys.burn_pairs, 1)]


def _fits(pair: BurnPairKeys, keys: SlaKeys, window_ms: int) -> bool:
    least = pair.min_late_records == 1 if keys.objective_of == "records" else pair.min_bad_time == window_ms
    return least and pair.short == pair.long and bool(_SHORTHAND.fullmatch(duration_text(pair.long)))


def _policy(name: str, pair: BurnPairKeys) -> dict[str, Any]:
    condition = {
        "kind": "burnrate",
        "op": "gt",
        "threshold": pair.burn_rate,
        "lookbackWindow": duration_text(pair.long),
        "alertAfter": "0m",
    }
    inside = {
        "kind": "AlertCondition",
        "metadata": {"name": name},
        "spec": {"severity": pair.severity, "condition": condition},
    }
    spec = {**NOTIFIED, "conditions": [inside], "notificationTargets": []}
    return {"kind": "AlertPolicy", "metadata": {"name": name}, "spec": spec}
