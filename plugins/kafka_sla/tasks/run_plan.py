"""What one run is to do, decided from its data interval or its form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypedDict

from kafka_sla.config.settings import Settings
from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Interval, Sla, floor_time

_A_TASK_EACH, _MOST_OF_A_TASK = 20, 50
NEWS = timedelta(hours=1)
"""A miss that a late run finds in an interval older than this is history: it is recorded and shown, not mailed."""
LONGEST = timedelta(days=31)
LONGEST_STORED = timedelta(days=100)
"""A quarter: what is stored costs no look-ups, so one run may measure more of it."""
Tell = Literal["auto", "always", "never"]


class Frozen(TypedDict):
    """Where the configuration of a run is kept: read from the file once, by the run's first task."""

    store: str
    """Airflow connection of the store."""
    configuration: str
    """Digest of the configuration in it."""


class Plan(Frozen):
    """What the other tasks need to know; travels through XCom, so JSON only."""

    start: str
    end: str
    clusters: list[str]
    slas: list[str]
    live_until: str | None
    """Before this instant, what Kafka says now still belongs to the interval: it ended less than one interval ago."""
    notify: bool
    stored: bool
    """Kafka is not asked: the facts that are stored are measured anew."""
    alarm: bool
    """This run may fail an SLA's task; false for backfills and history, which only record."""


class Batch(TypedDict):
    """SLAs that one task evaluates, and its name in the grid."""

    label: str
    slas: list[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A run as Airflow describes it. `start`, `end`, `clusters`, `slas` and `tell` are what its form says."""

    every: timedelta
    watches: bool
    """Runs of this DAG watch the present: they take snapshots, mail, and fail on misses."""
    run_after: datetime
    backfill: bool = False
    data_interval: Interval | None = None
    start: datetime | None = None
    end: datetime | None = None
    clusters: tuple[str, ...] = ()
    slas: tuple[str, ...] = ()
    tell: Tell = "auto"
    stored: bool = False


def plan(settings: Settings, kept: Frozen, request: Request, now: datetime) -> Plan:
    """Decide; BadRequest or SettingsError say what to ask for instead. `kept`: where the settings are kept."""
    interval = _interval(request, settings.window_ms, now)
    clusters, slas = _scope(settings, request)
    watches = request.watches and not request.backfill
    return Plan(
        **kept,
        start=interval.start.isoformat(),
        end=interval.end.isoformat(),
        clusters=clusters,
        slas=slas,
        live_until=(interval.end + request.every).isoformat() if watches and not request.stored else None,
        notify=watches and _tells(request, interval, now),
        stored=request.stored,
        alarm=watches,
    )


def planned(plan: Plan) -> Interval:
    """The interval of a plan."""
    return Interval(datetime.fromisoformat(plan["start"]), datetime.fromisoformat(plan["end"]))


def is_live(plan: Plan, now: datetime) -> bool:
    """Whether a snapshot of now may be taken for the plan's interval."""
    return plan["live_until"] is not None and now < datetime.fromisoformat(plan["live_until"])


def _tells(request: Request, interval: Interval, now: datetime) -> bool:
    if request.tell == "auto":
        return request.start is None and now - interval.end < NEWS
    return request.tell == "always"


def _interval(request: Request, window_ms: int, now: datetime) -> Interval:
    if request.start is None and request.end is None:
        return request.data_interval or _last_complete(request)
    if request.start is None or request.end is None:
        missing = "From" if request.start is None else "To"
        raise BadRequest(f"{missing} is empty; give both From and To, or neither for the last complete interval")
    interval = _checked(request.start, request.end, window_ms, now)
    longest = LONGEST_STORED if request.stored else LONGEST
    if interval.end - interval.start > longest:
        last_day = interval.end - timedelta(microseconds=1)
        raise BadRequest(
            f"{interval.start:%F} to {interval.end:%F} is more than {longest.days} days for one run; backfill it a day"
            f" per run: airflow backfill create --dag-id kafka_sla_history --from-date {interval.start:%F}"
            f" --to-date {last_day:%F}"
        )
    return interval


def _last_complete(request: Request) -> Interval:
    end = floor_time(request.run_after, request.every // timedelta(milliseconds=1))
    return Interval(end - request.every, end)


def _checked(start: datetime, end: datetime, window_ms: int, now: datetime) -> Interval:
    start, end = _utc(start), _utc(end)
    if end <= start:
        raise BadRequest(f"To ({end:%F %T}) must be after From ({start:%F %T}); exchange them?")
    if end > now:
        latest = floor_time(now, window_ms)
        raise BadRequest(
            f"To ({end:%F %T} UTC) is in the future; the latest that can be measured is {latest:%F %T} UTC"
        )
    for name, at in (("From", start), ("To", end)):
        if (whole := floor_time(at, window_ms)) != at:
            after = whole + timedelta(milliseconds=window_ms)
            raise BadRequest(
                f"{name} ({at:%F %T} UTC) is not at the edge of a window of {window_ms // 1000} s;"
                f" give {whole:%F %T} or {after:%F %T}"
            )
    return Interval(start, end)


def _utc(at: datetime) -> datetime:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def _scope(settings: Settings, request: Request) -> tuple[list[str], list[str]]:
    """Clusters to measure and SLAs to judge. SLAs alone imply their clusters; clusters alone, all their SLAs."""
    asked = [settings.sla(name) for name in request.slas]
    clusters = [settings.cluster(name).name for name in request.clusters]
    if asked and not clusters:
        clusters = [c.name for c in settings.clusters if c.name in {sla.cluster for sla in asked}]
    clusters = clusters or [c.name for c in settings.clusters]
    for sla in asked:
        if sla.cluster not in clusters:
            raise BadRequest(f"the SLA {sla.name!r} is about the cluster {sla.cluster!r}; choose that cluster too")
    return clusters, [sla.name for sla in asked or settings.slas if sla.cluster in clusters]


def batches(slas: Sequence[Sla]) -> list[Batch]:
    """A task an SLA as long as they are few, else a task a team, or part of one: SLAs of one task share what they read,
    and the grid stays short."""
    if len(slas) <= _A_TASK_EACH:
        return [Batch(label=sla.name, slas=[sla.name]) for sla in slas]
    found = []
    for team in sorted({sla.team for sla in slas}):
        names = [sla.name for sla in slas if sla.team == team]
        parts = [names[i : i + _MOST_OF_A_TASK] for i in range(0, len(names), _MOST_OF_A_TASK)]
        for number, part in enumerate(parts, 1):
            count = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            found.append(Batch(label=f"{team or 'no team'}{count}", slas=part))
    return found
