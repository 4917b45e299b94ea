"""Rules that span several keys, checked on raw values so that one mistake hides no other. Reads no file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

from kafka_sla.config.burn_pairs import burn_rules
from kafka_sla.config.chains import chain_rules, chained
from kafka_sla.config.field_types import mapping, mappings, valid
from kafka_sla.config.reading.secret_words import SECRET_ADDRESS, SECRET_KEY
from kafka_sla.config.reading.yaml_lines import KeyPath
from kafka_sla.text.durations import duration_text, parse_duration
from kafka_sla.text.name_patterns import is_exact, parse_patterns
from kafka_sla.text.periods import parse_period, shortest_days
from kafka_sla.text.timestamps import parse_instant

Found = tuple[KeyPath, str]
"""Where, and what is wrong with what is allowed."""
_MOST_TOLD, _NEAREST = 20, 3
_SLOT_MS = 300_000
_MINUTE_MS = 60_000
_HALF = re.compile(r"[\ud800-\udfff]")
_INTERVALS = (1, 2, 5, 10, 15)
"""Minutes."""
_DAY_MS = 86_400_000
_ANY_PERIOD_DAYS = 365
"""Where the period itself is wrong, which the schema says."""
_TWINS = {"group": "groups", "groups": "group", "topic": "topics", "topics": "topic"}


def merged_slas(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Raw SLAs with `defaults` filled in; a key that an SLA gives replaces the default as a whole."""
    defaults = mapping(values.get("defaults"))
    merged = []
    for sla in mappings(values.get("slas")):
        own = {key: value for key, value in sla.items() if value is not None}
        selected = own.keys() | (_TWINS.keys() if "chain" in own else set())
        merged.append({**{key: value for key, value in defaults.items() if _TWINS.get(key) not in selected}, **own})
    return merged


def broken_rules(values: dict[str, Any]) -> Iterator[Found]:
    """Every broken rule of the values of a configuration file."""
    window = valid(parse_duration, values.get("window")) or 60_000
    yield from _character_rules(values)
    yield from _window_rules(values, window)
    yield from _digest_rules(values)
    yield from _team_rules(values)
    yield from _list_rules(values)
    names: set[str] = set()
    for i, sla in enumerate(merged_slas(values)):
        rules = (
            _key_rules(sla, names),
            _for_rules(sla, window),
            _maintenance_rules(sla),
            _cluster_rules(sla, values),
            burn_rules(sla, window),
            chain_rules(sla, _TWINS),
        )
        yield from ((("slas", i, *path), text) for rule in rules for path, text in rule)


def _digest_rules(values: dict[str, Any]) -> Iterator[Found]:
    slas = merged_slas(values)
    known = [str(sla["name"]) for sla in slas if isinstance(sla.get("name"), str)]
    teams = {str(sla["team"]) for sla in slas if sla.get("team")}
    names: set[str] = set()
    for i, digest in enumerate(mappings(values.get("digests"))):
        name, listed, team = (digest.get(key) for key in ("name", "slas", "team"))
        if isinstance(name, str) and name in names:
            yield ("digests", i, "name"), f"{name!r} names two digests; allowed: a name that no other digest has"
        names.add(str(name))
        for k, sla in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(sla, str) and sla not in known:
                yield (
                    ("digests", i, "slas", k),
                    f"unknown SLA {sla!r};{did_you_mean(sla, known)} allowed: {_all(known)}",
                )
        if listed and team:
            yield ("digests", i, "team"), "given together with 'slas'; allowed: one of the two"
        if isinstance(team, str) and team and team not in teams:
            yield (
                ("digests", i, "team"),
                f"no SLA is of team {team!r};{did_you_mean(team, teams)} allowed: {_all(teams)}",
            )


def _team_rules(values: dict[str, Any]) -> Iterator[Found]:
    teams = {str(sla["team"]) for sla in merged_slas(values) if sla.get("team")}
    for team in map(str, mapping(values.get("teams"))):
        if team not in teams:
            yield ("teams", team), f"no SLA is of team {team!r};{did_you_mean(team, teams)} allowed: {_all(teams)}"


def _all(names: Any) -> str:
    return all_or_count(sorted(names)) if names else "none, since nothing has one"


def secrets(value: Any, path: KeyPath = ()) -> Iterator[Found]:
    """Every key or value that looks like a secret. The value itself is never repeated."""
    for key, inner in _entries(value):
        plain = isinstance(inner, str | int | float) and not isinstance(inner, bool) and "{{" not in str(inner)
        public = str(key).endswith(("conn_id", "connection"))
        named = isinstance(key, str) and SECRET_KEY.search(key) and not public
        if plain and (named or SECRET_ADDRESS.search(str(inner))):
            yield (
                (*path, key),
                "secrets do not belong in this file; put it into an Airflow connection and name its id here",
            )
        yield from secrets(inner, (*path, key))


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    """Keys or indexes, and what stands under them; nothing of plain values."""
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def _character_rules(value: Any, path: KeyPath = ()) -> Iterator[Found]:
    """YAML can write halves of characters, which no page, mail or file can hold."""
    if isinstance(value, str) and (half := _HALF.search(value)):
        yield path, f"holds {half[0]!r}, half a character; allowed: whole characters, as they are or as \\U0001F600"
    for key, inner in _entries(value):
        yield from _character_rules(inner, (*path, key))


def did_you_mean(name: str, known: Any) -> str:
    """` did you mean 'x'?` when something known is near, else nothing; several, where not all known ones are told."""
    names = [str(one) for one in known]
    most = 1 if len(names) <= _MOST_TOLD else _NEAREST
    near = get_close_matches(name, names, most, 0.6) or [one for one in names if len(name) > 2 and name in one]
    return f" did you mean {' or '.join(map(repr, near[:most]))}?" if near else ""


def all_or_count(names: Sequence[str]) -> str:
    """The names, or how many there are where nobody would read them."""
    if len(names) > _MOST_TOLD:
        return f"{len(names)} names"
    return ", ".join(names) or "none"


def _window_rules(values: dict[str, Any], window: int) -> Iterator[Found]:
    if _SLOT_MS % window or window % 1000:
        yield (
            ("window",),
            f"{duration_text(window)!r} does not divide 5m; allowed: whole seconds that do, such as 10s, 30s, 1m, 5m",
        )
    interval = valid(parse_duration, values.get("interval")) or _SLOT_MS
    allowed = [minutes * _MINUTE_MS for minutes in _INTERVALS if not minutes * _MINUTE_MS % window]
    if interval not in allowed and not _SLOT_MS % window:
        asked, width = duration_text(interval), duration_text(window)
        texts = ", ".join(map(duration_text, allowed))
        yield ("interval",), f"{asked!r} cannot be scheduled with windows of {width}; allowed: {texts}"
    offset_lookups = mapping(values.get("offset_lookups"))
    floor = valid(parse_duration, offset_lookups.get("min_gap")) or 250
    if floor > (valid(parse_duration, offset_lookups.get("max_gap")) or window):
        yield (
            ("offset_lookups", "min_gap"),
            f"{duration_text(floor)!r} is longer than max_gap; allowed: max_gap at most",
        )


def _key_rules(sla: dict[str, Any], names: set[str]) -> Iterator[Found]:
    name = sla.get("name")
    if isinstance(name, str) and name in names:
        yield ("name",), f"{name!r} names two SLAs; allowed: a name that no other SLA has"
    names.add(str(name))
    if sla.get("max_latency") is None:
        yield (), "required key 'max_latency' is missing; allowed: a duration, such as max_latency: 30s"
    if all(sla.get(key) is None for key in ("group", "groups", "chain")):
        yield (), "required key 'groups' is missing; allowed: names or patterns, such as groups: [payments-service]"
    for one, many in (("group", "groups"), ("topic", "topics")):
        if sla.get(one) is not None and sla.get(many) is not None:
            yield (one,), f"given together with {many!r}; allowed: one of the two"


def _for_rules(sla: dict[str, Any], window: int) -> Iterator[Found]:
    length = valid(parse_duration, sla.get("for"))
    period = valid(parse_period, sla.get("period", "month"))
    days = shortest_days(period) if period else _ANY_PERIOD_DAYS
    if length is not None and length < window:
        yield (
            ("for",),
            f"{duration_text(length)!r} is shorter than a window; allowed: {duration_text(window)} or longer",
        )
    if length is not None and length > days * _DAY_MS:
        yield ("for",), f"{duration_text(length)!r} is longer than the SLA's period; allowed: {days}d at most"


def _maintenance_rules(sla: dict[str, Any]) -> Iterator[Found]:
    for i, entry in enumerate(mappings(sla.get("maintenance"))):
        given = {key for key in ("from", "to", "every") if entry.get(key) is not None}
        if given not in ({"from", "to"}, {"every"}):
            yield ("maintenance", i), "not a maintenance; allowed: both 'from' and 'to', or 'every' alone"
        elif "from" in given:
            named = entry.get("time_zone") or sla.get("time_zone")
            zone = named if valid(ZoneInfo, named) else "UTC"
            start, end = (valid(parse_instant, entry[key], zone) for key in ("from", "to"))
            if start and end and end <= start:
                yield ("maintenance", i, "to"), f"{entry['to']!r} is not after 'from'; allowed: a later time"


def _cluster_rules(sla: dict[str, Any], values: dict[str, Any]) -> Iterator[Found]:
    clusters = mapping(values.get("clusters"))
    name = sla.get("cluster") or (next(iter(clusters)) if len(clusters) == 1 else None)
    known = ", ".join(map(str, clusters)) or "none, since clusters is empty"
    if name is None:
        yield (), f"required key 'cluster' is missing; allowed: {known}"
    elif isinstance(name, str) and name not in clusters:
        yield ("cluster",), f"unknown cluster {name!r};{did_you_mean(name, clusters)} allowed: {known}"
    elif isinstance(name, str):
        yield from _selection_rules(sla, name, mapping(clusters[name]))
        yield from _expiry_rules(sla, name, mapping(clusters[name]))


def _list_rules(values: dict[str, Any]) -> Iterator[Found]:
    """Groups and topics of the lists of counted groups that the cluster does not measure at all."""
    for name, cluster in mapping(values.get("clusters")).items():
        lists = mapping(mapping(cluster).get("non_consumed_offsets_groups"))
        patterns = {many: valid(parse_patterns, mapping(cluster).get(many) or ["*"]) for many in ("groups", "topics")}
        kept = kept_names(str(name), mapping(cluster)).values()
        for topic, groups in lists.items():
            listed = [("groups", group) for group in groups if group not in kept] if isinstance(groups, list) else []
            for many, text in (("topics", topic), *listed):
                if patterns[many] and isinstance(text, str) and not patterns[many].matches(text):
                    yield (
                        ("clusters", name, "non_consumed_offsets_groups", topic),
                        f"{text!r} is not selected by clusters.{name}.{many}; allowed: names that it selects",
                    )


def _expiry_rules(sla: dict[str, Any], name: str, cluster: dict[str, Any]) -> Iterator[Found]:
    """Groups whose unread records are limited where nobody counts them."""
    lists = mapping(cluster.get("non_consumed_offsets_groups"))
    groups = sla["groups"] if isinstance(sla.get("groups"), list) else [sla.get("group")]
    topics = sla["topics"] if isinstance(sla.get("topics"), list) else [sla.get("topic")]
    listed = [topic for topic in map(str, topics) if isinstance(lists.get(topic), list)]
    for topic in listed if sla.get("min_time_to_expiry") is not None else []:
        for group in groups:
            if isinstance(group, str) and is_exact(group) and group not in lists[topic]:
                yield (
                    ("min_time_to_expiry",),
                    f"{group!r} is not in clusters.{name}.non_consumed_offsets_groups.{topic}, so that its unread"
                    " records are not known; allowed: groups of that list, or no list for the topic",
                )


def _selection_rules(sla: dict[str, Any], name: str, cluster: dict[str, Any]) -> Iterator[Found]:
    for one, many in (("group", "groups"), ("topic", "topics")):
        selected = valid(parse_patterns, cluster.get(many) or ["*"])
        for number, name_of_stage in chained(sla, one) if selected else ():
            if not selected.matches(name_of_stage):
                yield (
                    ("chain", number, one),
                    f"{name_of_stage!r} is not selected by clusters.{name}.{many}; allowed: names that it selects",
                )
        listed = sla[many] if isinstance(sla.get(many), list) else [sla.get(one)]
        kept = kept_names(name, cluster).values() if many == "groups" else ()
        for text in listed if selected else []:
            if is_exact(text) and not selected.matches(text) and text not in kept:
                at = (many,) if sla.get(many) else (one,)
                yield at, f"{text!r} is not selected by clusters.{name}.{many}; allowed: names that it selects"


def kept_names(source: str, cluster: dict[str, Any]) -> dict[KeyPath, str]:
    """Replication flows and checkpoints are consumer groups too, whatever `groups` says: by path, how each is named."""
    flows, checkpoints = (enumerate(mappings(cluster.get(key))) for key in ("replication", "checkpoints"))
    return {
        **{("replication", i, "name"): str(flow.get("name") or f"{source}->{flow.get('to')}") for i, flow in flows},
        **{("checkpoints", i, "group"): str(one.get("group")) for i, one in checkpoints},
    }
