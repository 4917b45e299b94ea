"""Per cluster and day: what was measured at the time, reconstructed later, and is missing. Draws nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from fastapi import HTTPException

from kafka_sla.ledger.observed_time import merged
from kafka_sla.model.entities import Interval, floor_time
from kafka_sla.sla.rollups import DAY_MS
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import CoverageDay

LONGEST = timedelta(days=100)
Spans = Mapping[str, list[Interval]]


def coverage_days(context: Context, interval: Interval, published: Spans) -> list[CoverageDay]:
    """Every configured cluster and UTC day of the interval, the newest day first."""
    days = Interval(floor_time(interval.start, DAY_MS), interval.end)
    clusters = [cluster.name for cluster in context.settings.clusters]
    watched = context.ledger.observed_time.spans(clusters, days)
    first = context.ledger.queries.first_published()
    unknown = unknown_spans(context, days, published)
    return [
        _day(
            cluster,
            day,
            context.now,
            first.get(cluster),
            published.get(cluster, []),
            watched.get(cluster, []),
            unknown.get(cluster, []),
        )
        for day in reversed(list(days.windows(DAY_MS)))
        for cluster in clusters
    ]


def _day(
    cluster: str,
    day: Interval,
    now: datetime,
    first: datetime | None,
    published: Sequence[Interval],
    watched: Sequence[Interval],
    unknown: Sequence[Interval],
) -> CoverageDay:
    over = Interval(day.start, max(min(day.end, now), day.start + timedelta(microseconds=1)))
    shown = clipped(published, over)
    length = day.end - day.start
    told = [part for span in shown for part in between(unknown, span)]
    published_share, known = _sum(shown) / length, _sum(told) / length
    seen = _sum([s for span in told for s in clipped(watched, span)]) / length
    done = (over.end - over.start) / length
    before = (min(max(first or over.end, over.start), over.end) - over.start) / length
    return CoverageDay(
        cluster=cluster,
        day=f"{day.start:%Y-%m-%d}",
        measured=round(seen, 5),
        reconstructed=round(known - seen, 5),
        unknown=round(published_share - known, 5),
        missing=round(max(0.0, done - before - published_share), 5),
        before=round(before, 5),
        ahead=round(1 - done, 5),
    )


def published_spans(context: Context, interval: Interval) -> Spans:
    """The time of each cluster about which something is published, on the UTC days of the interval. A page of more days
    could not be read."""
    if interval.end - interval.start > LONGEST:
        raise HTTPException(400, f"coverage is limited to {LONGEST.days} days; choose a shorter time")
    spans: dict[str, list[Interval]] = defaultdict(list)
    for one in context.ledger.queries.publications(Interval(floor_time(interval.start, DAY_MS), interval.end)):
        spans[one.cluster].append(one.interval)
    return {cluster: merged(mine) for cluster, mine in spans.items()}


def unknown_spans(context: Context, interval: Interval, published: Spans) -> Spans:
    """The published time of each cluster in which every verdict is unknown."""
    slas = {
        c.name: [sla.name for sla in context.settings.slas if sla.cluster == c.name] for c in context.settings.clusters
    }
    hours = {cluster: context.ledger.rollups.unknown_spans(names, interval) for cluster, names in slas.items()}
    return {
        cluster: [part for span in clipped(published.get(cluster, []), interval) for part in clipped(spans, span)]
        for cluster, spans in hours.items()
    }


def between(spans: Sequence[Interval], whole: Interval) -> Iterator[Interval]:
    """What these spans, in time order, leave of the whole."""
    at = whole.start
    for span in clipped(spans, whole):
        if at < span.start:
            yield Interval(at, span.start)
        at = max(at, span.end)
    if at < whole.end:
        yield Interval(at, whole.end)


def _sum(spans: Sequence[Interval]) -> timedelta:
    return sum((span.end - span.start for span in spans), timedelta())


def clipped(spans: Sequence[Interval], to: Interval) -> list[Interval]:
    """The parts of these spans that are in the interval."""
    return [Interval(max(span.start, to.start), min(span.end, to.end)) for span in spans if span.overlaps(to)]
