"""Who reads the partitions of an SLA and where, which brokers lead them, and which of them are late. Draws nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.entities import Interval, Patterns, Sla, floor_time
from kafka_sla.model.tables import GROUP_MEMBERS, TOPIC_CONFIGS
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS
from kafka_sla.sla.windows.cells import PartitionKey
from kafka_sla.text.name_patterns import selected
from kafka_sla.text.natural_order import natural
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import GroupMember, LeadingBroker, Readers
from kafka_sla.web.queries.series import unpacked

RECENT = timedelta(minutes=15)
"""How old the newest snapshot may be, if it is not older than three intervals."""
_NOBODY = -1
_MEMBER_COLUMNS = ("group", "member", "topic", "at", "client", "host", "partitions")


@dataclass(frozen=True, slots=True)
class _Lateness:
    """How late partitions were, and from when on."""

    start: datetime | None
    threshold_ms: int
    worst: Mapping[PartitionKey, float]

    def of(self, keys: Iterable[PartitionKey]) -> tuple[float, PartitionKey] | None:
        return max(((self.worst[key], key) for key in keys if key in self.worst), default=None)


def readers(context: Context, sla: Sla, until: datetime) -> Readers:
    """As the newest snapshot before `until` saw them; latencies are of the newest slot, hour or day that is kept."""
    late = _lateness(context, sla, until)
    recent = max(RECENT, 3 * timedelta(milliseconds=context.settings.interval_ms))
    seen = Interval(until - recent, until)
    rows = context.spared(lambda lake: lake.read_facts(GROUP_MEMBERS, seen, [sla.cluster], _MEMBER_COLUMNS))
    newest = _newest(_matching(rows, "group", sla.groups), ["group"])
    members = sorted(
        _members(sla, newest, late),
        key=lambda one: (natural(one.group), -(one.worst_latency_ms or -1), natural(one.client)),
    )
    read = {(row["group"], row["topic"], partition) for row in newest for partition in row["partitions"]}
    groups = {member.group for member in members}
    return Readers(
        sla=sla.name,
        seen_at=max((row["at"] for row in newest), default=None),
        latency_from=late.start,
        members=members,
        brokers=_brokers(context, sla, seen, late),
        not_assigned=sorted((_name(key) for key in late.worst if key[0] in groups and key not in read), key=natural),
    )


def leaders(
    context: Context, clusters: Sequence[str], span: Interval, topics: Patterns | None = None
) -> dict[str, dict[str, list[int]]]:
    """By cluster the broker that leads each partition of these topics (None: of all), as the newest snapshot saw it."""
    names = ("cluster", "topic", "at", "leaders")
    rows = context.spared(lambda lake: lake.read_facts(TOPIC_CONFIGS, span, clusters, names))
    found: dict[str, dict[str, list[int]]] = {cluster: {} for cluster in clusters}
    for row in _newest(_matching(rows, "topic", topics) if topics else rows.to_pylist(), ("cluster", "topic")):
        if row["leaders"]:
            found[row["cluster"]][row["topic"]] = row["leaders"]
    return found


def _matching(rows: pa.Table, name: str, wanted: Patterns) -> list[dict[str, Any]]:
    """The rows whose group or topic is wanted: few of many, so the others never become Python values."""
    names = selected(wanted, set(pc.unique(rows[name]).to_pylist()))
    found: list[dict[str, Any]] = rows.filter(pc.is_in(rows[name], pa.array(names, pa.string()))).to_pylist()
    return found


def _lateness(context: Context, sla: Sla, until: datetime) -> _Lateness:
    for width_ms in (SLOT_MS, HOUR_MS, DAY_MS):
        first = floor_time(until, width_ms) - timedelta(milliseconds=2 * width_ms)
        if found := context.ledger.rollups.read(sla.name, width_ms, Interval(first, until)):
            partitions, values = unpacked(found[-1]).cells()
            threshold = found[-1].rollup.max_latency_ms or sla.max_latency_ms
            return _Lateness(found[-1].start, threshold, dict(zip(partitions, values.tolist(), strict=True)))
    return _Lateness(None, sla.max_latency_ms, {})


def _newest(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """What the newest snapshot of each saw."""
    of = itemgetter(*names)
    newest: dict[Any, datetime] = {}
    for row in rows:
        newest[of(row)] = max(row["at"], newest.get(of(row), row["at"]))
    return [row for row in rows if row["at"] == newest[of(row)]]


def _members(sla: Sla, rows: Iterable[dict[str, Any]], late: _Lateness) -> Iterable[GroupMember]:
    """Those that read partitions of the SLA, and those that read none at all."""
    parts: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if not row["topic"] or sla.topics.matches(row["topic"]):
            parts[row["group"], row["member"]].append(row)
    for (group, member), mine in parts.items():
        keys = [(group, row["topic"], partition) for row in mine for partition in row["partitions"]]
        worst = late.of(keys)
        yield GroupMember(
            group=group,
            member=member,
            client=mine[0]["client"],
            host=mine[0]["host"],
            partitions=len(keys),
            worst_latency_ms=worst[0] if worst else None,
            worst_partition=_name(worst[1]) if worst else None,
            late_partitions=sum(late.worst.get(key, 0) > late.threshold_ms for key in keys),
        )


def _brokers(context: Context, sla: Sla, span: Interval, late: _Lateness) -> list[LeadingBroker]:
    led: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for topic, brokers in leaders(context, [sla.cluster], span, sla.topics)[sla.cluster].items():
        for partition, broker in enumerate(brokers):
            led[broker].add((topic, partition))
    return [
        LeadingBroker(
            broker=None if broker == _NOBODY else broker,
            partitions=len(mine),
            worst_latency_ms=max((ms for (_, *place), ms in late.worst.items() if tuple(place) in mine), default=None),
        )
        for broker, mine in sorted(led.items())
    ]


def _name(key: PartitionKey) -> str:
    return f"{key[1]}-{key[2]}"
