"""What the variants left, compared with the first one, as Markdown. Knows rows as bytes, no store."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.order_kills import Kills
from benchmarks.order_stage import Seen
from benchmarks.order_worker import STEPS

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """One variant: every published row by table, how often each mail came, what the reader saw, how long it took."""

    title: str
    rows: dict[str, list[bytes]]
    mails: Counter[str]
    """By miss and kind."""
    seen: Seen
    took: timedelta
    more_mails: bool = False
    """It may tell more than one run: what it saw in half of the facts, and told, stays told."""

    @property
    def misses(self) -> Counter[str]:
        """Mailed misses by kind, each once."""
        return Counter(name.rpartition(".")[2] for name in self.mails)

    def differing(self, other: Outcome, table: str) -> list[tuple[bytes, bytes]]:
        """Rows that the other does not have, beside what it has in their place."""
        mine, theirs = set(self.rows[table]), set(other.rows[table])
        lone, other_lone = sorted(mine - theirs), sorted(theirs - mine)
        length = max(len(lone), len(other_lone))
        return [
            ((lone[i] if i < len(lone) else b"-"), (other_lone[i] if i < len(other_lone) else b"-"))
            for i in range(length)
        ]


def complaints(found: Sequence[Outcome]) -> list[str]:
    """What is wrong, in words; nothing when order does not matter."""
    return [text for one in found for text in _complaints(found[0], one)]


def _complaints(first: Outcome, one: Outcome) -> Iterator[str]:
    for table in first.rows:
        for mine, theirs in (differing := one.differing(first, table))[:_SHOWN]:
            yield f"{one.title}: {table}: {len(differing)} rows differ:\n    {mine!r}\n  is in one run\n    {theirs!r}"
    if one.seen.half:
        yield f"{one.title}: the reader saw {one.seen.half} half-visible intervals in {one.seen.polls} polls"
    if one.misses != first.misses and not (one.more_mails and one.misses >= first.misses):
        yield f"{one.title}: mails {dict(one.misses)}, in one run {dict(first.misses)}"


def head() -> str:
    """The titles of `line`."""
    titles = (
        "the day",
        "rows published",
        "SHA-256 of all rows, sorted",
        "polls",
        "of these before publication",
        "half-visible",
        "mails",
        "copies sent again",
        "minutes",
    )
    return "| " + " | ".join(titles) + " |\n| " + " | ".join("---" for _ in titles) + " |"


def line(one: Outcome, first: Outcome) -> str:
    """One variant, beside the first one."""
    same = "" if one is first else ", equal" if one.rows == first.rows else ", **not equal**"
    cells = (
        one.title,
        f"{sum(map(len, one.rows.values())):,}",
        f"`{_digest(one)}`{same}",
        f"{one.seen.polls:,}",
        f"{one.seen.nothing:,}",
        one.seen.half,
        len(one.mails),
        one.mails.total() - len(one.mails),
        f"{one.took.total_seconds() / 60:.0f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def kill_table(kills: Kills) -> str:
    """Where the kills landed."""
    lines = ["", "| killed in | times |", "| --- | --- |"]
    lines += [f"| {step} | {kills.steps[step]} |" for step in STEPS]
    lines += [f"| … publish, {where} | {times} |" for where, times in sorted(kills.inside_publish.items())]
    lines += [f"| … notify, a mail taken but not yet marked as sent | {kills.in_doubt} |"]
    lines += [f"| all | {kills.steps.total()} |"]
    lines += [
        "",
        f"After {kills.whole_again} of them the whole interval was run again, after the others its killed step.",
    ]
    return "\n".join(lines)


def _digest(one: Outcome) -> str:
    whole = hashlib.sha256()
    for table in sorted(one.rows):
        for row in sorted(one.rows[table]):
            whole.update(table.encode() + b"\t" + row + b"\n")
    return whole.hexdigest()[:16]
