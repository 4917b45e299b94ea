"""The shape of the configuration file, and its JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kafka_sla.config.field_types import (
    BrokerId,
    ClassPath,
    ClockTime,
    ClusterName,
    ConnectionId,
    Duration,
    DurationOrNever,
    Email,
    Every,
    GroupName,
    HttpAddress,
    Instant,
    Link,
    Name,
    Names,
    Objective,
    ObjectivePeriod,
    Pattern,
    SampleEvery,
    SlaName,
    TeamName,
    TimeZone,
    TopicName,
    WebAddress,
)
from kafka_sla.config.reading.references import REFERENCE
from kafka_sla.model.entities import WebhookFormat


def _written(text: str, description: str, alias: str | None = None) -> Any:
    """A field whose default is written as people write it, so that the JSON Schema shows it that way."""
    return Field(default=text, validate_default=True, description=description, alias=alias)


class Section(BaseModel):
    """A mapping of the file: unknown keys are errors, a key without a value counts as not given."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


class ConsumerStatusKeys(Section):
    """How consumers are judged by their last commits (Burrow's rules)."""

    commits: int = Field(default=10, ge=2, le=1_000, description="Commits that are evaluated: the sliding window.")
    allowed_lag: int = Field(default=0, ge=0, description="Current lag up to which a consumer is OK.")
    min_complete: float = Field(
        default=0.0, ge=0, le=1, description="Share of the commits that must be there; with fewer the status is OK."
    )
    expire_group: Duration = _written("7d", description="A group silent for longer is gone.")


class ReplicationKeys(Section):
    """MirrorMaker 2 copying this cluster's topics to another cluster."""

    to: ClusterName = Field(description="Target: another name under clusters.")
    name: Name | None = Field(
        default=None, description="Name of the flow, also of its consumer group; default: source->target."
    )
    offsets_topic: TopicName | None = Field(
        default=None,
        description="Topic on the target with MirrorMaker's positions; default: mm2-offsets.<source>.internal.",
    )
    connect: ConnectionId | None = Field(
        default=None, description="Airflow connection to Connect's REST endpoint, instead of the offsets topic."
    )
    connector: str = Field(default="MirrorSourceConnector", min_length=1, description="Name of the connector.")
    topics: Names = Field(default=["*"], description="Topics of the flow: names, globs, /regexes/; !name leaves out.")
    prefix: str | None = Field(
        default=None,
        description="What the replication policy puts before a topic's name; default: '<source>.'; '' for identity.",
    )
    refresh_interval: DurationOrNever = _written(
        "15s", description="How often the lag is taken within a window; -1: not at all."
    )
    ttl: Duration = _written(
        "20s", description="A last replicated offset seen longer ago is stale: the lag is unknown."
    )


class CheckpointKeys(Section):
    """A Spark Structured Streaming query whose offsets are in a checkpoint folder, not in Kafka."""

    group: str = Field(min_length=1, description="Consumer group under which its positions appear.")
    path: str = Field(min_length=1, description="Checkpoint folder of the query: a path, or a URI such as s3a://…")


class ClusterKeys(Section):
    """One Kafka cluster."""

    connection: ConnectionId | None = Field(
        default=None, description="Airflow connection to the brokers; left out: facts are only imported."
    )
    groups: Names = Field(
        default=["*"], description="Consumer groups to measure: names, globs, /regexes/; !name leaves out."
    )
    topics: Names = Field(
        default=["*"], description="Topics to measure. A glob that begins with * leaves internal topics (__*) out."
    )
    sample_every: SampleEvery | None = Field(
        default=None,
        description="How often committed offsets are polled between runs, where the commit log may not be read (1s to"
        " 1m); default: not at all.",
    )
    consumer_status: ConsumerStatusKeys = Field(
        default_factory=ConsumerStatusKeys, description="How consumers are judged by their last commits."
    )
    non_consumed_offsets_groups: dict[TopicName, list[str]] = Field(
        default={},
        description="Groups whose unread records are counted, by topic; other topics: every group with an SLA.",
    )
    replication: list[ReplicationKeys] = Field(default=[], description="MirrorMaker 2 flows out of this cluster.")
    jmx_exporters: dict[BrokerId, HttpAddress] = Field(
        default={}, description="Address of each broker's JMX exporter, by broker id."
    )
    checkpoints: list[CheckpointKeys] = Field(
        default=[], description="Spark Structured Streaming queries, whose offsets are not in Kafka."
    )


class SteadyStateKeys(Section):
    """When a consumer that starts, rewinds or returns counts as steady, so that the SLA applies."""

    caught_up_within: Duration | None = Field(
        default=None, description="Backlog age that counts as caught up; default: max_latency."
    )
    grace_period: Duration | None = Field(
        default=None, description="Longest time that bootstrapping excludes windows; default: no limit."
    )
    progress_deadline: Duration = _written(
        "30m",
        description="A consumer that is catching up must reduce its lag or backlog age within each such period, or the"
        " SLA applies.",
    )
    expire_group: Duration = _written("7d", description="A group silent for longer bootstraps again when it returns.")


class MaintenanceKeys(Section):
    """A planned maintenance: once (`from` and `to`), or weekly (`every`)."""

    from_: Instant | None = Field(default=None, alias="from", description="Start of a maintenance that happens once.")
    to: Instant | None = Field(default=None, description="End of a maintenance that happens once.")
    every: Every | None = Field(default=None, description="Weekly maintenance.")
    time_zone: TimeZone | None = Field(
        default=None, description="Clock of `every`, and of times without an offset; default: the SLA's."
    )
    reason: str | None = Field(default=None, description="Shown in reports.")


class NotifierKeys(Section):
    """An Airflow notifier that also hears of opened and recovered misses."""

    path: ClassPath = Field(description="Class of the notifier.")
    kwargs: dict[str, Any] = Field(default={}, description="Its arguments, templated by Airflow.")
    each_miss: bool | None = Field(
        default=None,
        description="true: a call for each miss; false: one call for all that share a cause. Default: false when the"
        " arguments use `message` or `misses` and not `miss`, `sla` or `team`.",
    )


class WebhookKeys(Section):
    """A receiver of opened and recovered misses over HTTP."""

    connection: ConnectionId = Field(description="Airflow connection of type http: where it is, and its secrets.")
    format: WebhookFormat = Field(default="json", description="What the receiver takes; json: kafka_sla's own event.")


class BurnPairKeys(Section):
    """An alert on a burn rate that is exceeded over a long and over a short time."""

    burn_rate: float = Field(gt=0, le=1_000_000, description="1 spends exactly the budget in the period.")
    long: Duration = Field(description="Time over which it is exceeded.")
    short: Duration = Field(description="Time over which it is exceeded too, so that the alert ends soon.")
    severity: Literal["page", "ticket"] = Field(default="ticket", description="One alert is open per severity.")
    min_bad_time: Duration | None = Field(
        default=None, description="Bad time that `long` must have, of an objective of time; default: for."
    )
    min_late_records: int = Field(
        default=10, ge=1, description="Late records that `long` must have, of an objective of records."
    )


class SlaDefaults(Section):
    """Keys of an SLA that may also stand in `defaults`."""

    cluster: ClusterName | None = Field(
        default=None, description="A name under clusters; may be left out when there is only one."
    )
    group: Pattern | None = Field(default=None, description="One consumer group (or pattern).")
    groups: Names | None = Field(default=None, description="Consumer groups (names or patterns).")
    topic: Pattern | None = Field(default=None, description="One topic (or pattern).")
    topics: Names | None = Field(
        default=None, description="Topics (names or patterns); default: all that the groups read."
    )
    max_latency: Duration | None = Field(
        default=None, description="Threshold: every record is consumed within this time."
    )
    for_: Duration = _written("5m", alias="for", description="Bad time after which a miss opens.")
    when_uncertain: Literal["unknown", "bad", "good", "estimate"] = Field(
        default="unknown",
        description="What a window is whose bounds allow both; estimate: what the estimated latency says.",
    )
    allowed_lag: int = Field(
        default=0, ge=0, le=2**53, description="Records that may wait on each partition without being late."
    )
    partitions: Literal["all", "committed"] = Field(
        default="all",
        description="Partitions that a group has to read: all of a topic that it reads, or only those where it has"
        " committed an offset.",
    )
    latency_from: Literal["created", "appended", "later"] = Field(
        default="later",
        description="When latency begins: when a record was created (its timestamp), when it was appended to the log,"
        " or the later of the two.",
    )
    min_time_to_expiry: Duration | None = Field(
        default=None, description="Also required: no unread record expires sooner than this."
    )
    objective: Objective = _written(
        "99.9%", description="Share of the windows or records of a period that must be good."
    )
    objective_of: Literal["time", "records"] = Field(
        default="time", description="What the objective counts: windows, or the records that are consumed in time."
    )
    period: ObjectivePeriod = Field(
        default="month", description="Period of the objective: a calendar period, or the last so many days (28d)."
    )
    burn_alerts: Literal["none", "ticket", "workbook"] = Field(
        default="none",
        description="Alerts on burn rates: ticket (1x over 3d and 6h), or workbook (14.4x over 1h and 5m, 6x over 6h"
        " and 30m as pages, and the ticket).",
    )
    burn_pairs: list[BurnPairKeys] = Field(default=[], description="Own alerts on burn rates, instead of burn_alerts.")
    time_zone: TimeZone = Field(default="UTC", description="Time zone of the calendar period.")
    steady_state: SteadyStateKeys = Field(default_factory=SteadyStateKeys, description="When the SLA applies.")
    maintenance: list[MaintenanceKeys] = Field(
        default=[], description="Planned maintenances: bad windows in them are excluded."
    )
    recipients: list[Email] = Field(default=[], description="Who is mailed when a miss opens and recovers.")
    on_miss: Literal["notify", "fail"] = Field(
        default="notify", description="fail: the SLA's Airflow task turns red as well."
    )
    notifiers: list[NotifierKeys] = Field(default=[], description="Airflow notifiers besides e-mail.")
    webhooks: list[WebhookKeys] = Field(default=[], description="Who hears of misses over HTTP.")
    description: str = Field(default="", description="Shown in mails and reports.")
    team: TeamName = Field(default="", description="Who owns the consumer.")
    runbook: Link | None = Field(default=None, description="What to do about a miss; default: the runbook of its team.")


class StageKeys(Section):
    """One stage of a chain: a group, and the topic that it reads."""

    group: GroupName = Field(description="Consumer group; it writes the topic of the next stage.")
    topic: TopicName = Field(description="Topic that it reads.")


class SlaKeys(SlaDefaults):
    """One SLA."""

    name: SlaName = Field(description="Unique name, shown in the grid, in mails and reports.")
    chain: list[StageKeys] | None = Field(
        default=None,
        min_length=2,
        max_length=16,
        description="Instead of groups and topics: stages that each record passes in this order within max_latency.",
    )


class TeamKeys(Section):
    """One team."""

    runbook: Link | None = Field(default=None, description="What to do about a miss of its SLAs.")


class DigestKeys(Section):
    """A report of the day, week or month that ended, by mail."""

    name: Name = Field(description="Unique name, shown in the subject and in the archive.")
    every: Literal["day", "week", "month"] = Field(default="week", description="Calendar period that it reports.")
    at: ClockTime = Field(default="07:00", description="When it is mailed on the day after the period, by its clock.")
    time_zone: TimeZone = Field(default="UTC", description="Clock of the period and of `at`.")
    slas: list[SlaName] = Field(default=[], description="SLAs in it; default: those of `team`, or all.")
    team: str = Field(default="", description="SLAs of this team.")
    recipients: list[Email] = Field(
        default=[], description="Who is mailed; default: each recipient of its SLAs, about the own ones."
    )


class FreshnessAlertKeys(Section):
    """A mail to those who run the measuring when the measuring itself is late."""

    recipients: list[Email] = Field(min_length=1, description="Who is mailed.")
    after: Duration = _written("15m", description="Time after its interval's end at which a scheduled run is late.")


class OffsetLookupKeys(Section):
    """How finely offsets are looked up by time."""

    min_gap: Duration = _written("250ms", description="Gaps narrower than this are never split.")
    max_per_hour: int = Field(
        default=200_000,
        ge=1,
        le=100_000_000,
        description="Lookups of one snapshot of a cluster per started hour.",
    )
    max_gap: Duration | None = Field(
        default=None,
        description="Wider gaps are always split; default: a quarter of the smallest max_latency, at most window.",
    )


def _cluster(value: Any) -> Any:
    return {} if value is None else value


class Document(Section):
    """Configuration of kafka_sla: clusters, and the SLAs of their consumers."""

    clusters: dict[
        ClusterName, Annotated[ClusterKeys, BeforeValidator(_cluster, json_schema_input_type=ClusterKeys | None)]
    ] = Field(min_length=1, description="Kafka clusters by name.")
    slas: list[SlaKeys] = Field(default=[], description="The SLAs.")
    defaults: SlaDefaults = Field(
        default_factory=SlaDefaults, description="Keys for every SLA that does not give them itself."
    )
    teams: dict[str, TeamKeys] = Field(default={}, description="What holds for all SLAs of a team, by its name.")
    digests: list[DigestKeys] = Field(default=[], description="Reports by mail.")
    freshness_alert: FreshnessAlertKeys | None = Field(
        default=None, description="A mail when the measuring itself is late; default: no mail."
    )
    window: Duration = _written(
        "1m", description="Width of the windows that metrics and verdicts are made for; divides 5m and the interval."
    )
    interval: Duration = _written(
        "5m", description="How often the DAG kafka_sla measures, each time what was since then: 1m, 2m, 5m, 10m or 15m."
    )
    base_url: WebAddress | None = Field(
        default=None, description="Airflow UI, for links in mails; default: Airflow's own setting."
    )
    smtp_connection: ConnectionId | None = Field(
        default="smtp_default", description="Airflow connection to the mail server."
    )
    store_connection: ConnectionId = Field(
        default="kafka_sla_store", description="Airflow connection to the table store."
    )
    offset_lookups: OffsetLookupKeys = Field(
        default_factory=OffsetLookupKeys, description="How finely offsets are looked up by time."
    )


SECTIONS: dict[tuple[str, ...], type[Section]] = {
    (): Document,
    ("clusters", "*"): ClusterKeys,
    ("clusters", "*", "consumer_status"): ConsumerStatusKeys,
    ("clusters", "*", "replication", "*"): ReplicationKeys,
    ("clusters", "*", "checkpoints", "*"): CheckpointKeys,
    ("slas", "*"): SlaKeys,
    ("slas", "*", "chain", "*"): StageKeys,
    ("defaults",): SlaDefaults,
    ("offset_lookups",): OffsetLookupKeys,
    ("freshness_alert",): FreshnessAlertKeys,
    ("digests", "*"): DigestKeys,
    ("teams", "*"): TeamKeys,
    **{(*at, "steady_state"): SteadyStateKeys for at in (("slas", "*"), ("defaults",))},
    **{(*at, "maintenance", "*"): MaintenanceKeys for at in (("slas", "*"), ("defaults",))},
    **{(*at, "burn_pairs", "*"): BurnPairKeys for at in (("slas", "*"), ("defaults",))},
    **{(*at, "notifiers", "*"): NotifierKeys for at in (("slas", "*"), ("defaults",))},
    **{(*at, "webhooks", "*"): WebhookKeys for at in (("slas", "*"), ("defaults",))},
}
"""Which model rules at which key path; * stands for any index or name."""


_NARROW = ("boolean", "integer", "number")
"""Types of which not any text is a value."""
_ABOUT = ("title", "description", "default")
_NOTHING = {"type": "null"}


def json_schema() -> dict[str, Any]:
    """JSON Schema of the configuration file, for editors."""
    schema = {**_or_reference(_or_nothing(Document.model_json_schema(by_alias=True))), "title": "kafka_sla"}
    schema["$defs"]["Reference"] = {"type": "string", "pattern": REFERENCE.pattern}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _or_nothing(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that lets every key that need not be given stand without a value, as `Section` does."""
    sections = schema["$defs"] | {"": schema}
    for section in (one for one in sections.values() if "properties" in one):
        required = section.get("required", ())
        section["properties"] |= {
            name: _nullable(keys) for name, keys in section["properties"].items() if name not in required
        }
    return schema


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    about = {key: value for key, value in schema.items() if key in _ABOUT}
    kept = {key: value for key, value in schema.items() if key not in _ABOUT}
    allowed = kept["anyOf"] if kept.keys() == {"anyOf"} else [kept]
    return {**about, "anyOf": allowed if _NOTHING in allowed else [*allowed, _NOTHING]}


def _or_reference(schema: Any) -> Any:
    """Wherever not any text is allowed, a reference to a variable is, too; names of keys cannot be one."""
    if isinstance(schema, list):
        return [_or_reference(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value if key == "propertyNames" else _or_reference(value) for key, value in schema.items()}
    if kept.get("type") in _NARROW or (kept.get("type") == "string" and kept.keys() & {"pattern", "enum"}):
        about = {key: kept.pop(key) for key in _ABOUT if key in kept}
        return {**about, "anyOf": [kept, {"$ref": "#/$defs/Reference"}]}
    return kept
