"""The shape of OpenSLO documents (v1), as far as they are read. Says nothing of what their values mean."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, StrictBool, StrictStr, ValidationError


class _TimeWindow(BaseModel):
    duration: StrictStr | None = None
    isRolling: StrictBool | None = None  # noqa: N815
    calendar: dict[StrictStr, Any] | None = None


class _Source(BaseModel):
    type: StrictStr | None = None
    metricSourceRef: StrictStr | None = None  # noqa: N815
    spec: dict[StrictStr, Any] | None = None


class _Metric(BaseModel):
    metricSource: _Source | None = None  # noqa: N815


class _SliSpec(BaseModel):
    thresholdMetric: _Metric | None = None  # noqa: N815


class _Indicator(BaseModel):
    spec: _SliSpec | None = None


class _BurnRate(BaseModel):
    kind: StrictStr | None = None
    op: StrictStr | None = None
    lookbackWindow: StrictStr | None = None  # noqa: N815
    alertAfter: StrictStr | None = None  # noqa: N815


class _ConditionSpec(BaseModel):
    severity: StrictStr | None = None
    condition: _BurnRate


class _Condition(BaseModel):
    conditionRef: StrictStr | None = None  # noqa: N815
    spec: _ConditionSpec | None = None


class _PolicySpec(BaseModel):
    alertWhenBreaching: StrictBool | None = None  # noqa: N815
    alertWhenResolved: StrictBool | None = None  # noqa: N815
    alertWhenNoData: StrictBool | None = None  # noqa: N815
    conditions: list[_Condition] | None = None


class _Policy(BaseModel):
    alertPolicyRef: StrictStr | None = None  # noqa: N815
    spec: _PolicySpec | None = None


class _SloSpec(BaseModel):
    indicator: _Indicator | None = None
    indicatorRef: StrictStr | None = None  # noqa: N815
    timeWindow: list[_TimeWindow] | None = None  # noqa: N815
    budgetingMethod: StrictStr | None = None  # noqa: N815
    objectives: list[dict[StrictStr, Any]] | None = None
    alertPolicies: list[_Policy] | None = None  # noqa: N815


class _Metadata(BaseModel):
    name: StrictStr
    displayName: StrictStr | None = None  # noqa: N815
    labels: dict[StrictStr, Any] | None = None
    annotations: dict[StrictStr, Any] | None = None


class _Slo(BaseModel):
    metadata: _Metadata
    spec: _SloSpec


class _Sli(BaseModel):
    metadata: _Metadata
    spec: _SliSpec


class _AlertPolicy(BaseModel):
    metadata: _Metadata
    spec: _PolicySpec


class _AlertCondition(BaseModel):
    metadata: _Metadata
    spec: _ConditionSpec


_SHAPES: dict[str, type[BaseModel]] = {
    "SLO": _Slo,
    "SLI": _Sli,
    "AlertPolicy": _AlertPolicy,
    "AlertCondition": _AlertCondition,
}


def malformed(document: Any) -> str:
    """Where a document of one of these kinds has another shape than OpenSLO says; empty where it has not."""
    try:
        _SHAPES[document["kind"]].model_validate(document)
    except ValidationError as error:
        paths = dict.fromkeys(_path(found["loc"]) for found in error.errors())
        return "; ".join(f"{path}: not as OpenSLO has it" for path in paths)
    return ""


def _path(keys: tuple[int | str, ...]) -> str:
    """`spec.timeWindow[0].duration`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
