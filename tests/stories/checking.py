"""Compares what kafka-sla says of a story with what the story expects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from itertools import groupby
from typing import Any, TypeVar

from tests.stories.clock import FACTS_FROM, parse_minutes
from tests.stories.running import Outcome, Window
from tests.stories.world import ExpectedMiss, World

Label = TypeVar("Label")
JUDGED_MINUTES = parse_minutes("08:00-10:59")


def find_differences(world: World, outcome: Outcome, printed: str) -> list[str]:
    """One line for each difference between the story's expectations and the outcome, empty if there is none."""
    return [
        *_compare_verdicts(world, outcome),
        *_compare_misses(world, outcome),
        *_compare_mails(world, outcome),
        *_compare_texts(world, outcome, printed),
    ]


def describe_verdicts(windows: Mapping[str, Window]) -> str:
    """The verdicts of the judged minutes, such as `good 08:00-08:10, bad 08:11-10:59`."""
    labelled = [(windows[m].verdict if m in windows else "no row", m) for m in JUDGED_MINUTES]
    return describe_spans(labelled)


def describe_spans(labelled: Sequence[tuple[str, str]]) -> str:
    """Spans of equal labels, such as `good 08:00-08:10, bad 08:11-10:59`, of (label, minute)."""
    return ", ".join(
        f"{label} {ms[0]}" + (f"-{ms[-1]}" if len(ms) > 1 else "") for label, ms in collect_spans(labelled)
    )


def collect_spans(labelled: Iterable[tuple[Label, str]]) -> list[tuple[Label, list[str]]]:
    """Each label with the minutes in a row that have it, of (label, minute)."""
    return [(label, [minute for _, minute in run]) for label, run in groupby(labelled, key=lambda pair: pair[0])]


def describe_misses(outcome: Outcome) -> str:
    return "; ".join(
        f"{miss.get('state', 'open' if miss['end'] is None else 'ended')} {_minute(miss['start'])}-"
        f"{_minute(miss['end']) if miss['end'] else ''} {miss['evidence'].get('cause')}"
        f"{'' if miss['is_certain'] else ' (not certain)'} {miss.get('end_reason') or ''}".strip()
        for miss in outcome.misses
    )


def _compare_verdicts(world: World, outcome: Outcome) -> Iterator[str]:
    missing = [minute for minute in JUDGED_MINUTES if minute not in world.verdicts]
    assert not missing, f"{world.name}: no verdict is expected for {missing[0]} and {len(missing) - 1} more minutes"
    wrong = []
    for minute in JUDGED_MINUTES:
        verdict = outcome.windows[minute].verdict if minute in outcome.windows else "no row"
        if verdict not in world.verdicts[minute]:
            wrong.append((f"{verdict} instead of {' or '.join(world.verdicts[minute])}", minute))
    for label, minutes in collect_spans(wrong):
        reason = outcome.windows[minutes[0]].reason if minutes[0] in outcome.windows else ""
        yield f"{label}: {minutes[0]}-{minutes[-1]}, {len(minutes)} min ({reason})"
    if wrong:
        yield f"all verdicts: {describe_verdicts(outcome.windows)}"


def _compare_misses(world: World, outcome: Outcome) -> Iterator[str]:
    if len(world.misses) != len(outcome.misses):
        yield f"{len(outcome.misses)} misses instead of {len(world.misses)}: {describe_misses(outcome)}"
        return
    for expected, miss in zip(world.misses, outcome.misses, strict=True):
        yield from _compare_miss(expected, miss)


def _compare_miss(expected: ExpectedMiss, miss: Mapping[str, Any]) -> Iterator[str]:
    state = miss.get("state", "open" if miss["end"] is None else "recovered")
    if state not in expected.state.split(" or "):
        yield f"the miss is {state} instead of {expected.state}"
    if _minute(miss["start"]) not in parse_minutes(expected.start):
        yield f"the miss starts at {_minute(miss['start'])} instead of {expected.start}"
    if expected.end is not None and (miss["end"] is None or _minute(miss["end"]) not in parse_minutes(expected.end)):
        yield f"the miss ends at {miss['end'] and _minute(miss['end'])} instead of {expected.end}"
    evidence = miss["evidence"]
    if expected.cause is not None and evidence.get("cause") not in expected.cause.split(" or "):
        yield f"the cause is {evidence.get('cause')} instead of {expected.cause}: {evidence.get('sentence')}"
    shown = json.dumps(miss, ensure_ascii=False).lower()
    if expected.text is not None and expected.text.lower() not in shown:
        yield f"the miss does not say {expected.text!r}: {evidence.get('sentence')} {miss.get('end_reason', '')}"
    if miss["is_certain"] != expected.certain:
        yield f"the miss is {'' if miss['is_certain'] else 'not '}certain"


_WORD_OF_END = {"recovered": "recovered", "excluded": "no longer judged", "removed": "no longer judged"}


def _compare_mails(world: World, outcome: Outcome) -> Iterator[str]:
    subjects = [str(mail["Subject"]) for mail in outcome.mails]
    texts = [read_mail(mail).lower() for mail in outcome.mails]
    if not world.misses and subjects:
        yield f"mails without a miss: {subjects}"
    if len([miss for miss in world.misses if miss.state in ("open", *_WORD_OF_END)]) == 1:
        (miss,) = world.misses
        ends = [text for text in texts if _WORD_OF_END.get(miss.state, "missed") in text]
        if len(subjects) != (1 if miss.state == "open" else 2) or not ends:
            yield f"the mails are {subjects}"
    for wanted in world.mails:
        if not any(wanted.lower() in text for text in texts):
            yield f"no mail says {wanted!r}: {subjects}"


def read_mail(mail: EmailMessage) -> str:
    """Subject and plain text, lines joined."""
    body = mail.get_body(("plain",))
    return " ".join(f"{mail['Subject']}\n{body.get_content() if body else ''}".split())


def _compare_texts(world: World, outcome: Outcome, printed: str) -> Iterator[str]:
    for minute, text in world.reasons:
        reason = outcome.windows[minute].reason if minute in outcome.windows else ""
        if text.lower() not in reason.lower():
            yield f"the reason of {minute} does not say {text!r}: {reason!r}"
    shown = [
        (partition, _minute(part["since"]), part["reason"])
        for part in outcome.status["unjudged"]
        for partition in part["partitions"]
    ]
    for partition in world.unjudged:
        if partition not in shown:
            yield f"status does not show that {partition} is not judged, but: {shown}"
    for text in world.warnings:
        lines = [line.replace(world.name, "") for line in printed.splitlines() if world.name in line]
        if not any(text.lower() in line.lower() for line in lines):
            yield f"no warning of the run names {world.name} and says {text!r}: {lines}"
    for name, (low, high) in world.figures.items():
        value = outcome.figures[name]
        if value is None or not low <= value <= high:
            yield f"the {name} is {value} instead of {low} to {high}"


def _minute(instant: str) -> str:
    moment = datetime.fromisoformat(instant)
    assert moment.date() == FACTS_FROM.date(), f"{instant} is on another day"
    return moment.strftime("%H:%M")
