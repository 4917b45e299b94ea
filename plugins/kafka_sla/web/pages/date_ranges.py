"""Spans of time as a page offers and names them: presets, calendar periods, neighbours. Reads nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import Request

from kafka_sla.model.entities import Interval, Sla
from kafka_sla.sla.periods import period_before, period_until
from kafka_sla.text.formatting import moment
from kafka_sla.text.formatting import span as length_text
from kafka_sla.text.periods import before, this_period
from kafka_sla.web.api.params import asked_span

PRESETS = (
    ("6 hours", timedelta(hours=6)),
    ("24 hours", timedelta(hours=24)),
    ("7 days", timedelta(days=7)),
    ("30 days", timedelta(days=30)),
    ("90 days", timedelta(days=90)),
    ("a year", timedelta(days=365)),
)

_OURS = ("from", "to")


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
    return {
        "others": f"?{urlencode(others)}&" if others else "?",
        "presets": [_choice(name, Interval(end - long, end), span) for name, long in PRESETS if long <= longest],
        "from": field_text(span.start),
        "to": field_text(span.end),
        "start": moment(span.start),
        "end": moment(span.end),
        "length": length_text(length / timedelta(milliseconds=1)),
    }


def choices(span: Interval, sla: Sla, now: datetime) -> dict[str, list[tuple[str, str, str, bool]]]:
    """Name, from, to and whether it is the one shown: newest spans, calendar periods, and neighbours."""
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    length = span.end - span.start
    this = period_until(sla, end)
    last = period_before(sla, this)
    return {
        "newest": [_choice(name, Interval(end - long, end), span) for name, long in PRESETS],
        "calendar": [_choice(this_period(sla.period), this, span), _choice(before(sla.period), last, span)],
        "around": [
            _choice("earlier", Interval(span.start - length / 2, span.end - length / 2), span),
            _choice("later", Interval(span.start + length / 2, span.end + length / 2), span),
            _choice("zoom out", Interval(span.start - length, span.end + length), span),
        ],
    }


def _choice(name: str, choice: Interval, span: Interval) -> tuple[str, str, str, bool]:
    near = abs(choice.start - span.start) < timedelta(minutes=2) and abs(choice.end - span.end) < timedelta(minutes=2)
    return name, field_text(choice.start), field_text(choice.end), near


def field_text(at: datetime) -> str:
    """As a datetime-local field wants it, UTC; with seconds where there are any."""
    return at.strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00")
