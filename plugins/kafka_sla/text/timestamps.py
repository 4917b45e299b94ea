"""Instants as people write them: ISO-8601 in, UTC datetimes out, and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

INSTANT_ALLOWED = "an ISO-8601 time such as 2026-11-01T02:00:00Z, 2026-11-01T03:00+01:00 or 2026-11-01 (midnight)"

_SEPARATED = re.compile(r"[0-9]{4}(-?[0-9]{2}-?[0-9]{2}|-?W[0-9]{2}(-?[0-9])?)([T ].*)?", re.IGNORECASE)


def parse_instant(text: object, time_zone: str = "UTC") -> datetime:
    """An ISO-8601 time in UTC; without an offset by the clock of `time_zone`. ValueError says what is allowed."""
    try:
        at = _instant(text.strip()) if isinstance(text, str) else None
        aware = at and (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(time_zone))).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not a time ({error}); allowed: {INSTANT_ALLOWED}") from error
    if aware is None or not 1970 <= aware.year <= 9998:
        raise ValueError(f"not a time between 1970 and 9998; allowed: {INSTANT_ALLOWED}")
    return aware


def _instant(text: str) -> datetime:
    """Python takes any character after the date, also the sign of an offset, whose hour would be the time of day."""
    if not _SEPARATED.fullmatch(text):
        raise ValueError("T or a blank stands between date and time of day")
    return datetime.fromisoformat(text)


def instant_text(at: datetime) -> str:
    """An aware datetime as ISO-8601 UTC with milliseconds: 2026-11-01T02:00:00.000Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
