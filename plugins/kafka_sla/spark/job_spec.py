"""What one Spark application is asked to do, as a file between the pipeline and `spark_jobs.measure`. No other I/O.

The file names no recipient, notifier, connection or address: whoever reads the warehouse reads it too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from kafka_sla.errors import StoreError
from kafka_sla.files import read_text, write_text
from kafka_sla.model.entities import Cluster, Interval, MeasuredSla, Patterns, ReplicationFlow, StatusRules

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class MeasuredCluster:
    """What Spark needs to know of a cluster."""

    name: str
    groups: Patterns
    topics: Patterns
    status: StatusRules
    non_consumed_offsets_groups: tuple[tuple[str, tuple[str, ...]], ...]
    replication: tuple[ReplicationFlow, ...]
    jmx_exporters: tuple[int, ...]
    """Brokers whose metrics are read."""


def measured_cluster(cluster: Cluster) -> MeasuredCluster:
    """The part of a cluster's configuration that Spark needs."""
    return MeasuredCluster(
        cluster.name,
        cluster.groups,
        cluster.topics,
        cluster.status,
        cluster.non_consumed_offsets_groups,
        cluster.replication,
        tuple(exporter.broker for exporter in cluster.jmx_exporters),
    )


NEXT_POLL = timedelta(minutes=10)
NEXT_POLL_US = NEXT_POLL // timedelta(microseconds=1)
"""How long after an instant a poll of the log still says what cannot have been then: two runs of five minutes."""


CHAIN_MARGIN = timedelta(minutes=15)
"""Points kept before the time that records of a chain are followed through: the nearest poll lies within it."""


_WEEK_MS = 7 * 86_400_000


def longest_expiry(slas: Iterable[MeasuredSla]) -> int:
    """After so many ms without a commit a group-partition that lags has no rows any more, whichever SLAs cover it."""
    return max((sla.steady_state.expire_group_ms for sla in slas), default=_WEEK_MS)


def chain_reach(slas: Iterable[MeasuredSla]) -> timedelta:
    """How far before an interval facts of these SLAs are read; none without a chain."""
    return max((sla.chain_reach for sla in slas if sla.chain), default=timedelta(0))


@dataclass(frozen=True, slots=True)
class Carried:
    """Published rows that stand for everything before `at`: those of the load whose windows end then."""

    at: datetime
    load_id: str


@dataclass(frozen=True, slots=True)
class Replay:
    """Where the facts of one cluster are picked up: after the carried rows, or from the beginning (None)."""

    cluster: MeasuredCluster
    carried: Carried | None
    commits_since: datetime | None = None
    """Commits are read from then on, earlier than the carried rows; None: from these on."""
    anew: tuple[str, ...] = ()
    """Topics that are replayed from the beginning all the same, because the carried rows do not know an SLA of them."""

    def carried_of(self, topic: str) -> Carried | None:
        """The rows that stand for what was before of this topic."""
        return None if topic in self.anew else self.carried


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of a Parquet file."""

    path: str
    group: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Job:
    """One load: measure `interval` for these clusters into `output`, from these files.

    `facts` and `carry` name Parquet files; `carry` are those of the carried loads. `output` is a
    folder (or URI) that gets one sub-folder a table.
    """

    load_id: str
    interval: Interval
    window_ms: int
    replays: tuple[Replay, ...]
    slas: tuple[MeasuredSla, ...]
    facts: dict[str, list[str]]
    carry: dict[str, list[str]]
    output: str
    facts_seq: dict[str, int]
    """Newest landing of facts per cluster that these files contain."""
    input_rows: int
    """Of all these files. Their bytes say little of the work: where a consumer commits as regularly as a clock, a
    million of its commits are smaller than one Spark task's plan."""
    measured_rows: int
    """About how many of them it measures with: a file may hold more time than it reads."""
    older: dict[str, list[RowGroup]] = field(default_factory=dict)
    """Facts of before those of `facts`, of which only topics that are replayed `anew` are read."""

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(r.cluster.name for r in self.replays)

    @property
    def status_rules(self) -> dict[str, StatusRules]:
        """How each cluster's consumers are judged."""
        return {r.cluster.name: r.cluster.status for r in self.replays}

    def write(self, path: str) -> None:
        """Write the whole file: a killed writer leaves the old one or the new one."""
        write_text(path, _codec().dump_json(self, indent=1).decode())


def read_job(path: str) -> Job:
    """The job that `Job.write` wrote."""
    try:
        return _codec().validate_json(read_text(path))
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror or error}; make the warehouse reachable, or measure the interval"
            " again"
        ) from error
    except ValueError as error:
        raise StoreError(
            f"{path} is no job of this version of kafka_sla: it is damaged, or another version wrote it; run the"
            " interval again, from its task `prepare` on"
        ) from error


@cache
def _codec() -> TypeAdapter[Job]:
    from pydantic import TypeAdapter  # late: Spark's tasks know jobs, but read and write none

    return TypeAdapter(Job)
