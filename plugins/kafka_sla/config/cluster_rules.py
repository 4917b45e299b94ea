"""Rules on a cluster's replication flows and checkpoints that span several keys. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka_sla.config.field_types import mapping, mappings
from kafka_sla.config.rules import Found, did_you_mean, kept_names

_ASKED_ALONGSIDE = ("replication", "checkpoints", "jmx_exporters", "sample_every")
"""What is read from the cluster or beside it, which needs a connection."""


def broken_clusters(values: dict[str, Any]) -> Iterator[Found]:
    """Every broken rule of `clusters` in the values of a configuration file."""
    clusters = mapping(values.get("clusters"))
    for name, keys in clusters.items():
        for path, text in _rules(str(name), mapping(keys), clusters):
            yield ("clusters", name, *path), text


def _rules(name: str, cluster: dict[str, Any], clusters: dict[str, Any]) -> Iterator[Found]:
    for key in _ASKED_ALONGSIDE:
        if cluster.get(key) and not cluster.get("connection"):
            yield (key,), "given without 'connection'; allowed: on clusters that are read, not only imported"
    for i, flow in enumerate(mappings(cluster.get("replication"))):
        for path, text in (*_target(name, flow, clusters), *_where(flow)):
            yield ("replication", i, *path), text
    taken: set[str] = set()
    for path, group in kept_names(name, cluster).items():
        if group in taken:
            yield path, f"{group!r} names two consumers; allowed: a name that no other flow or checkpoint has"
        taken.add(group)


def _target(source: str, flow: dict[str, Any], clusters: dict[str, Any]) -> Iterator[Found]:
    target = flow.get("to")
    others = [str(name) for name in clusters if name != source]
    if not isinstance(target, str):
        return  # the schema names that mistake
    if target not in others:
        hint = did_you_mean(target, others)
        allowed = ", ".join(others) or "another cluster, of which there is none"
        yield ("to",), f"{target!r} is no other cluster;{hint} allowed: {allowed}"
    elif not flow.get("connect") and not mapping(clusters[target]).get("connection"):
        told = "has no connection, so the offsets topic cannot be read; allowed: one that has, or connect"
        yield ("to",), f"{target!r} {told}"


def _where(flow: dict[str, Any]) -> Iterator[Found]:
    if flow.get("connect") and flow.get("offsets_topic"):
        yield ("connect",), "given together with 'offsets_topic'; allowed: one of the two"
