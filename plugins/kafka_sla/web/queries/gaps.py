"""Time that is over and was not published, or not judged, why as far as Airflow's runs tell, and what measures it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel, Field

from kafka_sla.ledger import failures
from kafka_sla.model.entities import Interval, floor_time
from kafka_sla.sla.rollups import DAY_MS
from kafka_sla.text.natural_order import natural
from kafka_sla.web.queries import airflow_runs, backfill_commands
from kafka_sla.web.queries.backfill_commands import Remediation
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.coverage import Spans, between, clipped, unknown_spans

UNDER_WAY = timedelta(minutes=15)
"""The newest time is not missing yet: the run that measures it may still be working."""
SHOWN = 200
_DAY = timedelta(milliseconds=DAY_MS)


class MissingTime(BaseModel):
    """A span about which nothing is known."""

    cluster: str
    start: datetime
    end: datetime
    published: bool = Field(description="it is published, but every verdict is unknown")
    failed_runs: int = Field(description="runs of this time that failed")
    runs_under_way: int = Field(description="queued or running")
    reason: str | None = Field(description="why the last attempt to measure some of it failed")


class Unjudged(BaseModel):
    """Published time that an SLA was not, or not wholly, judged in: whole days, or an interval in which it could not
    be."""

    sla: str
    start: datetime
    end: datetime
    reason: str | None = Field(description="why the last attempt to judge some of it failed")


class Missing(BaseModel):
    """What is missing in a span, and what measures it."""

    start: datetime
    end: datetime = Field(description="what is newer may still be measured")
    times: list[MissingTime] = Field(description="the newest first")
    omitted: int = Field(description="older spans that are not listed; the commands include them")
    unjudged: list[Unjudged]
    remediations: list[Remediation]


def missing(context: Context, asked: Interval, published: Spans) -> Missing:
    """By cluster what was never published, by SLA what was never judged; `published`: of the days asked for."""
    over = _over(context, asked)
    if over is None:
        return Missing(start=asked.start, end=asked.start, times=[], omitted=0, unjudged=[], remediations=[])
    gaps = {c.name: list(between(published.get(c.name, []), over)) for c in context.settings.clusters}
    unknown = unknown_spans(context, over, published)
    times = sorted(
        (
            (gap, name, is_published)
            for spans, is_published in ((gaps, False), (unknown, True))
            for name in spans
            for gap in spans[name]
        ),
        reverse=True,
    )
    unjudged = _unjudged(context, over, published)
    return Missing(
        start=over.start,
        end=over.end,
        times=_told(context, times[:SHOWN], over),
        omitted=max(0, len(times) - SHOWN),
        unjudged=unjudged,
        remediations=[*_measuring(gaps, context.now), *_judging(unjudged)],
    )


def _over(context: Context, asked: Interval) -> Interval | None:
    until = min(asked.end, floor_time(context.now - UNDER_WAY, context.settings.window_ms))
    start = floor_time(asked.start, context.settings.window_ms)
    return Interval(start, until) if start < until else None


def _told(context: Context, times: Sequence[tuple[Interval, str, bool]], over: Interval) -> list[MissingTime]:
    failed, working = airflow_runs.unfinished(over, context.now) if times else ([], [])
    reasons = context.ledger.failures.within(over) if times else []
    return [
        MissingTime(
            cluster=cluster,
            start=gap.start,
            end=gap.end,
            published=is_published,
            failed_runs=sum(run.overlaps(gap) for run in failed),
            runs_under_way=sum(run.overlaps(gap) for run in working),
            reason=next((f.reason for f in reasons if f.cluster == cluster and f.interval.overlaps(gap)), None),
        )
        for gap, cluster, is_published in times
    ]


def _measuring(gaps: dict[str, list[Interval]], now: datetime) -> Iterator[Remediation]:
    """A backfill for days that are over, a run of the live DAG for today; each for the clusters that lack something."""
    today = floor_time(now, DAY_MS)
    lacking: dict[datetime, list[str]] = defaultdict(list)
    for cluster, mine in gaps.items():
        for day in sorted({day for gap in mine for day in _days(gap)}):
            lacking[day].append(cluster)
    alike: dict[tuple[str, ...], list[datetime]] = defaultdict(list)
    for day, names in lacking.items():
        alike[tuple(names)].append(day)
    known = airflow_runs.days_with_runs(Interval(min(lacking), max(lacking) + _DAY)) if lacking else set()
    for clusters, days in sorted(alike.items()):
        named = [] if len(clusters) == len(gaps) else list(clusters)
        for span in backfill_commands.ranges((day for day in days if day < today), backfill_commands.LONGEST):
            yield backfill_commands.backfill(span, named, again=any(day in known for day in _days(span)))
        if today in days:
            mine = [gap for cluster in clusters for gap in gaps[cluster] if gap.end > today]
            start = max(today, min(gap.start for gap in mine))
            yield backfill_commands.trigger(Interval(start, max(gap.end for gap in mine)), named)


def _unjudged(context: Context, over: Interval, published: Spans) -> list[Unjudged]:
    """Whole days without all their verdicts, and of other time that which could not be judged, in time order."""
    names = {sla.name for sla in context.settings.slas}
    failed = [one for one in reversed(context.ledger.failures.unjudged_within(over)) if one.sla in names]
    found = [
        Unjudged(sla=sla, start=span.start, end=span.end, reason=_last_reason(failed, sla, span))
        for sla, span in _unjudged_days(context, over, published)
    ]
    rest = [f for f in failed if not any(f.sla == d.sla and d.start <= f.interval.start < d.end for d in found)]
    return [*found, *_joined(rest)]


def _joined(failed: Iterable[failures.Unjudged]) -> Iterator[Unjudged]:
    """Intervals of an SLA that follow each other as one, with the reason of the last."""
    last: Unjudged | None = None
    for one in sorted(failed, key=lambda f: (natural(f.sla), f.interval)):
        if last and last.sla == one.sla and one.interval.start <= last.end:
            end = max(last.end, one.interval.end)
            last = last.model_copy(update={"end": end, "reason": one.reason})
            continue
        if last:
            yield last
        last = Unjudged(sla=one.sla, start=one.interval.start, end=one.interval.end, reason=one.reason)
    if last:
        yield last


def _last_reason(failed: Sequence[failures.Unjudged], sla: str, span: Interval) -> str | None:
    return next((one.reason for one in reversed(failed) if one.sla == sla and one.interval.overlaps(span)), None)


def _unjudged_days(context: Context, over: Interval, published: Spans) -> Iterator[tuple[str, Interval]]:
    whole = [day for day in _days(over) if over.start <= day and day + _DAY <= over.end]
    if not whole:
        return
    days = [Interval(day, day + _DAY) for day in whole]
    shown = {cluster: {day.start: _length(clipped(mine, day)) for day in days} for cluster, mine in published.items()}
    judged = context.ledger.rollups.judged_by_day(
        [sla.name for sla in context.settings.slas], Interval(whole[0], whole[-1] + _DAY)
    )
    window = timedelta(milliseconds=context.settings.window_ms)
    for sla in context.settings.slas:
        mine = shown.get(sla.cluster, {})
        lacking = [day for day, length in mine.items() if judged[sla.name].get(day, timedelta()) + window <= length]
        for span in backfill_commands.ranges(lacking, backfill_commands.LONGEST_STORED):
            yield sla.name, span


def _judging(unjudged: Sequence[Unjudged]) -> Iterator[Remediation]:
    alike: dict[tuple[datetime, datetime], list[str]] = defaultdict(list)
    for one in unjudged:
        alike[one.start, one.end].append(one.sla)
    for (start, end), slas in sorted(alike.items()):
        yield backfill_commands.judge(Interval(start, end), slas)


def _days(span: Interval) -> Iterator[datetime]:
    """The start of each UTC day that the span touches."""
    return (day.start for day in Interval(floor_time(span.start, DAY_MS), span.end).windows(DAY_MS))


def _length(spans: Iterable[Interval]) -> timedelta:
    return sum((span.end - span.start for span in spans), timedelta())
