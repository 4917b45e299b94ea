"""Are as many records due and late in each window as plain loops over the world count? Knows rows of `steady_state`."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.exact import plain
from benchmarks.simulation.facts import Facts
from benchmarks.simulation.kernel import Made
from benchmarks.simulation.seeing import Plan
from benchmarks.simulation.visibility import Visibility
from benchmarks.simulation.world import Ints, Reader, World
from kafka_sla.model.entities import Sla, epoch_ms
from kafka_sla.model.tables import LOG_OFFSETS, STEADY_STATE

Row = Mapping[str, Any]
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class _Counts:
    due: int
    late: int


def late_records(
    world: World, plan: Plan, slas: Sequence[Sla], seen: Mapping[Key, Visibility], known: Facts, whole: Made
) -> Iterator[Failure]:
    """Rows of `steady_state` whose bounds exclude the late records of the world, and rows of exact facts that do not
    equal them."""
    by_name = {sla.name: sla for sla in slas}
    points = _log_end_times(known)
    for row in whole[STEADY_STATE].to_pylist():
        visible = seen[row["group"], row["topic"], row["partition"]]
        start, end, sla = epoch_ms(row["window_start"]), epoch_ms(row["window_end"]), by_name[row["sla"]]
        of_log = points[row["topic"], row["partition"]]
        if not _is_comparable(visible, start, end) or not all(
            _is_known(of_log, at, sla.max_latency_ms) for at in (start, end)
        ):
            continue
        true = _count(visible.reader, start, end, sla)
        made = tuple(row[f"records_{name}"] for name in ("due", "late", "late_low", "late_high"))
        figure = f"records_late, {row['sla']}"
        if not row["records_late_low"] <= true.late <= row["records_late_high"]:
            yield Failure("truth in bounds", figure, visible.reader.name, start, str(true), str(made))
        if plain(world, plan, visible) and made != (true.due, true.late, true.late, true.late):
            yield Failure("exact facts give exact figures", figure, visible.reader.name, start, str(true), str(made))


def _is_comparable(visible: Visibility, start: int, end: int) -> bool:
    """Clocks agree, the topic has one life and is not compacted, and the group had a position all the time."""
    partition = visible.reader.partition
    life = partition.lives[0]
    if len(partition.lives) > 1 or life.compacts or visible.skew_ms or visible.voids or visible.hidden(start, end):
        return False
    if life.marker.any() and len(
        life.moved_at
    ):  # retention may remove offsets before a snapshot sees which are markers
        return False
    before = visible.reader.standing(start)
    inside = [commit.offset for commit in visible.reader.commits if start <= commit.at < end]
    return before is not None and None not in (before.offset, *inside)


def _is_known(of_log: Sequence[int], at: int, threshold: int) -> bool:
    """A log end was observed between the produced time of what is due at that instant and the instant itself."""
    index = bisect_right(of_log, at)
    return bool(index) and of_log[index - 1] >= at - threshold


def _log_end_times(known: Facts) -> dict[tuple[str, int], list[int]]:
    found = defaultdict(list)
    for row in known[LOG_OFFSETS].to_pylist():
        found[row["topic"], row["partition"]].append(epoch_ms(row["at"]))
    return defaultdict(list, {place: sorted(times) for place, times in found.items()})


def _count(reader: Reader, start: int, end: int, sla: Sla) -> _Counts:
    """Records due in [start, end), and those that the position at that moment had not passed, less those that may
    wait."""
    life = reader.partition.lives[0]
    due = life.stamp + sla.max_latency_ms
    offsets: Ints = np.flatnonzero(life.record & (due >= start) & (due < end))
    times = np.array([commit.at for commit in reader.commits])
    positions = np.array([commit.offset or 0 for commit in reader.commits])
    at_due = positions[np.searchsorted(times, due[offsets], side="right") - 1]
    return _Counts(len(offsets), int((at_due + sla.allowed_lag <= offsets).sum()))
