"""Partitions that an SLA does not judge at present, since when and why. Its state holds for the others only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.text.formatting import moment, plural

STEADY_COLUMNS = ("sla", "group", "topic", "partition", "state", "since", "reason")
"""Columns of `steady_state` that `find_unjudged_partitions` reads."""
LONG = timedelta(days=1)
"""Digests list partitions that have not been judged for longer than this."""
_REASONS = {
    "first_commit": "a new consumer that has not caught up yet",
    "no_position": "the group has never committed an offset there",
    "rewind": "the group went back and has not caught up again",
    "offset_reset": "the group's offset was reset and it has not caught up again",
    "returned": "the group returned after a long absence and has not caught up yet",
    "topic_recreated": "the topic was created again and the group has not caught up yet",
    "contradictory": "positions contradict each other; do two programs use this group?",
}
_MOST_NUMBERS = 8


@dataclass(frozen=True, slots=True)
class UnjudgedPartitions:
    """Partitions of one group and topic that an SLA does not judge for the same reason."""

    sla: str
    group: str
    topic: str
    reason: str
    """A value of `steady_state.reason`, or `contradictory`."""
    partitions: tuple[int, ...]
    since: datetime
    """When the first of them stopped being judged."""

    @property
    def text(self) -> str:
        """For example `payments-3 of billing since 2026-11-28 08:30:00 UTC: the group went back and …`."""
        return f"{_place(self)} since {moment(self.since)}: {_REASONS.get(self.reason, self.reason)}"


def find_unjudged_partitions(steady: pa.Table) -> list[UnjudgedPartitions]:
    """Unjudged partitions by SLA, group, topic and reason.

    Args:
        steady: Rows of `steady_state` of one window, with the columns of `STEADY_COLUMNS`.
    """
    rows = steady.filter(pc.invert(pc.equal(steady["state"], "steady")))
    members: dict[tuple[str, str, str, str], list[tuple[int, datetime]]] = defaultdict(list)
    for row in rows.to_pylist():
        reason = row["reason"] if row["state"] == "bootstrapping" else row["state"]
        members[row["sla"], row["group"], row["topic"], reason].append((row["partition"], row["since"]))
    return [
        UnjudgedPartitions(*key, tuple(sorted(number for number, _ in places)), min(since for _, since in places))
        for key, places in sorted(members.items())
    ]


def summarize_unjudged(parts: Sequence[UnjudgedPartitions]) -> str:
    """One line for lists, such as `2 partitions not judged since 2026-11-28 08:30:00 UTC`; empty if all are judged."""
    if not parts:
        return ""
    count = sum(len(part.partitions) for part in parts)
    return f"{plural(count, 'partition')} not judged since {moment(min(part.since for part in parts))}"


def _place(part: UnjudgedPartitions) -> str:
    numbers = ", ".join(str(number) for number in part.partitions[:_MOST_NUMBERS])
    more = len(part.partitions) - _MOST_NUMBERS
    if len(part.partitions) == 1:
        return f"{part.topic}-{numbers} of {part.group}"
    return f"{part.topic} partitions {numbers}{f' and {more} more' if more > 0 else ''} of {part.group}"
