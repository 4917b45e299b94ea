"""What one Spark application is asked to do, as a file between the pipeline and `spark_jobs.measure`. No other I/O."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_sla.errors import StoreError
from kafka_sla.model.entities import (
    Checkpoint,
    Cluster,
    Exporter,
    Interval,
    Patterns,
    ReplicationFlow,
    Sla,
    StatusRules,
    SteadyState,
)


@dataclass(frozen=True, slots=True)
class Carried:
    """Published rows that stand for everything before `at`: those of the load whose windows end then."""

    at: datetime
    load_id: str


@dataclass(frozen=True, slots=True)
class Replay:
    """Where the facts of one cluster are picked up: after the carried rows, or from the beginning (None)."""

    cluster: Cluster
    carried: Carried | None


@dataclass(frozen=True, slots=True)
class Job:
    """One load: measure `interval` for these clusters into `output`, from these files.

    `facts`, `carry` and `commit_records` name Parquet files; `carry` are those of the carried loads. `output` is a
    folder (or URI) that gets one sub-folder a table.
    """

    load_id: str
    interval: Interval
    window_ms: int
    replays: tuple[Replay, ...]
    slas: tuple[Sla, ...]
    facts: dict[str, list[str]]
    carry: dict[str, list[str]]
    commit_records: dict[str, list[str]]
    """Raw records of `__consumer_offsets` per cluster."""
    output: str
    facts_seq: dict[str, int]
    """Newest landing of facts per cluster that these files contain."""
    input_bytes: int
    """Size of all these files."""

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(r.cluster.name for r in self.replays)

    @property
    def status_rules(self) -> dict[str, StatusRules]:
        """How each cluster's consumers are judged."""
        return {r.cluster.name: r.cluster.status for r in self.replays}

    def write(self, path: Path) -> None:
        """Write beside and rename: a killed writer leaves the old file or the new one."""
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self), default=_to_json, indent=1))
        part.replace(path)


def read_job(path: str | Path) -> Job:
    """The job that `Job.write` wrote; only what Spark needs of an SLA travels."""
    try:
        raw = json.loads(Path(path).read_text())
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}; make the warehouse reachable, or measure the interval again"
        ) from error
    return Job(
        load_id=raw["load_id"],
        interval=Interval(_time(raw["interval"]["start"]), _time(raw["interval"]["end"])),
        window_ms=raw["window_ms"],
        replays=tuple(Replay(_cluster(r["cluster"]), _carried(r["carried"])) for r in raw["replays"]),
        slas=tuple(_sla(s) for s in raw["slas"]),
        facts=raw["facts"],
        carry=raw["carry"],
        commit_records=raw["commit_records"],
        output=raw["output"],
        facts_seq=raw["facts_seq"],
        input_bytes=raw["input_bytes"],
    )


def _to_json(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _carried(raw: dict[str, str] | None) -> Carried | None:
    return Carried(_time(raw["at"]), raw["load_id"]) if raw else None


def _patterns(raw: dict[str, list[str]]) -> Patterns:
    return Patterns(tuple(raw["include"]), tuple(raw["exclude"]))


def _cluster(raw: dict[str, Any]) -> Cluster:
    return Cluster(
        name=raw["name"],
        connection=None,
        groups=_patterns(raw["groups"]),
        topics=_patterns(raw["topics"]),
        status=StatusRules(**raw["status"]),
        non_consumed_offsets_groups=tuple((t, tuple(groups)) for t, groups in raw["non_consumed_offsets_groups"]),
        replication=tuple(ReplicationFlow(**f | {"topics": _patterns(f["topics"])}) for f in raw["replication"]),
        jmx_exporters=tuple(Exporter(**e) for e in raw["jmx_exporters"]),
        checkpoints=tuple(Checkpoint(**c) for c in raw["checkpoints"]),
    )


def _sla(raw: dict[str, object]) -> Sla:
    return Sla(
        name=str(raw["name"]),
        cluster=str(raw["cluster"]),
        groups=_patterns(raw["groups"]),  # type: ignore[arg-type]
        topics=_patterns(raw["topics"]),  # type: ignore[arg-type]
        max_latency_ms=int(raw["max_latency_ms"]),  # type: ignore[call-overload]
        for_ms=int(raw["for_ms"]),  # type: ignore[call-overload]
        objective=float(raw["objective"]),  # type: ignore[arg-type]
        steady_state=SteadyState(**raw["steady_state"]),  # type: ignore[arg-type]
    )
