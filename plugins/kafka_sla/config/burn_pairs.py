"""Alerts on burn rates as the configuration names them: presets after the SRE Workbook, own pairs, and what makes one
of no use. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka_sla.config.field_types import valid
from kafka_sla.config.reading.yaml_lines import KeyPath
from kafka_sla.config.schema import BurnPairKeys, SlaKeys
from kafka_sla.model.entities import BurnPair
from kafka_sla.text.durations import bad_share, duration_text, parse_duration, parse_objective
from kafka_sla.text.periods import parse_period, shortest_days

_TICKET = {"burn_rate": 1.0, "long": "3d", "short": "6h", "severity": "ticket"}
_PAGES = (
    {"burn_rate": 14.4, "long": "1h", "short": "5m", "severity": "page"},
    {"burn_rate": 6.0, "long": "6h", "short": "30m", "severity": "page"},
)
PRESETS: dict[str, tuple[dict[str, Any], ...]] = {"none": (), "ticket": (_TICKET,), "workbook": (*_PAGES, _TICKET)}
"""SRE Workbook, chapter 5, table 5-8."""
_DAY_MS = 86_400_000


def burn_pairs(keys: SlaKeys) -> tuple[BurnPair, ...]:
    """The pairs of an SLA; what must be bad at least is time or records, as its objective counts."""
    given = keys.burn_pairs or [BurnPairKeys.model_validate(pair) for pair in PRESETS[keys.burn_alerts]]
    return tuple(
        BurnPair(
            pair.burn_rate,
            pair.long,
            pair.short,
            pair.severity,
            pair.min_late_records if keys.objective_of == "records" else pair.min_bad_time or keys.for_,
        )
        for pair in given
    )


def burn_rules(sla: dict[str, Any], window_ms: int) -> Iterator[tuple[KeyPath, str]]:
    """What makes an alert of an SLA, as raw values, impossible."""
    own, preset = sla.get("burn_pairs"), sla.get("burn_alerts")
    if own and preset not in (None, "none"):
        yield ("burn_pairs",), "given together with 'burn_alerts'; allowed: one of the two"
    for i, pair in enumerate(own if isinstance(own, list) else []):
        if isinstance(pair, dict):
            yield from ((("burn_pairs", i, *path), text) for path, text in pair_rules(pair, sla, window_ms))
    for pair in PRESETS.get(str(preset), ()):
        for path, text in pair_rules(pair, sla, window_ms):
            yield ("burn_alerts",), f"its pair of {pair['burn_rate']:g}x over {pair['long']}: {path[-1]}: {text}"


def pair_rules(pair: dict[str, Any], sla: dict[str, Any], window_ms: int) -> Iterator[tuple[KeyPath, str]]:
    """What makes a pair, as raw values, of no use for this SLA."""
    long, short, least = (valid(parse_duration, pair.get(key)) for key in ("long", "short", "min_bad_time"))
    for key, length in (("long", long), ("short", short)):
        if length and length % window_ms:
            yield (
                (key,),
                f"{duration_text(length)!r} is not whole windows; allowed: multiples of {duration_text(window_ms)}",
            )
    if long and short and short > long:
        yield ("short",), f"{duration_text(short)!r} is longer than long; allowed: {duration_text(long)} at most"
    if long and least and least > long:
        yield ("min_bad_time",), f"{duration_text(least)!r} is longer than long; allowed: {duration_text(long)} at most"
    period = valid(parse_period, sla.get("period", "month"))
    if long and period and long > shortest_days(period) * _DAY_MS:
        yield (
            ("long",),
            f"{duration_text(long)!r} is longer than the SLA's period; allowed: {shortest_days(period)}d at most",
        )
    rate, objective = pair.get("burn_rate"), valid(parse_objective, sla.get("objective", "99.9%"))
    if isinstance(rate, int | float) and objective and rate * float(bad_share(objective)) >= 1:
        yield (
            ("burn_rate",),
            f"{rate:g} cannot be exceeded: all bad is {float(1 / bad_share(objective)):.4g}; allowed: less than that",
        )
