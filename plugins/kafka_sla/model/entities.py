"""The nouns that cross rooms, as frozen values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from kafka_sla.model.name_regex import matches_name

Verdict = Literal["good", "bad", "excluded", "unknown"]
OnMiss = Literal["notify", "fail"]
MissState = Literal["open", "recovered", "excluded", "removed"]
"""Open; or over, because of good windows, because it is no longer judged, or because its SLA left the configuration."""
WhenUncertain = Literal["unknown", "bad", "good", "estimate"]
PartitionsOf = Literal["all", "committed"]
LatencyFrom = Literal["created", "appended", "later"]
WebhookFormat = Literal["json", "slack", "teams", "pagerduty", "opsgenie", "alertmanager"]
Period = str
"""`day`, `week`, `month`, `quarter`, `year`, or the last so many days: `28d`."""
ObjectiveOf = Literal["time", "records"]
Severity = Literal["page", "ticket"]
_MINUTE = timedelta(minutes=1)
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A half-open span of UTC time [start, end)."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("an interval needs time zones; give UTC datetimes")
        if self.end <= self.start:
            raise ValueError(f"an interval must end after it starts: {self.start:%FT%TZ} .. {self.end:%FT%TZ}")

    def overlaps(self, other: Interval) -> bool:
        return self.start < other.end and other.start < self.end

    def covers(self, other: Interval) -> bool:
        return self.start <= other.start and other.end <= self.end

    def within(self, other: Interval) -> Interval | None:
        """What of it lies in the other one."""
        return Interval(max(self.start, other.start), min(self.end, other.end)) if self.overlaps(other) else None

    def windows(self, width_ms: int) -> Iterator[Interval]:
        """Epoch-aligned windows of `width_ms` that begin inside this interval."""
        width = timedelta(milliseconds=width_ms)
        start = floor_time(self.start, width_ms)
        if start < self.start:
            start += width
        while start < self.end:
            yield Interval(start, start + width)
            start += width

    def pieces(self, length: timedelta) -> Iterator[Interval]:
        """This interval cut into pieces of at most that length."""
        start = self.start
        while start < self.end:
            end = min(start + length, self.end)
            yield Interval(start, end)
            start = end

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%dT%H:%M:%SZ}/{self.end:%Y-%m-%dT%H:%M:%SZ}"


MOST = 2**63 - 1
"""The largest number that any store here keeps: sums that are larger are cut off there, or unknown."""
EVERYTHING = Interval(datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC))
"""All the time that rows may have."""


def hull(intervals: Iterable[Interval]) -> Interval:
    """The shortest interval that covers all of these, of which there must be one."""
    found = list(intervals)
    return Interval(min(one.start for one in found), max(one.end for one in found))


def floor_time(at: datetime, width_ms: int) -> datetime:
    """The last multiple of `width_ms` since the epoch that is not after `at`."""
    return datetime.fromtimestamp(epoch_ms(at) // width_ms * width_ms / 1000, UTC)


def ceil_time(at: datetime, width_ms: int) -> datetime:
    """The first multiple of `width_ms` since the epoch that is not before `at`."""
    floor = floor_time(at, width_ms)
    return floor if floor == at else floor + timedelta(milliseconds=width_ms)


def epoch_ms(at: datetime) -> int:
    """Whole milliseconds since 1970-01-01 UTC."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where an outside system is and how to log in. `password` and `extra` are secret: never log or print them."""

    id: str
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    schema: str | None = None
    conn_type: str | None = None
    extra: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Patterns:
    """Names that a configuration selects, as regexes in which a dot is any character; `exclude` wins."""

    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        """Whether the name is selected; takes time linear in its length, whatever the patterns are."""
        return any(matches_name(p, name) for p in self.include) and not any(matches_name(p, name) for p in self.exclude)


@dataclass(frozen=True, slots=True)
class StatusRules:
    """How the table `consumer_status` judges a cluster's consumers (Burrow)."""

    commits: int = 10
    """Commits that are evaluated: the length of the sliding window."""
    allowed_lag: int = 0
    """Current lag up to which a consumer is fine whatever its commits look like."""
    min_complete: float = 0.0
    """Share of the commits that must be there, 0 to 1; with fewer the status is OK and says so."""
    expire_group_ms: int = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class ReplicationFlow:
    """MirrorMaker 2 copying a cluster's topics to another one: a consumer named `name` of the source cluster."""

    name: str
    target: str
    """Name of the target cluster in the configuration."""
    offsets_topic: str | None
    """Topic on the target in which MirrorMaker keeps its positions; None: ask Connect."""
    connect: str | None = None
    """Airflow connection to a Connect worker's REST endpoint."""
    connector: str = "MirrorSourceConnector"
    topics: Patterns = Patterns()
    prefix: str = ""
    """What the replication policy puts before a topic's name on the target."""
    refresh_interval_ms: int | None = 15_000
    """None: the lag of this flow is not reported (-1 in KIP-971)."""
    ttl_ms: int = 20_000
    """A last replicated offset seen longer ago is stale."""


@dataclass(frozen=True, slots=True)
class KeptPosition:
    """Where a consumer stood from `at_ms` on that keeps its offsets elsewhere than in its cluster's commit log."""

    group: str
    topic: str
    partition: int
    at_ms: int
    offset: int | None
    """Next offset to read; None: the position was deleted."""
    source: str
    """Word of `committed_offsets.source`."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A broker's JMX exporter."""

    broker: int
    url: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A Spark Structured Streaming query that keeps its Kafka offsets in a checkpoint folder."""

    group: str
    """Consumer group under which its positions appear."""
    path: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """One Kafka cluster. `connection` is an Airflow connection id, or None when its facts are only imported."""

    name: str
    connection: str | None
    groups: Patterns = Patterns()
    topics: Patterns = Patterns()
    status: StatusRules = StatusRules()
    non_consumed_offsets_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Topic and the groups whose unread records are counted there; other topics: every group with an SLA (KIP-490)."""
    replication: tuple[ReplicationFlow, ...] = ()
    jmx_exporters: tuple[Exporter, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    sample_every_ms: int | None = None
    """Between polls of committed offsets while no run reads the cluster; None: it is not sampled."""


@dataclass(frozen=True, slots=True)
class SteadyState:
    """When a bootstrapping consumer counts as steady; all in milliseconds."""

    caught_up_within_ms: int
    grace_period_ms: int | None = None
    expire_group_ms: int = 7 * 86_400_000
    progress_deadline_ms: int = 30 * 60_000
    """A consumer that catches up must make headway within each period of this length; else it counts as steady."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """One planned maintenance that happens once."""

    span: Interval
    reason: str

    def spans(self, interval: Interval) -> Iterator[Interval]:
        """The spans of this maintenance that overlap `interval`."""
        if self.span.overlaps(interval):
            yield self.span


@dataclass(frozen=True, slots=True)
class WeeklyMaintenance:
    """A planned maintenance on some weekdays (0 is Monday), by the clock of a time zone.

    Past midnight when `end` <= `start`. It keeps its length where clocks are put forward over its start or its end, and
    begins then if they skip its start.
    """

    weekdays: tuple[int, ...]
    start: time
    end: time
    time_zone: str
    reason: str

    def spans(self, interval: Interval) -> Iterator[Interval]:
        """The spans of this maintenance that overlap `interval`."""
        zone = ZoneInfo(self.time_zone)
        day = interval.start.astimezone(zone).date() - timedelta(days=1)
        while day <= interval.end.astimezone(zone).date():
            if day.weekday() in self.weekdays:
                until = day + timedelta(days=self.end <= self.start)
                span = _span_by_clock(datetime.combine(day, self.start, zone), datetime.combine(until, self.end, zone))
                if span.overlaps(interval):
                    yield span
            day += timedelta(days=1)


def _span_by_clock(start: datetime, end: datetime) -> Interval:
    """From one local time of a zone to another. A skipped end is taken as if clocks had not been put forward yet."""
    begin = _shown_from(start)
    if _is_skipped(start):
        return Interval(begin, begin + (end.replace(tzinfo=None) - start.replace(tzinfo=None)))
    return Interval(begin, end.astimezone(UTC))


def _is_skipped(local: datetime) -> bool:
    """Whether clocks are put forward over this local time."""
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) != local.replace(tzinfo=None)


def _shown_from(local: datetime) -> datetime:
    """When clocks of its zone show this time or, where they are put forward over it, a later one for the first time."""
    by_offset_before, by_offset_after = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    if by_offset_before <= by_offset_after:
        return by_offset_before
    skipped = range((by_offset_before - by_offset_after) // _MINUTE + 1)
    shown = bisect_left(
        skipped,
        local.replace(tzinfo=None),
        key=lambda n: (by_offset_after + n * _MINUTE).astimezone(local.tzinfo).replace(tzinfo=None),
    )
    return by_offset_after + shown * _MINUTE


@dataclass(frozen=True, slots=True)
class OffsetLookups:
    """How finely Kafka is asked for the time of offsets.

    Gaps wider than `max_gap_ms` or curved are split, none below `min_gap_ms`.
    """

    min_gap_ms: int = 250
    max_per_hour: int = 200_000
    """Look-ups that one snapshot of one cluster may spend on each started hour; the rest shows as wider bounds."""
    max_gap_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Notifier:
    """Any Airflow notifier: dotted class path and its keyword arguments (templated by Airflow)."""

    path: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    each_miss: bool = True
    """Called for each miss on its own, else once for all that share a cause."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver of opened and recovered misses: an Airflow connection of type `http`, and how it wants them."""

    connection: str
    format: WebhookFormat = "json"


@dataclass(frozen=True, slots=True)
class BurnPair:
    """An alert on a burn rate that is exceeded over a long and over a short time."""

    burn_rate: float
    long_ms: int
    short_ms: int
    severity: Severity
    min_bad: int
    """Bad milliseconds, or late records, that the long time must have at least."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a chain: this group reads this topic, and what it writes is read by the stage after it."""

    group: str
    topic: str

    def __str__(self) -> str:
        return f"{self.group} on {self.topic}"


@dataclass(frozen=True, slots=True)
class MeasuredSla:
    """What measuring needs to know of an SLA."""

    name: str
    cluster: str
    groups: Patterns
    topics: Patterns
    max_latency_ms: int
    steady_state: SteadyState
    chain: tuple[Stage, ...] = ()
    """Its stages in order; empty: each record counts for itself, in one topic."""
    allowed_lag: int = 0
    """Records that may wait on a partition without being late."""
    partitions: PartitionsOf = "all"
    """The partitions that a group has to read: all of a topic, or those where it has committed a position."""
    latency_from: LatencyFrom = "later"
    """When latency begins: when a record was created, when it was appended to the log, or the later of the two."""

    @property
    def chain_reach(self) -> timedelta:
        """How far back from the end of a window a record of the chain is followed."""
        return max(timedelta(hours=1), timedelta(milliseconds=2 * self.max_latency_ms))


@dataclass(frozen=True, slots=True)
class Sla:
    """Every record of these groups and topics is consumed within `max_latency_ms`."""

    name: str
    cluster: str
    groups: Patterns
    topics: Patterns
    max_latency_ms: int
    for_ms: int
    objective: float
    """Share of time slices, or of records, that must be good, 0..1 (99.9 % is 0.999)."""
    steady_state: SteadyState
    period: Period = "month"
    time_zone: str = "UTC"
    maintenance: tuple[Maintenance | WeeklyMaintenance, ...] = ()
    """Planned maintenances; ask each for its `spans(interval)`."""
    recipients: tuple[str, ...] = ()
    on_miss: OnMiss = "notify"
    notifiers: tuple[Notifier, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    description: str = ""
    team: str = ""
    when_uncertain: WhenUncertain = "unknown"
    """What a window is whose bounds lie on both sides of the threshold."""
    min_time_to_expiry_ms: int | None = None
    """A window is bad too when unread records of a steady partition expire sooner than this; None: not required."""
    runbook: str = ""
    """Web address of what to do about a miss."""
    objective_of: ObjectiveOf = "time"
    burn_pairs: tuple[BurnPair, ...] = ()
    """Empty: nobody is alerted on burn rates."""
    chain: tuple[Stage, ...] = ()
    """Stages that a record passes in this order within `max_latency_ms`; `groups` and `topics` are theirs then."""
    allowed_lag: int = 0
    """Records that may wait on a partition without being late."""
    partitions: PartitionsOf = "all"
    """The partitions that a group has to read: all of a topic, or those where it has committed a position."""
    latency_from: LatencyFrom = "later"
    """When latency begins: when a record was created, when it was appended to the log, or the later of the two."""

    @property
    def measured(self) -> MeasuredSla:
        return MeasuredSla(
            self.name,
            self.cluster,
            self.groups,
            self.topics,
            self.max_latency_ms,
            self.steady_state,
            self.chain,
            self.allowed_lag,
            self.partitions,
            self.latency_from,
        )


@dataclass(frozen=True, slots=True)
class Digest:
    """A report of a calendar period that is mailed after it, to `recipients` or to everybody whom its SLAs mail."""

    name: str
    every: Literal["day", "week", "month"]
    at: time
    """By the clock of `time_zone`, on the day after the period."""
    time_zone: str = "UTC"
    slas: tuple[str, ...] = ()
    """Names of the SLAs in it; empty: those of `team`, or all."""
    team: str = ""
    recipients: tuple[str, ...] = ()
    """Empty: each recipient of its SLAs gets a digest of the own ones."""

    def holds(self, sla: Sla) -> bool:
        if self.slas:
            return sla.name in self.slas
        return not self.team or sla.team == self.team


@dataclass(frozen=True, slots=True)
class FreshnessAlert:
    """When the measuring itself counts as late, and who hears of it."""

    recipients: tuple[str, ...]
    after_ms: int
    """After the end of a scheduled run's interval."""


@dataclass(frozen=True, slots=True)
class SlaWindow:
    """The verdict on one SLA in one window; latencies in milliseconds, None where unknown.

    `worst_*` is the steady partition with the largest max(records latency, backlog age). `is_certain`: a bad window
    whose low bound exceeds the threshold too, or a good one whose high bound does not; False for excluded and unknown.
    """

    sla: str
    window: Interval
    verdict: Verdict
    is_certain: bool
    reason: str
    """Why it is excluded or unknown; empty for good and bad."""
    worst_latency_ms: float | None = None
    worst_latency_low_ms: float | None = None
    worst_latency_high_ms: float | None = None
    worst_group: str | None = None
    worst_topic: str | None = None
    worst_partition: int | None = None
    steady_partitions: int = 0
    bootstrapping_partitions: int = 0
    unknown_partitions: int = 0
    records_due: int = 0
    """Records of steady partitions whose produced time plus the threshold lies in the window, read or not."""
    records_late: int = 0
    """Of these, records that were not read by then."""
    records_late_low: int = 0
    records_late_high: int = 0
    """Bounds of `records_late`."""
    records_of_unknown_state: int = 0
    """Records of partitions whose steady state or position is unknown; in none of the counts above."""
    max_latency_ms: int = field(kw_only=True)
    """The threshold that was applied, whatever the configuration says by now."""
    min_time_to_expiry_ms: int | None = field(default=None, kw_only=True)
    judged_verdict: Verdict | None = field(default=None, kw_only=True)
    """The verdict before somebody excluded the window afterwards; None: nobody did."""
    judged_reason: str | None = field(default=None, kw_only=True)

    @property
    def as_judged(self) -> SlaWindow:
        """Without what was excluded afterwards."""
        if self.judged_verdict is None:
            return self
        return replace(
            self, verdict=self.judged_verdict, reason=self.judged_reason or "", judged_verdict=None, judged_reason=None
        )


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Time of an SLA that somebody excluded after it was judged; whole windows."""

    id: str
    sla: str
    span: Interval
    reason: str
    author: str
    at: datetime
    """When it was recorded."""
    undone_by: str | None = None
    undone_at: datetime | None = None
    """None: it is in force."""
    undone_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Miss:
    """Time in which an SLA was missed: bad windows, at least `for` long together."""

    id: str
    sla: str
    cluster: str
    start: datetime
    end: datetime | None
    """End of the last bad window; None while it is open."""
    opened_at: datetime
    """End of the window in which the bad time became `for` long."""
    bad_windows: int
    is_certain: bool
    """Whether all its bad windows are certain, with nothing unknown among them."""
    worst_latency_ms: float
    worst_latency_low_ms: float | None
    worst_latency_high_ms: float | None
    worst_at: datetime
    worst_group: str
    worst_topic: str
    worst_partition: int
    evidence: dict[str, Any] = field(default_factory=dict)
    """Figures that explain the miss, JSON-able; keys are documented in docs/reference/sla_misses.md."""
    state: MissState = field(kw_only=True)
    end_reason: str = field(default="", kw_only=True)
    """Why it is no longer judged; empty while it is open, or when it has recovered."""
    bad_until: datetime = field(kw_only=True)
    """End of the last bad window, also while it is open."""
    settled_at: datetime | None = field(default=None, kw_only=True)
    """End of the window after which no bad window continues it; None while one may."""
    max_latency_ms: int = field(kw_only=True)
    """The threshold that the worst window was judged by, which the configuration may have changed since."""
    min_time_to_expiry_ms: int | None = field(default=None, kw_only=True)
    for_ms: int = field(kw_only=True)
    exclusion: str | None = field(default=None, kw_only=True)
    """Who excluded all of its time afterwards, and why: it does not count. None: it counts."""

    @property
    def length_ms(self) -> float | None:
        """None while it is open."""
        return (self.end - self.start) / timedelta(milliseconds=1) if self.end else None
