"""Gauges in Prometheus' text format, written a line a sample: the client library takes seconds for 60,000 of them.
Knows no figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[tuple[str, ...], float]
"""Values of the labels, and the value."""
Known = dict[tuple[str, ...], dict[tuple[str, ...], str]]
"""Labels as they are written, by their names and values: series of one thing have the same in many gauges."""
_INFINITE = {float("inf"): "+Inf"}
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@dataclass(frozen=True, slots=True)
class Gauge:
    """One metric with its series."""

    name: str
    words: str
    labels: Sequence[str]
    samples: Sequence[Sample]


def text(gauges: Iterable[Gauge]) -> str:
    """The whole answer to a scrape."""
    known: Known = {}
    return "\n".join(chain.from_iterable(_lines(gauge, known) for gauge in gauges)) + "\n"


def _lines(gauge: Gauge, known: Known) -> list[str]:
    name, head = gauge.name, [f"# HELP {gauge.name} {gauge.words}", f"# TYPE {gauge.name} gauge"]
    written = known.setdefault(tuple(gauge.labels), {})
    order = sorted(range(len(gauge.labels)), key=gauge.labels.__getitem__)
    form = "{" + ",".join(f'{gauge.labels[i]}="%s"' for i in order) + "}" if order else ""
    for values, _ in gauge.samples:
        if values not in written:
            written[values] = form % tuple(map(_escaped, map(values.__getitem__, order)))
    return [
        *head,
        *[f"{name}{written[values]} {_INFINITE.get(number) or repr(number)}" for values, number in gauge.samples],
    ]


@lru_cache(maxsize=100_000)
def _escaped(value: str) -> str:
    return value.translate(_ESCAPED)
