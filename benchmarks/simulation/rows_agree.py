"""Do the tables of one world agree with themselves and with plain loops? Knows rows, world and facts."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.burrow import Stored, status
from benchmarks.simulation.facts import Facts
from benchmarks.simulation.kernel import Made
from benchmarks.simulation.seeing import Plan, edges
from benchmarks.simulation.visibility import skew_of
from benchmarks.simulation.world import World
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_STATUS,
    LOG_OFFSETS,
    NON_CONSUMED,
    Table,
)

Row = Mapping[str, Any]
_COMMITS = 10
_CLOCK_TOLERANCE_MS = 10_000
"""Timestamps that are further off are not all trusted, so that other log ends are known."""
_EXPIRE_MS = 7 * 86_400_000


def same(one: Made, other: Made, how: str) -> Iterator[Failure]:
    """The same rows, whatever the run."""
    for table in sorted({*one, *other}, key=lambda table: table.name):
        a, b = one.get(table), other.get(table)
        if a is None or b is None or not a.equals(b):
            yield from _difference(table, a, b, how)


def _difference(table: Table, a: pa.Table | None, b: pa.Table | None, how: str) -> Iterator[Failure]:
    """The first row that differs; none where only schemas do."""
    left, right = (_by_key(table, rows) for rows in (a, b))
    for key in sorted({*left, *right}, key=str):
        x, y = left.get(key, {}), right.get(key, {})
        if x != y:
            names = [name for name in table.names if x.get(name) != y.get(name)]
            values = [", ".join(f"{n}={row.get(n)}" for n in names[:3]) for row in (x, y)]
            start = epoch_ms((x or y)["window_start"])
            yield Failure(f"the same rows {how}", f"{table.name}.{names[0]}", str(key[:-1]), start, *values)
            return


def _by_key(table: Table, rows: pa.Table | None) -> dict[tuple[Any, ...], Row]:
    listed = rows.to_pylist() if rows is not None else []
    return {tuple(row[name] for name in table.key): row for row in listed}


def statuses(world: World, plan: Plan, known: Facts, whole: Made) -> Iterator[Failure]:
    """`consumer_status` against Burrow's rules over the commits of the facts, where the commit log has them all, of
    topics that were not created again: Burrow does not tell their lives apart."""
    if not plan.commit_log or plan.compacted_until or CONSUMER_STATUS not in whole:
        return
    ends = _log_ends(known)
    lives = {(p.topic, p.number): len(p.lives) for p in world.partitions}
    contradicted = {(p.topic, p.number) for p in world.partitions if skew_of(p) > _CLOCK_TOLERANCE_MS}
    commits = _commits(known)
    for row in whole[CONSUMER_STATUS].to_pylist():
        place, now = (row["topic"], row["partition"]), epoch_ms(row["window_end"])
        stored = _stored(commits[row["group"], *place], ends[place], now)
        if stored is None or row["polled_only"] or lives[place] > 1 or place in contradicted:
            continue
        expected = status(stored, now, _newest(ends[place], now), _EXPIRE_MS)
        if row["status"] != expected:
            yield Failure(
                "Burrow's rules",
                "status",
                f"{row['group']} in {place[0]}-{place[1]}",
                epoch_ms(row["window_start"]),
                expected,
                f"{row['status']}: {row['reason']}",
            )


def _log_ends(known: Facts) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Largest log end known so far, at every instant at which one is known: log ends do not fall."""
    found = defaultdict(list)
    for row in known[LOG_OFFSETS].to_pylist():
        found[row["topic"], row["partition"]].append((epoch_ms(row["at"]), row["log_end_offset"]))
    largest: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for place, ends in found.items():
        ends.sort()
        largest[place] = list(zip([at for at, _ in ends], accumulate((end for _, end in ends), max), strict=True))
    return largest


def _newest(ends: Sequence[tuple[int, int]], at: int) -> int | None:
    index = bisect_right(ends, (at, 2**62))
    return ends[index - 1][1] if index else None


def _commits(known: Facts) -> dict[tuple[str, str, int], list[tuple[int, int | None]]]:
    found: dict[tuple[str, str, int], list[tuple[int, int | None]]] = defaultdict(list)
    for row in known[COMMITTED_OFFSETS].to_pylist():
        if row["source"] not in ("snapshot", "files.import"):
            found[row["group"], row["topic"], row["partition"]].append((epoch_ms(row["at"]), row["committed_offset"]))
    return found


def _stored(commits: list[tuple[int, int | None]], ends: Sequence[tuple[int, int]], now: int) -> list[Stored] | None:
    """The last commits before `now` since the offset was deleted; None without any."""
    found: list[Stored] = []
    for at, offset in sorted(commits, key=lambda one: one[0]):
        if at >= now:
            break
        if offset is None:
            found = []
            continue
        end = _newest(ends, at)
        found.append(Stored(at, offset, None if end is None else max(0, end - offset)))
    return found[-_COMMITS:] or None


def losses(world: World, plan: Plan, whole: Made) -> Iterator[Failure]:
    """What was removed unread lies within its bounds, from the first poll with a position on."""
    if NON_CONSUMED not in whole or not plan.commit_log or plan.compacted_until:
        return
    readers = {(r.group, r.partition.topic, r.partition.number): r for r in world.readers}
    polls = sorted({*plan.points, *(run.asked for run in plan.runs if run.live)})
    if plan.exact:
        polls = sorted({*polls, *edges(world)})
    for row in whole[NON_CONSUMED].to_pylist():
        reader = readers[row["group"], row["topic"], row["partition"]]
        start, end = epoch_ms(row["window_start"]), epoch_ms(row["window_end"])
        inside = [n for n, at in enumerate(polls) if start < at <= end and n]
        if row["non_consumed_low"] is None or len(reader.partition.lives) > 1 or not inside:
            continue
        true = sum(_lost(reader, polls[n - 1], polls[n]) for n in inside)
        if not row["non_consumed_low"] <= true <= row["non_consumed_high"]:
            bounds = f"{row['non_consumed_low']} to {row['non_consumed_high']}"
            yield Failure("loss in bounds", "non_consumed", reader.name, start, str(true), bounds)


def _lost(reader: Any, after: int, until: int) -> int:
    """Offsets at or above the position that the log start passed in (after, until]; none before the first position."""
    life, lost = reader.partition.lives[0], 0
    for at, to in zip(life.moved_at.tolist(), life.moved_to.tolist(), strict=True):
        if after < at <= until:
            standing = reader.standing(at)
            if standing is None or standing.offset is None:
                continue
            lost += max(0, to - max(life.log_start(at - 1), standing.offset))
    return lost
