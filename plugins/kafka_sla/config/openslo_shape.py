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


class _SloSpec(BaseModel):
    indicator: _Indicator | None = None
    indicatorRef: StrictStr | None = None  # noqa: N815
    timeWindow: list[_TimeWindow] | None = None  # noqa: N815
    budgetingMethod: StrictStr | None = None  # noqa: N815
    objectives: list[dict[StrictStr, Any]] | None = None


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


def malformed(document: Any) -> str:
    """Where an SLO or SLI has another shape than OpenSLO says; empty where it has not."""
    try:
        (_Sli if document["kind"] == "SLI" else _Slo).model_validate(document)
    except ValidationError as error:
        paths = dict.fromkeys(_path(found["loc"]) for found in error.errors())
        return "; ".join(f"{path}: not as OpenSLO has it" for path in paths)
    return ""


def _path(keys: tuple[int | str, ...]) -> str:
    """`spec.timeWindow[0].duration`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
