"""Who reads and who leads the partitions of SLAs, in words for the templates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka_sla.config.settings import Settings
from kafka_sla.model.entities import Sla
from kafka_sla.text.formatting import moment, plural, span
from kafka_sla.text.name_patterns import plain_names, selected
from kafka_sla.text.natural_order import natural
from kafka_sla.web.pages.views.view_models import Link
from kafka_sla.web.queries.schemas import GroupMember, LeadingBroker, Readers, ReplicationStatus

SHOWN = 50
FEW = 3
"""SLAs of a replicated topic that its row names."""


def readers(found: Readers) -> dict[str, Any]:
    """What the card of an SLA shows."""
    return {
        "seen": moment(found.seen_at) if found.seen_at else "",
        "of": moment(found.latency_from),
        "verdict": _verdict(found.members),
        "members": [_member(one) for one in found.members[:SHOWN]],
        "omitted": max(0, len(found.members) - SHOWN),
        "not_assigned": found.not_assigned,
        "brokers": [_broker(one) for one in found.brokers],
    }


def _verdict(members: Sequence[GroupMember]) -> str:
    """Which members lag: one, some, or all, which is no member's fault."""
    reading = [member for member in members if member.partitions]
    late = [member for member in reading if member.late_partitions]
    if not late or not reading:
        return "No member is above the threshold" if reading else ""
    if len(late) == len(reading):
        whole = {1: "The only member is", 2: "Both members are"}.get(len(late), f"All {len(late)} members are")
        return f"{whole} above the threshold"
    names = ", ".join(f"{one.client} on {one.host}" for one in late[:FEW]) + (", …" if len(late) > FEW else "")
    return f"{len(late)} of {plural(len(reading), 'member')} above the threshold: {names}"


def _member(one: GroupMember) -> dict[str, Any]:
    badge = ("missed", "✖", "above the threshold") if one.late_partitions else ("met", "✔", "in time")
    idle = ("excluded", "–", "no partition")
    unknown = ("unknown", "?", "unknown")
    return {
        "row": one,
        "badge": idle if not one.partitions else unknown if one.worst_latency_ms is None else badge,
        "partitions": str(one.partitions) + (f", {one.late_partitions} above" if one.late_partitions else ""),
        "worst": span(one.worst_latency_ms) if one.worst_partition else "",
    }


def _broker(one: LeadingBroker) -> dict[str, Any]:
    name = "nobody" if one.broker is None else f"broker {one.broker}"
    return {"name": name, "partitions": plural(one.partitions, "partition"), "worst": span(one.worst_latency_ms)}


def flows_of(settings: Settings, sla: Sla) -> list[str]:
    """The replication flows that may copy topics of the SLA from its cluster, or into it."""
    names = plain_names(sla.topics)
    return [
        flow.name
        for cluster in settings.clusters
        for flow in cluster.replication
        if (sla.cluster == cluster.name and (names is None or any(map(flow.topics.matches, names))))
        or (
            sla.cluster == flow.target
            and (names is None or any(flow.topics.matches(name.removeprefix(flow.prefix)) for name in names))
        )
    ]


def slas_of_flows(rows: Sequence[ReplicationStatus], slas: Iterable[Sla]) -> list[list[Sla]]:
    """For each row the SLAs that read what the flow copies, or its copy."""
    copied: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(rows):
        copied[row.cluster][row.topic].append(number)
        copied[row.target][row.target_topic].append(number)
    found: list[list[Sla]] = [[] for _ in rows]
    for sla in slas:
        topics = copied[sla.cluster]
        for number in {number for topic in selected(sla.topics, topics) for number in topics[topic]}:
            found[number].append(sla)
    return found


def few_slas(row: ReplicationStatus, mine: Sequence[Sla], link: Link) -> dict[str, Any]:
    """Links to the first few SLAs that depend on a flow's topic, how many more there are, and lists of all on each
    side."""
    shown = [{"name": sla.name, "href": link(f"/slas/{sla.name}")} for sla in mine[:FEW]]
    sides = {row.cluster: row.topic, row.target: row.target_topic}
    readers = Counter(sla.cluster for sla in mine)
    lists = [
        {"name": f"all {readers[cluster]} of {cluster}", "href": link("/", cluster=cluster, topic=topic)}
        for cluster, topic in sides.items()
        if readers[cluster]
    ]
    return {"shown": shown, "more": len(mine) - len(shown), "lists": lists}


def leading(
    cluster: str, leaders: Mapping[str, Sequence[int]], slas: Sequence[Sla], link: Link, asked: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Each broker of a cluster with the partitions that it leads, and the SLAs that read them. `asked`: the time of the
    page, which its links keep."""
    partitions: dict[int, int] = defaultdict(int)
    names: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for brokers in leaders.values():
        for broker in brokers:
            partitions[broker] += 1
    for sla in slas:
        for topic in selected(sla.topics, leaders) if sla.cluster == cluster else ():
            for broker in leaders[topic]:
                names[broker][sla.name] += 1
    return [
        {
            "broker": broker,
            "partitions": plural(count, "partition"),
            "count": len(names[broker]),
            "href": link("/brokers", **asked, cluster=cluster, broker=broker),
            "slas": [
                {"name": name, "href": link(f"/slas/{name}"), "partitions": plural(number, "partition")}
                for name, number in sorted(names[broker].items(), key=lambda one: natural(one[0]))
            ],
        }
        for broker, count in sorted(partitions.items())
        if broker >= 0
    ]
