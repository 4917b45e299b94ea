"""The parts of an OpenSLO document as keys of an SLA, or why they cannot be. Pure; knows no document as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

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
    target, percent = objective.get("target"), objective.get("targetPercent")
    share = target if target is not None else percent / 100 if isinstance(percent, int | float) else None
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise Unfit(f"{where}.target: {share!r}; a share above 0 and below 1 is needed")
    if objective.get("op") != "lte":
        raise Unfit(f"{where}.op: {objective.get('op')!r}; only lte is a threshold of latency")
    value = objective.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.001 <= value < math.inf:
        raise Unfit(f"{where}.value: {value!r}; a latency in seconds is needed")
    if objective.get("timeSliceTarget", 1) != 1:
        raise Unfit(
            f"{where}.timeSliceTarget: {objective['timeSliceTarget']}; a window is good when every record is: 1"
        )
    slice_ms = valid(parse_duration, objective.get("timeSliceWindow", duration_text(window_ms)))
    if slice_ms != window_ms:
        raise Unfit(
            f"{where}.timeSliceWindow: {objective['timeSliceWindow']!r}; `window` is {duration_text(window_ms)}, unless"
            " --window says what the configuration will have"
        )
    return {"max_latency": duration_text(round(value * 1000)), "objective": share}


def at(document: Any, *path: str) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document
