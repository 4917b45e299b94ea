"""Time that somebody wants to exclude afterwards, checked before anything is written. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Interval, Sla, floor_time

LONGEST = timedelta(days=366)
LONGEST_TEXT = 1_000


@dataclass(frozen=True, slots=True)
class ExclusionRequest:
    """Whole windows of an SLA, why, and who says so."""

    sla: Sla
    span: Interval
    reason: str
    author: str


def exclusion_request(
    sla: Sla, time: tuple[datetime, datetime], reason: str, author: str, *, now: datetime, window_ms: int
) -> ExclusionRequest:
    """The windows that this time touches; BadRequest says what is wrong with it."""
    start, end = time
    reason, author = reason.strip(), author.strip()
    if end <= start:
        raise BadRequest("an exclusion must end after it starts; exchange the two times?")
    if end > now:
        raise BadRequest(
            "an exclusion is of the past, and this ends in the future: plan it as `maintenance` of the SLA"
        )
    if end - start > LONGEST:
        raise BadRequest(f"an exclusion is at most {LONGEST.days} days long; check the year, or exclude it in parts")
    if not reason or not author:
        raise BadRequest(
            "an exclusion needs a reason and an author, which are kept with it: a load test, a wrong clock"
        )
    check_length(reason, author)
    last = floor_time(end - timedelta(microseconds=1), window_ms) + timedelta(milliseconds=window_ms)
    return ExclusionRequest(sla, Interval(floor_time(start, window_ms), last), reason, author)


def check_length(*texts: str) -> None:
    """BadRequest where a reason or an author is too long."""
    if max(map(len, texts)) > LONGEST_TEXT:
        raise BadRequest(f"reason and author have at most {LONGEST_TEXT:,} characters; link the whole story instead")
