"""The typed answers of the read API: every field that a program may rely on. Times are UTC, null is unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from kafka_sla.model.entities import MissState

State = Literal["missed", "pending", "met", "excluded", "unknown"]


class Sparkline(BaseModel):
    """A small curve: the worst latency per step."""

    start: datetime
    step_ms: int
    worst_latency_ms: list[float | None]
    threshold_ms: list[int] = Field(description="that was applied then")


class Attainment(BaseModel):
    """A period until `as_of`."""

    period: str = Field(description="day, week, month, quarter, year, or the last so many days, such as 28d")
    start: datetime
    end: datetime
    as_of: datetime
    objective_of: Literal["time", "records"] = Field(description="what attainment, budget and burn rate count")
    attainment: float | None = Field(description="good share of what the objective counts, 0..1; null: nothing known")
    attainment_low: float | None = Field(description="if every record was late that may have been")
    attainment_high: float | None = Field(description="if only those were late that surely were")
    time_attainment: float | None = Field(description="good time over good and bad time")
    records_attainment: float | None = Field(description="records in time over all, in good and bad time")
    coverage: float = Field(description="share of the elapsed time about which something is known")
    decision: Literal["running", "met", "not_met", "undecided"] | None = Field(
        description="running: the period can still change it; undecided: the bounds allow both; null: nothing known"
    )
    met: bool | None = Field(description="null while the period runs and can still be met, and where it is undecided")
    budget: Literal["on_track", "at_risk", "exhausted"] | None = Field(
        description="at_risk: more than half of it is spent, and faster than the period passes; of a rolling period or"
        " of records: more than four fifths; null: nothing known"
    )
    budget_ms: float | None = Field(description="bad time that the objective allows; null: it counts records")
    budget_left_ms: float | None = Field(description="negative: overspent")
    budget_records: float | None = Field(description="late records that it allows so far; null: it counts time")
    budget_left_records: float | None = Field(description="negative: overspent")
    burn_rate: float | None
    good_ms: int
    bad_ms: int
    excluded_ms: int
    unknown_ms: int


class BurnAnswer(BaseModel):
    """An error budget that is spent too fast."""

    id: str
    severity: Literal["page", "ticket"]
    start: datetime = Field(description="end of the window with which the rates were exceeded")
    end: datetime | None = Field(description="null: it goes on")
    burn_rate: float = Field(description="over the long time, when it began")
    alerted_above: float
    long_ms: int
    short_ms: int


class UnjudgedPartitions(BaseModel):
    """Partitions of an SLA that are not judged at present."""

    group: str
    topic: str
    partitions: list[int]
    since: datetime
    reason: str = Field(description="why: first_commit, no_position, rewind, returned, topic_recreated, contradictory")
    text: str = Field(description="the same as a sentence")


class SlaStatus(BaseModel):
    """One SLA as the overview shows it."""

    name: str
    cluster: str
    team: str
    description: str
    groups: list[str]
    topics: list[str]
    max_latency_ms: int = Field(description="the threshold of the newest judged window, whatever is configured by now")
    for_ms: int
    objective: float
    objective_of: Literal["time", "records"]
    state: State = Field(description="missed: a miss is open; pending: above the threshold, but not long enough yet")
    reason: str = Field(description="why it is unknown or excluded")
    as_of: datetime | None = Field(description="end of the newest judged window")
    worst_latency_ms: float | None = Field(description="worst latency of that window")
    open_miss: str | None = Field(description="id of the open miss")
    open_since: datetime | None
    burns: list[BurnAnswer] = Field(description="those that go on; none where no alerts are configured")
    unjudged: list[UnjudgedPartitions] = Field(description="partitions that the state says nothing about")
    period: Attainment | None
    sparkline: Sparkline


class PartitionPace(BaseModel):
    """How much waits in a partition, and how fast it becomes less."""

    group: str
    topic: str
    partition: int
    lag: int
    lag_low: int = Field(description="of a polled group, which may have moved since")
    pace: float | None = Field(description="records per second, consumed less produced; below 0 the lag grows")
    pace_low: float | None
    pace_high: float | None
    measured_ms: int | None = Field(description="how much time the pace was measured over")


class CatchUp(BaseModel):
    """When all consumers of an SLA will have caught up, should they keep their pace."""

    sla: str
    at: datetime = Field(description="end of the newest published window; times count from here")
    state: Literal["caught_up", "catching_up", "never", "unknown"]
    in_ms: float | None = Field(description="null: never, or not known")
    in_low_ms: float | None = Field(description="null: never, also at the fastest pace")
    in_high_ms: float | None = Field(description="null: unbounded")
    partitions: int
    behind: int = Field(description="partitions that have not caught up")
    bootstrapping: int
    unknown: int
    reason: str = Field(description="why it is not known; of the first such partition")
    slowest: PartitionPace | None = Field(description="the partition that decides")
    text: str = Field(description="all of it in words")


class ChainStage(BaseModel):
    """What one stage of a chain adds, to records that came out or to those that wait before it."""

    stage: int = Field(description="from 1")
    group: str
    topic: str
    partition: int | None = Field(description="on which records waited longest; null: on none")
    added_low_ms: float
    added_high_ms: float | None = Field(description="null: unbounded")


class ChainStatus(BaseModel):
    """A chain in the newest published window: the longest that a record took or has been on its way."""

    sla: str
    at: datetime = Field(description="end of the window")
    latency_low_ms: float
    latency_high_ms: float | None = Field(description="null: unbounded")
    slowest_stage: int | None = Field(description="null: nothing passed, and nothing waits")
    stages: list[ChainStage]
    reason: str = Field(description="why there is no high bound; empty where there is one")
    text: str = Field(description="all of it in words")


class MissAnswer(BaseModel):
    """One miss."""

    id: str
    sla: str
    cluster: str
    team: str
    start: datetime
    end: datetime | None = Field(description="null: still open")
    state: MissState = Field(
        description="open; or over: recovered, excluded (no longer judged), removed (its SLA left the configuration)"
    )
    end_reason: str = Field(description="why it is no longer judged; empty: it is open, or has recovered")
    bad_windows: int
    is_certain: bool
    worst_latency_ms: float
    worst_latency_low_ms: float | None
    worst_latency_high_ms: float | None = Field(description="null: unbounded")
    worst_at: datetime
    worst_group: str
    worst_topic: str
    worst_partition: int
    max_latency_ms: int = Field(description="the threshold that was applied, whatever is configured by now")
    min_time_to_expiry_ms: int | None = Field(description="null: not required")
    for_ms: int
    evidence: dict[str, Any] = Field(description="docs/reference/sla_misses.md")
    exclusion: str | None = Field(description="who excluded all of its time afterwards, and why")
    incident: str | None = Field(description="shared by misses that were mailed as one; null: not mailed")


class Exclusion(BaseModel):
    """Time of an SLA that somebody excluded after it was judged."""

    id: str
    sla: str
    start: datetime
    end: datetime
    reason: str
    author: str
    at: datetime
    undone_by: str | None
    undone_at: datetime | None = Field(description="null: it is in force")
    undone_reason: str | None


class Timeline(BaseModel):
    """One SLA over time, as columns of equal length; a step without data is null in all of them."""

    sla: str
    start: datetime
    end: datetime
    step_ms: int
    resolution: Literal["window", "slot", "hour", "day"] = Field(description="what the steps are made of")
    objective: float
    at_ms: list[int] = Field(description="start of each step, milliseconds since the epoch")
    threshold_ms: list[int] = Field(description="that was applied in the step, or last before it")
    p50_ms: list[float | None]
    p95_ms: list[float | None]
    p99_ms: list[float | None]
    worst_latency_ms: list[float | None] = Field(description="largest latency or backlog age of steady partitions")
    worst_latency_low_ms: list[float | None]
    worst_latency_high_ms: list[float | None] = Field(description="null beside a worst latency: unbounded")
    good: list[float] = Field(description="share of the step, 0..1; what is in none of the four was never judged")
    bad: list[float]
    excluded: list[float]
    unknown: list[float]
    consumed_per_s: list[float | None]
    produced_per_s: list[float | None]
    misses: list[MissAnswer]


class HeatMap(BaseModel):
    """The worst latency or backlog age of each partition over time."""

    sla: str
    start: datetime
    end: datetime
    step_ms: int
    at_ms: list[int]
    threshold_ms: list[int] = Field(description="that was applied in the step, or last before it")
    partitions: list[str] = Field(description="group topic-partition, the worst first")
    worst_latency_ms: list[list[float | None]] = Field(description="a row per partition, a value per step")
    omitted: int = Field(description="partitions that were less bad than those shown")


class GroupMember(BaseModel):
    """A member of a consumer group."""

    group: str
    member: str = Field(description="id that the broker gave to it")
    client: str
    host: str
    partitions: int = Field(description="of the topics of the SLA; 0: it reads nothing")
    worst_latency_ms: float | None = Field(description="of its partitions")
    worst_partition: str | None
    late_partitions: int = Field(description="above the threshold")


class LeadingBroker(BaseModel):
    """A broker that leads partitions of an SLA."""

    broker: int | None = Field(description="null: nobody leads them now")
    partitions: int
    worst_latency_ms: float | None = Field(description="of these partitions")


class Readers(BaseModel):
    """Who reads the partitions of an SLA, and which brokers lead them."""

    sla: str
    seen_at: datetime | None = Field(
        description="when a snapshot saw the members; null: none of the last 15 minutes did"
    )
    latency_from: datetime | None = Field(description="start of the slot, hour or day that the latencies are of")
    members: list[GroupMember] = Field(description="by group, the latest first")
    brokers: list[LeadingBroker]
    not_assigned: list[str] = Field(description="partitions that no member reads, of groups that have members")


class Quality(BaseModel):
    """The result of one expectation for a load."""

    table_name: str
    load_id: str
    interval_start: datetime
    interval_end: datetime
    expectation_id: str
    expectation: str
    severity: str
    success: bool
    observed: str | None
    unexpected_rows: int | None


class CoverageDay(BaseModel):
    """One cluster and UTC day: shares of the day, 0..1, that add up to the part of it that is over."""

    cluster: str
    day: str
    measured: float = Field(description="published, and snapshots were taken at the time")
    reconstructed: float = Field(description="published from what Kafka still remembered")
    unknown: float = Field(description="published, but every verdict is unknown: nobody looked, or facts were missing")
    missing: float = Field(description="over, and nothing is published")
    before: float = Field(description="before the first publication of the cluster")
    ahead: float = Field(description="not over yet")


class Report(BaseModel):
    """A digest's page in the archive."""

    digest: str
    every: Literal["day", "week", "month"]
    period: str = Field(description="in words, by the digest's clock")
    start: datetime
    team: str
    made_at: datetime
    page: str = Field(description="address of the page")
    document: str = Field(description="address of the standalone HTML file")


class Truncated(BaseModel):
    """Added up over a span."""

    covered_from: datetime = Field(
        description="later than requested where the span has more rows than one answer adds up"
    )


class BrokerPairLatency(Truncated):
    """Fetches of one follower, or of consumers, from one broker, over a span."""

    cluster: str
    leader: int
    follower: str = Field(description="id of a follower, or consumers")
    fetches: int | None
    latency_ms: float | None = Field(description="mean without the wait in the leader's purgatory")
    worst_latency_ms: float | None = Field(description="of a window")
    low_ms: float | None = Field(description="bounds of the newest window")
    high_ms: float | None
    local_ms: float | None = Field(description="mean TotalLocalTime at the leader")
    slow_windows: int
    windows: int
    verdict: str = Field(description="of the cluster in the newest window")
    verdict_reason: str


class ReplicationStatus(Truncated):
    """One topic of a replication flow."""

    cluster: str
    flow: str
    target: str
    topic: str
    partitions: int
    target_topic: str
    lag: int | None = Field(description="records yet to be copied, in the newest window; null where a partition is")
    worst_lag: int | None = Field(description="of a partition in the span")
    latency_ms: float | None
    worst_latency_ms: float | None
    last_replicated_at: datetime | None
    unknown_reason: str | None


class Unread(Truncated):
    """Records of one group and topic that retention removed unread, or is about to remove."""

    cluster: str
    group: str
    topic: str
    lost_low: int | None = Field(description="removed unread in the span, at least")
    lost_high: int | None = Field(description="at most")
    unread: int | None = Field(description="readable and not yet read, in the newest window")
    expires_at: datetime | None = Field(description="when retention may remove the first of them")
    expires_in_ms: float | None
    unknown_reason: str | None


class StatusRow(BaseModel):
    """One group and topic."""

    name: str
    statuses: list[str | None] = Field(description="worst of the partitions per step; null: nothing known")


class StatusLine(Truncated):
    """Consumer status of an SLA over time."""

    sla: str
    start: datetime
    end: datetime
    step_ms: int
    at_ms: list[int]
    rows: list[StatusRow]
