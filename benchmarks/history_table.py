"""What was measured again, compared with what was measured live, as Markdown. Knows published rows only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.order_worker import settings_of, store_of
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, SlaWindow
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE

Row = dict[str, Any]
Key = tuple[Any, ...]
_BOUNDED = ("records_latency_max", "backlog_age_max")
_ROUNDING_MS = 0.01
_SHOWN = 5
POLLS, _REWOUND = "files of polls at each window's end", "rewound"
"""A limit: a group of this flow that goes back and returns between two polls was seen doing neither."""
_WITH_RANGES = "transactional"
"""What was read of this flow's records (`record_ranges`) is in no file that can be imported."""


@dataclass(frozen=True, slots=True)
class Past:
    """One telling of the time: rows by key, verdicts by SLA and window."""

    title: str
    latency: dict[Key, Row]
    steady: dict[Key, Row]
    verdicts: dict[Key, SlaWindow]
    equal_to: str | None
    """The telling with the same evidence: all rows must be equal."""


def past(title: str, folder: Path, interval: Interval, equal_to: str | None) -> Past:
    """What is published in the store of this folder."""
    lake, ledger = Lake(store_of(folder)), Ledger(store_of(folder))
    latency, steady = (
        {tuple(row[k] for k in table.key): row for row in lake.published(table.name, interval).to_pylist()}
        for table in (CONSUMER_LATENCY, STEADY_STATE)
    )
    verdicts = {
        (sla.name, window.window.start): window
        for sla in settings_of(folder).slas
        for window in ledger.verdicts.windows(sla, interval)
    }
    return Past(title, latency, steady, verdicts, equal_to)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How the verdicts of one telling compare with the live ones, counted; examples of the silent ones."""

    same: int
    unknown: int
    """Now unknown, with a reason."""
    uncertain: int
    """Another one, not certain."""
    known: int
    """Now known, unknown when it was live."""
    silent: tuple[str, ...]
    """Another one that does not say so."""


def compare_verdicts(live: Past, one: Past) -> Verdicts:
    counts: Counter[str] = Counter()
    silent = []
    for key, then in live.verdicts.items():
        now = one.verdicts[key]
        kind = _kind(then, now)
        counts[kind] += 1
        if kind == "silent":
            silent.append(f"{key[0]} {key[1]:%H:%M:%S}: live {_told(then)}, now {_told(now)}")
    return Verdicts(counts["same"], counts["unknown"], counts["uncertain"], counts["known"], tuple(silent))


def _kind(then: SlaWindow, now: SlaWindow) -> str:
    """An excuse is a claim, too: that the consumer was bootstrapping. One that is not made any more claims nothing."""
    if then.verdict == now.verdict:
        return "same"
    if now.verdict == "unknown":
        return "unknown" if now.reason else "silent"
    if then.verdict == "unknown":
        return "known"
    return "silent" if now.is_certain or now.verdict == "excluded" else "uncertain"


def _told(window: SlaWindow) -> str:
    certain = ", certain" if window.is_certain else ""
    return (
        f"{window.verdict}{certain} {window.reason} ({window.worst_latency_low_ms} .. {window.worst_latency_high_ms})"
    )


def contradictions(live: Past, one: Past) -> list[str]:
    """Bounds that have no value in common: the truth cannot lie in both."""
    found = []
    for key in live.latency.keys() & one.latency.keys():
        for name in _BOUNDED:
            (low, high), (other_low, other_high) = (_bounds(p.latency[key], name) for p in (live, one))
            if max(low, other_low) > min(high, other_high) + _ROUNDING_MS:
                both = f"live {low:.1f} .. {high:.1f}, now {other_low:.1f} .. {other_high:.1f}"
                found.append(f"{key[1]} {key[4]:%H:%M:%S} {name}: {both}")
    return sorted(found)


def _bounds(row: Row, name: str) -> tuple[float, float]:
    """Of a backlog without unread records, or of no record read, nothing is bound."""
    low, high = row[f"{name}_low_ms"], row[f"{name}_high_ms"]
    return (0.0 if low is None else low), (float("inf") if high is None else high)


def complaints(found: Sequence[Past]) -> list[str]:
    """What must not be, in words."""
    return [text for one in found[1:] for text in _complaints(found, one)]


def _complaints(found: Sequence[Past], one: Past) -> Iterator[str]:
    live = found[0]
    for text in _first(compare_verdicts(live, one).silent):
        yield f"{one.title}: another verdict, unsaid: {text}"
    unseen = _REWOUND if one.title == POLLS else None
    for text in _first([text for text in contradictions(live, one) if not (unseen and text.startswith(unseen))]):
        yield f"{one.title}: bounds exclude each other: {text}"
    same = next((p for p in found if p.title == one.equal_to), None)
    if same:
        for name in ("latency", "steady", "verdicts"):
            theirs, mine = getattr(same, name), getattr(one, name)
            differing = sorted(k for k in theirs.keys() | mine.keys() if theirs.get(k) != mine.get(k))
            differing = [k for k in differing if not any(str(part).startswith(_WITH_RANGES) for part in k)]
            for key in _first(differing):
                yield (
                    f"{one.title}: {len(differing)} {name} rows are not those of {same.title!r}, such as\n"
                    f"    {mine.get(key)}\n    {theirs.get(key)}"
                )


def _first(texts: Sequence[Any]) -> Sequence[Any]:
    return texts[:_SHOWN]


def markdown(found: Sequence[Past]) -> str:
    """One line a telling."""
    live = found[0]
    columns: dict[str, Callable[[Past], object]] = {
        "told again": lambda p: p.title,
        "rows equal": lambda p: _share(sum(p.latency.get(k) == row for k, row in live.latency.items()), live.latency),
        "columns that differ": lambda p: ", ".join(_columns(live, p)) or "none",
        "steady states equal": lambda p: _share(
            sum(p.steady.get(k) == row for k, row in live.steady.items()), live.steady
        ),
        "bounds that exclude each other": lambda p: len(contradictions(live, p)),
        "coverage": lambda p: _share(sum(w.verdict != "unknown" for w in p.verdicts.values()), p.verdicts),
        "verdicts: same": lambda p: compare_verdicts(live, p).same,
        "now unknown": lambda p: compare_verdicts(live, p).unknown,
        "now known": lambda p: compare_verdicts(live, p).known,
        "differ, not certain": lambda p: compare_verdicts(live, p).uncertain,
        "**differ, unsaid**": lambda p: len(compare_verdicts(live, p).silent),
        "is_certain": lambda p: _share(sum(w.is_certain for w in p.verdicts.values()), p.verdicts),
        "mean width of the largest latency's bounds, ms": lambda p: _width(live, p),
    }
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join([*lines, *("| " + " | ".join(str(of(p)) for of in columns.values()) + " |" for p in found)])


def _columns(live: Past, one: Past) -> list[str]:
    """Columns of `consumer_latency` in which rows of both differ: the names, or how many where they are many."""
    both = [(row, one.latency[key]) for key, row in live.latency.items() if key in one.latency]
    names = [name for name in CONSUMER_LATENCY.names if any(a[name] != b[name] for a, b in both)]
    return names if len(names) <= _SHOWN else [f"{len(names)} columns"]


def _share(count: int, of: Any) -> str:
    return f"{count / len(of):.1%}" if of else "none"


def _width(live: Past, one: Past) -> str:
    """Over the windows in which the live rows and these tell both bounds."""
    widths = [
        row["records_latency_max_high_ms"] - row["records_latency_max_low_ms"]
        for key, row in one.latency.items()
        if key in live.latency and None not in (row["records_latency_max_high_ms"], row["records_latency_max_low_ms"])
    ]
    return f"{fmean(widths):,.0f}" if widths else "none"
