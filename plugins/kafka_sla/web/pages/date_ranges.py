"""Spans of time as a page offers and names them: presets, calendar periods, neighbours. Reads nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import Request

from kafka_sla.model.entities import Interval, Sla
from kafka_sla.sla.periods import period_before, period_until
from kafka_sla.text.formatting import moment
from kafka_sla.text.formatting import span as length_text
from kafka_sla.text.periods import before, this_period
from kafka_sla.web.api.params import AHEAD, LONGEST, asked_span

PRESETS = (
    ("6 hours", timedelta(hours=6)),
    ("24 hours", timedelta(hours=24)),
    ("7 days", timedelta(days=7)),
    ("30 days", timedelta(days=30)),
    ("90 days", timedelta(days=90)),
    ("a year", timedelta(days=365)),
)

_OURS = ("from", "to")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def asked(request: Request, now: datetime, default: timedelta) -> Interval:
    """The span that `from` and `to` ask for, else the newest of that length."""
    return asked_span(request.query_params.get("from"), request.query_params.get("to"), now, default)


def shown(
    span: Interval, request: Request | None = None, now: datetime | None = None, longest: timedelta = PRESETS[-1][1]
) -> dict[str, Any]:
    """A span as templates use it, with the newest spans to choose from, which keep a request's other parameters."""
    length = span.end - span.start
    end = (now or span.end).replace(second=0, microsecond=0) + timedelta(minutes=1)
    others = {key: value for key, value in (request.query_params if request else {}).items() if key not in _OURS}
    wider = _wider(span, now or span.end)
    return {
        "others": f"?{urlencode(others)}&" if others else "?",
        "presets": [_choice(name, Interval(end - long, end), span) for name, long in PRESETS if long <= longest],
        "from": field_text(span.start),
        "to": field_text(span.end),
        "wider": {"from": field_text(wider.start), "to": field_text(wider.end)} if wider != span else None,
        "start": moment(span.start),
        "end": moment(span.end),
        "length": length_text(length / timedelta(milliseconds=1)),
    }


def choices(span: Interval, sla: Sla, now: datetime) -> dict[str, list[tuple[str, str, str, bool]]]:
    """Name, from, to and whether it is the one shown: newest spans, calendar periods, and neighbours."""
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    this = period_until(sla, end)
    last = period_before(sla, this)
    return {
        "newest": [_choice(name, Interval(end - long, end), span) for name, long in PRESETS],
        "calendar": [_choice(this_period(sla.period), this, span), _choice(before(sla.period), last, span)],
        "around": [(name, field_text(at.start), field_text(at.end), False) for name, at in _around(span, now).items()],
    }


def _around(span: Interval, now: datetime) -> dict[str, Interval]:
    """The neighbours of a span that may be asked for."""
    half = (span.end - span.start) / 2
    neighbours = {
        "earlier": Interval(span.start - half, span.end - half),
        "later": Interval(span.start + half, span.end + half),
        "zoom out": _wider(span, now),
    }
    allowed = Interval(_EARLIEST, now + AHEAD)
    return {
        name: at
        for name, at in neighbours.items()
        if at != span and allowed.start <= at.start and at.end <= allowed.end
    }


def _wider(span: Interval, now: datetime) -> Interval:
    """Three times as long, or as long as may be asked for, on both sides of the span where time allows."""
    length = span.end - span.start
    wider = min(3 * length, LONGEST)
    end = span.end + min((wider - length) / 2, now + AHEAD - span.end)  # never beyond the last year that there is
    start = max(end - wider, _EARLIEST)
    return Interval(start, end)


def _choice(name: str, choice: Interval, span: Interval) -> tuple[str, str, str, bool]:
    near = abs(choice.start - span.start) < timedelta(minutes=2) and abs(choice.end - span.end) < timedelta(minutes=2)
    return name, field_text(choice.start), field_text(choice.end), near


def field_text(at: datetime) -> str:
    """As a datetime-local field wants it, UTC; with seconds where there are any."""
    return at.strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00")
