"""Alert policies of OpenSLO (v1) as pairs of burn rates: what fits, and by name what does not. Pure; reads no file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_sla.config.burn_pairs import pair_rules
from kafka_sla.config.field_types import valid
from kafka_sla.config.openslo.exported_documents import NOTIFIED
from kafka_sla.config.openslo.parts import Unfit
from kafka_sla.text.durations import duration_text, parse_duration

_SEVERITIES = ("page", "ticket")


def policy_refs(spec: Mapping[str, Any]) -> set[str]:
    """The AlertPolicy documents that an SLO names."""
    return {one["alertPolicyRef"] for one in spec.get("alertPolicies") or [] if one.get("alertPolicyRef")}


def condition_refs(policy: Mapping[str, Any]) -> set[str]:
    """The AlertCondition documents that the spec of a policy names."""
    return {one["conditionRef"] for one in policy.get("conditions") or [] if one.get("conditionRef")}


def pairs_of(
    spec: Mapping[str, Any],
    policies: Mapping[Any, Mapping[str, Any]],
    conditions: Mapping[Any, Mapping[str, Any]],
    sla: Mapping[str, Any],
    window_ms: int,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of `burn_pairs` of the alert policies of an SLO, and what is not part of them, each with its path.
    `policies` and `conditions` are documents of their own, by name; `sla` is what was read of the SLO so far."""
    pairs: list[dict[str, Any]] = []
    left_out: list[str] = []
    for where, condition in _conditions(spec, policies, conditions, left_out):
        try:
            pair, notes = _pair(condition, sla, window_ms)
        except Unfit as error:
            left_out.append(f"{where}: {error}")
            continue
        pairs.append(pair)
        left_out += [f"{where}.{note}" for note in notes]
    return pairs, left_out


def _conditions(
    spec: Mapping[str, Any],
    policies: Mapping[Any, Mapping[str, Any]],
    conditions: Mapping[Any, Mapping[str, Any]],
    left_out: list[str],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The conditions of the policies, each with its path; what surrounds them joins `left_out`."""
    for i, policy in enumerate(spec.get("alertPolicies") or []):
        where = f"spec.alertPolicies[{i}]"
        found = policy.get("spec") or policies.get(policy.get("alertPolicyRef"))
        if not found:
            left_out.append(f"{where}: no AlertPolicy {policy.get('alertPolicyRef')!r} in the same file")
            continue
        left_out += [f"{where}.{note}" for note in _surroundings(found)]
        for k, one in enumerate(found.get("conditions") or []):
            condition = one.get("spec") or conditions.get(one.get("conditionRef"))
            if condition:
                yield f"{where}.conditions[{k}]", condition
            else:
                left_out.append(
                    f"{where}.conditions[{k}]: no AlertCondition {one.get('conditionRef')!r} in the same file"
                )


def _surroundings(policy: Mapping[str, Any]) -> Iterator[str]:
    """What a policy says besides its conditions: a burn is notified once when it begins and once when it is over."""
    for key, done in NOTIFIED.items():
        if policy.get(key, done) is not done:
            yield f"{key}: {str(policy[key]).lower()}; burns notify when they begin and when they are over"
    if policy.get("notificationTargets"):
        yield "notificationTargets: recipients, notifiers and webhooks of the SLA are notified"


def _pair(spec: Mapping[str, Any], sla: Mapping[str, Any], window_ms: int) -> tuple[dict[str, Any], list[str]]:
    condition, severity = spec.get("condition") or {}, spec.get("severity")
    if condition.get("kind", "burnrate") != "burnrate":
        raise Unfit(f"kind {condition['kind']!r}; allowed: burnrate")
    if severity not in _SEVERITIES:
        raise Unfit(f"severity {severity!r}; allowed: {', '.join(_SEVERITIES)}")
    if condition.get("op") not in ("gt", "gte"):
        raise Unfit(f"op {condition.get('op')!r}; allowed: gt, gte")
    rate = condition.get("threshold")
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise Unfit(f"threshold {rate!r}; a burn rate is needed")
    back, wait = str(condition.get("lookbackWindow")), str(condition.get("alertAfter") or "0m")
    waits = not re.fullmatch("0+[a-z]?", wait)
    least = (
        {"min_late_records": 1} if sla.get("objective_of") == "records" else {"min_bad_time": duration_text(window_ms)}
    )
    pair = {"burn_rate": rate, "long": back, "short": wait if waits else back, "severity": severity} | least
    if wrong := _wrong(pair, sla, window_ms):
        raise Unfit(wrong)
    notes = (
        [f"alertAfter: {wait}; a pair does not wait: its short time asks that the last {wait} burn as fast"]
        if waits
        else []
    )
    if condition["op"] == "gte":
        notes.append(f"op: gte; a burn rate of exactly {rate:g} does not alert")
    return pair, notes


def _wrong(pair: Mapping[str, Any], sla: Mapping[str, Any], window_ms: int) -> str:
    """What a configuration would refuse in it; empty: nothing."""
    lengths = {key: valid(parse_duration, pair[key]) for key in ("long", "short")}
    if unread := [f"{key} {pair[key]!r} is no duration" for key, length in lengths.items() if length is None]:
        return "; ".join(unread)
    return "; ".join(
        f"{'.'.join(map(str, path))}: {text}" for path, text in pair_rules(dict(pair), dict(sla), window_ms)
    )
