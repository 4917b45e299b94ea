"""OpenSLO documents (v1) as SLAs of a configuration: what fits, and by name what does not. Pure; reads no file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import ValidationError

from kafka_sla.config.openslo.alerts import condition_refs, pairs_of, policy_refs
from kafka_sla.config.openslo.exported_documents import KEPT, PREFIX
from kafka_sla.config.openslo.parts import Unfit, at, budgeting_method, indicator, objective_of, window_of
from kafka_sla.config.openslo.shape import malformed
from kafka_sla.config.schema import SlaKeys


@dataclass(slots=True)
class Imported:
    """What became of one document; `slas` are entries of a configuration."""

    slas: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why nothing of it was imported."""
    left_out: list[str] = field(default_factory=list)
    """What is not part of the SLAs, each with its path."""


def import_slos(documents: Sequence[Any], window_ms: int) -> list[tuple[str, Imported]]:
    """Each SLO among the documents by name, and what became of it; the others are looked up by those that name them."""
    parts = {kind: _specs(documents, kind) for kind in ("SLI", "AlertPolicy", "AlertCondition")}
    wanted = _wanted(documents, parts["AlertPolicy"])
    found = []
    for number, document in enumerate(documents, 1):
        kind, name = at(document, "kind"), at(document, "metadata", "name")
        if _is(document, *parts) and isinstance(name, str) and name in parts[kind].keys() & wanted[kind]:
            continue
        imported = Imported()
        if not _is(document, "SLO", *parts):
            imported.problems.append(f"it is {_kind(document)}; only openslo/v1 {', '.join(['SLO', *parts])} are read")
        elif wrong := malformed(document):
            imported.problems.append(wrong)
        elif kind in parts:
            imported.problems.append(f"no SLO of the file names this {kind}")
        else:
            _read(document, parts, window_ms, imported)
        found.append((str(name or f"document {number}"), imported))
    return found


def _specs(documents: Sequence[Any], kind: str) -> dict[str, Any]:
    return {d["metadata"]["name"]: d["spec"] for d in documents if _is(d, kind) and not malformed(d)}


def _wanted(documents: Sequence[Any], policies: Mapping[str, Any]) -> dict[str, set[str]]:
    """By kind the names of documents that the SLOs name."""
    specs = [d["spec"] for d in documents if _is(d, "SLO") and not malformed(d)]
    named = set().union(*map(policy_refs, specs))
    inline = [one["spec"] for spec in specs for one in spec.get("alertPolicies") or [] if one.get("spec")]
    reached = [*inline, *(policies[name] for name in named if name in policies)]
    return {
        "SLI": {str(spec.get("indicatorRef")) for spec in specs},
        "AlertPolicy": named,
        "AlertCondition": set().union(*map(condition_refs, reached)),
    }


def _is(document: Any, *kinds: str) -> bool:
    return at(document, "apiVersion") == "openslo/v1" and at(document, "kind") in kinds


def _kind(document: Any) -> str:
    """What a document says that it is: `openslo/v1 Service`, `prometheus/v1`."""
    said = (at(document, "apiVersion") or at(document, "version"), at(document, "kind"))
    return " ".join(str(word) for word in said if word) or "no document of OpenSLO"


def _read(document: Mapping[str, Any], parts: Mapping[str, Any], window_ms: int, into: Imported) -> None:
    spec, metadata = document.get("spec") or {}, document["metadata"]
    name = str(metadata.get("displayName") or metadata["name"])
    shared: dict[str, Any] = {}
    for part in (partial(indicator, spec, parts["SLI"]), partial(window_of, spec), partial(budgeting_method, spec)):
        try:
            shared |= part()
        except Unfit as error:
            into.problems.append(str(error))
    objectives = spec.get("objectives") or []
    if not objectives:
        into.problems.append("spec.objectives: there are none")
    kept, strangers = _annotations(metadata)
    team, other_teams = _team(metadata)
    about = {"description": spec.get("description"), "team": team}
    for i, objective in enumerate(objectives):
        try:
            own = objective_of(objective, f"spec.objectives[{i}]", window_ms)
        except Unfit as error:
            into.problems.append(str(error))
            continue
        title = name if len(objectives) == 1 else f"{name}: {objective.get('displayName') or i + 1}"
        filled = {key: value for key, value in about.items() if value}
        pairs = _burn_pairs(spec, parts, shared | own | kept, window_ms, into)
        into.slas.append(sla := {"name": title} | shared | own | filled | pairs | kept)
        into.problems += _wrong(sla)
    into.left_out += [*strangers, *other_teams, *_unread(spec, objectives)]
    if into.problems:
        into.slas.clear()


def _burn_pairs(
    spec: Mapping[str, Any], parts: Mapping[str, Any], sla: Mapping[str, Any], window_ms: int, into: Imported
) -> dict[str, Any]:
    if {"burn_alerts", "burn_pairs"} & sla.keys() and spec.get("alertPolicies"):
        into.left_out.append("spec.alertPolicies: an annotation says how the error budget alerts")
        return {}
    pairs, left_out = pairs_of(spec, parts["AlertPolicy"], parts["AlertCondition"], sla, window_ms)
    into.left_out += [text for text in left_out if text not in into.left_out]
    return {"burn_pairs": pairs} if pairs else {}


def _wrong(sla: Mapping[str, Any]) -> list[str]:
    """What a configuration would refuse in it."""
    try:
        SlaKeys.model_validate(sla)
    except ValidationError as error:
        return [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
    return []


def _team(metadata: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The team of an SLA, which is the first value of the label, and what to report about its other values."""
    label = at(metadata, "labels", "team") or None
    if not isinstance(label, list):
        return label, []
    others = ", ".join(map(str, label[1:]))
    return label[0], [f"metadata.labels.team: {others}; an SLA has one team"] if others else []


def _annotations(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Keys of an SLA that an export put there, and what else there is."""
    kept: dict[str, Any] = {}
    strangers = [f"metadata.labels.{key}" for key in metadata.get("labels") or {} if key != "team"]
    for name, value in (metadata.get("annotations") or {}).items():
        key = str(name).removeprefix(PREFIX)
        known = str(name).startswith(PREFIX) and key in KEPT
        try:
            found = {key: json.loads(value)} if known else {}
        except (ValueError, TypeError):
            found = {}
        kept |= found
        strangers += [] if found else [f"metadata.annotations.{name}"]
    return kept, strangers


_READ = {
    "description",
    "indicator",
    "indicatorRef",
    "timeWindow",
    "budgetingMethod",
    "objectives",
    "service",
    "alertPolicies",
}
_READ_OF_OBJECTIVES = {"displayName", "op", "value", "target", "targetPercent", "timeSliceTarget", "timeSliceWindow"}


def _unread(spec: Mapping[str, Any], objectives: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"spec.{key}" for key in spec if key not in _READ)
    for i, objective in enumerate(objectives):
        yield from (f"spec.objectives[{i}].{key}" for key in objective if key not in _READ_OF_OBJECTIVES)
