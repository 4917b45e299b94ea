"""Answers in words for the templates: states with their signs, spans, shares."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any

from kafka_sla.config.settings import Settings
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.sla.attainment import Attainment
from kafka_sla.sla.wording import attained, budget, budget_left, limits
from kafka_sla.text.formatting import UNKNOWN, count, moment, share, span
from kafka_sla.text.name_patterns import written
from kafka_sla.text.natural_order import natural
from kafka_sla.text.periods import rolling_days
from kafka_sla.web.pages.views.sparkline import sparkline
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import CoverageDay, Quality, SlaStatus, State

Link = Callable[..., str]
SIGNS: dict[State, tuple[str, str]] = {
    "missed": ("✖", "missed"),
    "pending": ("▲", "pending"),
    "met": ("✔", "met"),
    "excluded": ("–", "excluded"),
    "unknown": ("?", "unknown"),
}
"""A sign and a word for each state: colour alone says nothing."""
ROWS = 5
"""Quarantined rows that a page shows of an expectation."""


def now(row: SlaStatus, link: Link) -> dict[str, Any]:
    """One SLA as it stands."""
    sign, word = SIGNS[row.state]
    until = row.as_of or row.open_since
    open_ms = (until - row.open_since) / timedelta(milliseconds=1) if until and row.open_since else None
    return {
        "open_for": span(open_ms),
        "row": row,
        "state": row.state,
        "sign": sign,
        "word": word,
        "href": link(f"/slas/{row.name}"),
        "api": link(f"/api/v1/slas/{row.name}"),
        "miss": link(f"/misses/{row.open_miss}") if row.open_miss else None,
        "period": row.period,
        "sparkline": sparkline(row.sparkline),
    }


def period_facts(sla: Sla, found: Attainment) -> list[dict[str, Any]]:
    """A period that is over, in words."""
    name = f"{rolling_days(sla.period)} days" if rolling_days(sla.period) else sla.period
    return [
        {"name": f"attained in the {name} from {found.period.start:%Y-%m-%d}", "value": attained(found)},
        {"name": f"left of {budget(found)} error budget", "value": budget_left(found)},
    ]


def choices(settings: Settings) -> dict[str, list[str]]:
    """What the filters offer: groups as the configuration writes them, names and patterns."""
    return {
        "clusters": [cluster.name for cluster in settings.clusters],
        "teams": sorted({sla.team for sla in settings.slas if sla.team}, key=natural),
        "groups": sorted({name for sla in settings.slas for name in written(sla.groups)}, key=natural),
        "slas": [sla.name for sla in settings.slas],
    }


def validated(rows: Sequence[Quality], context: Context) -> list[dict[str, Any]]:
    """The newest validation of each table."""
    tables = []
    for name, mine in groupby(rows, key=lambda row: row.table_name):
        results = list(mine)
        broken = [row for row in results if not row.success]
        tables.append(
            {
                "name": name,
                "all": len(results),
                "held": len(results) - len(broken),
                "from": moment(results[0].interval_start),
                "to": moment(results[0].interval_end),
                "broken": [expectation(row, context) for row in broken],
            }
        )
    return tables


def expectation(row: Quality, context: Context) -> dict[str, Any]:
    """A broken expectation with a few of the rows that broke it."""
    rows = context.ledger.queries.quarantined_rows(row.load_id, row.expectation_id, ROWS)
    return {
        "row": row,
        "start": moment(row.interval_start),
        "broke": UNKNOWN if row.unexpected_rows is None else count(row.unexpected_rows),
        "examples": [_readable(text) for text in rows],
    }


def _readable(text: str) -> str:
    """A quarantined row without the columns that say nothing."""
    values = {key: value for key, value in json.loads(text).items() if value is not None}
    return ", ".join(f"{key}: {value}" for key, value in values.items())


def coverage(days: Sequence[CoverageDay]) -> list[dict[str, Any]]:
    """A row a cluster and a cell a day, the oldest first; parts as whole per mille, which a picture stacks."""
    return [
        {"cluster": cluster, "days": [_covered(day) for day in sorted(mine, key=lambda day: day.day)]}
        for cluster, mine in groupby(sorted(days, key=lambda day: day.cluster), key=lambda day: day.cluster)
    ]


def _covered(day: CoverageDay) -> dict[str, Any]:
    parts, at = [], 1000
    for name in ("measured", "reconstructed", "unknown", "missing", "before", "ahead"):
        height = round(1000 * getattr(day, name))
        at -= height
        parts.append({"name": name, "y": max(0, at), "height": height, "text": share(getattr(day, name))})
    known = [f"{part['text']} {part['name']}" for part in parts if part["height"]]
    after = date.fromisoformat(day.day) + timedelta(days=1)
    return {
        "day": day.day,
        "next": f"{after}",
        "number": day.day[-2:],
        "month": day.day[:7] if day.day.endswith("-01") else "",
        "parts": parts,
        "text": f"{day.day}: {', '.join(known)}",
        "is_missing": any(part["height"] > 0 for part in parts if part["name"] in ("unknown", "missing")),
    }


def judged(context: Context, sla: Sla, interval: Interval, link: Link) -> dict[str, Any]:
    """What one run's time looks like for an SLA."""
    found = context.ledger.verdicts.judged(sla, interval)
    query = {"from": f"{interval.start:%Y-%m-%dT%H:%M}", "to": f"{interval.end:%Y-%m-%dT%H:%M}"}
    return {
        "name": sla.name,
        "href": link(f"/slas/{sla.name}", **query),
        "threshold": limits(found.windows, sla),
        "worst": span(found.worst_latency_ms),
        "verdicts": found.verdicts,
        "misses": [{"href": link(f"/misses/{m.id}"), "id": m.id} for m in found.misses],
    }
