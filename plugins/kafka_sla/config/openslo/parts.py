"""The parts of an OpenSLO document as keys of an SLA, or why they cannot be. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeGuard

from kafka_sla.config.field_types import valid
from kafka_sla.config.openslo.exported_documents import BUDGETING, PERIODS, PLACE, SOURCE
from kafka_sla.text.durations import duration_text, parse_duration
from kafka_sla.text.periods import parse_period, rolling_days


class Unfit(Exception):
    """The document cannot be an SLA as it is."""


def indicator(spec: Mapping[str, Any], slis: Mapping[Any, Any]) -> dict[str, Any]:
    inline, named = at(spec, "indicator", "spec"), spec.get("indicatorRef")
    sli = inline or slis.get(named)
    if not sli:
        raise Unfit(f"spec.indicatorRef: no SLI {named!r} in the same file" if named else "spec.indicator: missing")
    if "thresholdMetric" not in sli:
        raise Unfit(f"spec.indicator: {', '.join(sli)}; only thresholdMetric can be a latency that kafka-sla measures")
    source = at(sli, "thresholdMetric", "metricSource") or {}
    if source.get("type") != SOURCE:
        raise Unfit(
            f"spec.indicator: the metric source is {source.get('type') or source.get('metricSourceRef')!r}; kafka-sla"
            f" measures itself: write type: {SOURCE}, and cluster, group and topic under spec"
        )
    place = source.get("spec") or {}
    if wrong := sorted(set(place) - set(PLACE)):
        raise Unfit(f"spec.indicator: metricSource.spec has {', '.join(wrong)}; allowed: {', '.join(PLACE)}")
    return dict(place)


def window_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    windows = spec.get("timeWindow") or []
    if len(windows) != 1:
        raise Unfit(f"spec.timeWindow: there are {len(windows)}; exactly one is allowed")
    window = windows[0]
    calendar = window.get("calendar") or {}
    if window.get("isRolling"):
        return {"period": _days(window.get("duration"))}
    if not calendar:
        raise Unfit("spec.timeWindow: neither rolling nor a calendar window")
    periods = {duration: period for period, duration in PERIODS.items()}
    if window.get("duration") not in periods:
        raise Unfit(f"spec.timeWindow: duration {window.get('duration')!r}; allowed: {', '.join(periods)}")
    period = periods[window["duration"]]
    if not _begins(period, str(calendar.get("startTime", ""))):
        raise Unfit(f"spec.timeWindow: {calendar.get('startTime')!r} is no calendar {period}'s first midnight")
    return {"period": period, "time_zone": calendar.get("timeZone") or "UTC"}


def _days(duration: Any) -> str:
    """A rolling window of whole days or weeks, as the configuration writes it."""
    period: str | None = valid(parse_period, duration)
    if period is None or not rolling_days(period):
        raise Unfit(f"spec.timeWindow: {duration} is rolling; only days or weeks, such as 28d, can be imported")
    return period


def _begins(period: str, start: str) -> bool:
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        return False
    first = {
        "day": True,
        "week": at.weekday() == 0,
        "month": at.day == 1,
        "quarter": at.day == 1 and at.month % 3 == 1,
        "year": (at.month, at.day) == (1, 1),
    }
    return first[period] and (at.hour, at.minute, at.second) == (0, 0, 0)


def budgeting_method(spec: Mapping[str, Any]) -> dict[str, Any]:
    methods = {method: counted for counted, method in BUDGETING.items()}
    if (method := spec.get("budgetingMethod")) not in methods:
        raise Unfit(f"spec.budgetingMethod: {method!r}; allowed: {', '.join(methods)}")
    return {} if methods[method] == "time" else {"objective_of": methods[method]}


def objective_of(objective: Mapping[str, Any], where: str, window_ms: int) -> dict[str, Any]:
    """`max_latency` and `objective` of an SLA. Raises Unfit with every problem, each with its path from `where` on."""
    problems = [
        _target_problem(objective),
        _op_problem(objective),
        _value_problem(objective),
        _time_slice_target_problem(objective),
        _time_slice_window_problem(objective, window_ms),
    ]
    if any(problems):
        raise Unfit("; ".join(f"{where}.{problem}" for problem in problems if problem))
    return {"max_latency": duration_text(round(objective["value"] * 1000)), "objective": _target_share(objective)}


def _target_share(objective: Mapping[str, Any]) -> Any:
    """`target`, or `targetPercent` as the share with the same decimal digits: 99.9 becomes 0.999."""
    target, percent = objective.get("target"), objective.get("targetPercent")
    if target is None and _is_number(percent):
        return float(Decimal(repr(percent)) / 100)
    return percent if target is None else target


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _target_problem(objective: Mapping[str, Any]) -> str:
    key = "targetPercent" if objective.get("target") is None and "targetPercent" in objective else "target"
    share = _target_share(objective)
    if _is_number(share) and 0 < share < 1:
        return ""
    needed = "a percentage above 0 and below 100" if key == "targetPercent" else "a share above 0 and below 1"
    return f"{key}: {objective.get(key)!r}; {needed} is needed"


def _op_problem(objective: Mapping[str, Any]) -> str:
    op = objective.get("op")
    return "" if op == "lte" else f"op: {op!r}; only lte is a threshold of latency"


def _value_problem(objective: Mapping[str, Any]) -> str:
    value = objective.get("value")
    if _is_number(value) and 0.001 <= value < math.inf:
        return ""
    return f"value: {value!r}; a latency in seconds is needed"


def _time_slice_target_problem(objective: Mapping[str, Any]) -> str:
    target = objective.get("timeSliceTarget", 1)
    return "" if target == 1 else f"timeSliceTarget: {target!r}; a window is good when every record is: 1"


def _time_slice_window_problem(objective: Mapping[str, Any], window_ms: int) -> str:
    """A number of the specification is minutes."""
    time_slice = objective.get("timeSliceWindow", duration_text(window_ms))
    slice_ms = time_slice * 60_000 if _is_number(time_slice) else valid(parse_duration, time_slice)
    if slice_ms == window_ms:
        return ""
    unit = " minutes" if _is_number(time_slice) else ""
    return (
        f"timeSliceWindow: {time_slice!r}{unit}; `window` is {duration_text(window_ms)}, unless --window says what the"
        " configuration will have"
    )


def at(document: Any, *path: str) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document
