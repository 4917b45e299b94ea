"""Per cluster and day: what was measured at the time, reconstructed later, and is missing. Draws nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from fastapi import HTTPException

from kafka_sla.model import Interval, floor_time
from kafka_sla.parquet_rows import opened
from kafka_sla.stretches import DAY_MS
from kafka_sla.tables import GROUP_STATES
from kafka_sla.web.answers import CoverageDay
from kafka_sla.web.place import Place

LONGEST = timedelta(days=62)
VOUCHED = timedelta(minutes=10)
"""A snapshot speaks for the time since the one before, but for so long at most: two runs of five minutes."""
Spans = dict[str, list[Interval]]


def coverage_days(here: Place, interval: Interval) -> list[CoverageDay]:
    """Every configured cluster and UTC day of the interval, the newest day first."""
    days = Interval(floor_time(interval.start, DAY_MS), interval.end)
    if days.end - days.start > LONGEST:
        raise HTTPException(400, "coverage is told for two months at most; ask for less")
    published = _published(here, days)
    watched = _watched(here, days)
    clusters = [cluster.name for cluster in here.settings.clusters]
    return [
        _day(cluster, day, here.now, published.get(cluster, []), watched.get(cluster, []))
        for day in reversed(list(days.windows(DAY_MS)))
        for cluster in clusters
    ]


def _day(cluster: str, day: Interval, now: datetime, published: Sequence[Interval], watched: Sequence[Interval]
         ) -> CoverageDay:  # fmt: skip
    over = Interval(day.start, max(min(day.end, now), day.start + timedelta(microseconds=1)))
    shown = _clipped(published, over)
    length = day.end - day.start
    known = sum((span.end - span.start for span in shown), timedelta()) / length
    seen = sum((s.end - s.start for span in shown for s in _clipped(watched, span)), timedelta()) / length
    done = (over.end - over.start) / length
    return CoverageDay(
        cluster=cluster, day=f"{day.start:%Y-%m-%d}", measured=round(seen, 5), reconstructed=round(known - seen, 5),
        missing=round(max(0.0, done - known), 5), ahead=round(1 - done, 5),
    )  # fmt: skip


def _published(here: Place, days: Interval) -> Spans:
    spans: Spans = defaultdict(list)
    for one in here.ledger.published(days):
        spans[one.cluster].append(one.interval)
    return {cluster: _merged(mine) for cluster, mine in spans.items()}


def _watched(here: Place, days: Interval) -> Spans:
    """The time that snapshots of consumer groups speak for: nothing but a snapshot knows their states."""
    files = here.lake.fact_files(GROUP_STATES, days.start, days.end)
    if not files:
        return {}
    with opened(files, []) as database:
        rows = database.execute(
            'SELECT cluster, epoch_us("at") FROM files WHERE "at" >= $1 AND "at" <= $2 GROUP BY ALL ORDER BY ALL',
            [days.start, days.end],
        ).fetchall()
    spans: Spans = defaultdict(list)
    for cluster, at_us in rows:
        at = datetime.fromtimestamp(0, days.start.tzinfo) + timedelta(microseconds=at_us)
        spans[cluster].append(Interval(at - VOUCHED, at))
    return {cluster: _merged(mine) for cluster, mine in spans.items()}


def _merged(spans: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found


def _clipped(spans: Sequence[Interval], to: Interval) -> list[Interval]:
    return [Interval(max(span.start, to.start), min(span.end, to.end)) for span in spans if span.overlaps(to)]
