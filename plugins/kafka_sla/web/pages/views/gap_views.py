"""Missing time and what measures it, in words for the template."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import time, timedelta
from typing import Any

from kafka_sla.text.formatting import moment, plural, span
from kafka_sla.web.queries.backfill_commands import Remediation
from kafka_sla.web.queries.gaps import Missing, MissingTime

_MIDNIGHT = time()


def missing(found: Missing, airflow: Callable[[str], str]) -> dict[str, Any]:
    """What the page shows."""
    return {
        "times": [_time(one) for one in found.times],
        "omitted": found.omitted,
        "unjudged": [
            {"sla": one.sla, "start": moment(one.start), "end": moment(one.end), "reason": one.reason}
            for one in found.unjudged
            if one.reason
        ],
        "measure": [_remediation(one, airflow) for one in found.remediations if one.kind != "judge"],
        "judge": [_remediation(one, airflow) for one in found.remediations if one.kind == "judge"],
    }


def _time(one: MissingTime) -> dict[str, Any]:
    return {
        "cluster": one.cluster,
        "start": moment(one.start),
        "end": moment(one.end),
        "length": span((one.end - one.start) / timedelta(milliseconds=1)),
        "badge": _badge(one),
        "reason": one.reason or "",
    }


def _badge(one: MissingTime) -> tuple[str, str, str]:
    if one.published:
        return "unknown", "?", "published as unknown"
    if one.runs_under_way:
        return "excluded", "…", f"{plural(one.runs_under_way, 'run')} under way"
    if one.failed_runs:
        return "missed", "✖", f"{plural(one.failed_runs, 'run')} failed"
    return "unknown", "?", "no run"


def _remediation(one: Remediation, airflow: Callable[[str], str]) -> dict[str, Any]:
    return {
        "title": _title(one),
        "command": one.command,
        "range_command": one.range_command,
        "dag": one.dag,
        "href": airflow(f"/dags/{one.dag}"),
        "about": ", ".join(one.slas) if one.slas else ", ".join(one.clusters) or "all clusters",
        "json": json.dumps(one.form),
    }


def _title(one: Remediation) -> str:
    days = (one.end - one.start).days
    if one.start.time() != _MIDNIGHT or one.end.time() != _MIDNIGHT or one.kind == "trigger":
        return f"{moment(one.start)} to {moment(one.end)}"
    if days == 1:
        return f"{one.start:%Y-%m-%d}"
    return f"{one.start:%Y-%m-%d} to {_last(one.end)}, {plural(days, 'day')}"


def _last(end: Any) -> str:
    """The last day before an end at midnight."""
    return f"{end - timedelta(days=1):%Y-%m-%d}"
