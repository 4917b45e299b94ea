"""Where every record's time and every commit is known, figures are not bounded but equal to what a plain loop gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.simulation import truth
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.kernel import Made
from benchmarks.simulation.seeing import Plan
from benchmarks.simulation.sight import Sight
from benchmarks.simulation.world import NEVER, Reader, World
from kafka_sla.model.entities import Sla, epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE

_OFF_MS = 0.6
"""Estimates are of the middle of a record: half a ms and rounding."""


def plain(world: World, plan: Plan, sight: Sight) -> bool:
    """Nothing about this reader is left to guess."""
    life = sight.reader.partition.lives[0]
    simple = len(sight.reader.partition.lives) == 1 and sight.skew_ms == 0 and not life.compacts
    known = plan.exact and plan.commit_log and not plan.compacted_until
    return bool(known and simple and not len(life.moved_at) and life.record.all())


def equal(world: World, slas: tuple[Sla, ...], sight: Sight, whole: Made) -> Iterator[Failure]:
    """Figures, records over the threshold and steady states of a reader by plain loops."""
    reader = sight.reader
    rows = [row for row in whole[CONSUMER_LATENCY].to_pylist() if _of(reader, row)]
    true = truth.windows(reader, world.start, world.end, world.window_ms)
    for row in rows:
        start = epoch_ms(row["window_start"])
        yield from _figures(reader, start, row, true[start])
    states = [row for row in whole[STEADY_STATE].to_pylist() if _of(reader, row)]
    for sla in slas:
        lives = list(_lives(reader, sla))
        for row in (row for row in states if row["sla"] == sla.name):
            yield from _state(reader, sla, row, lives, true)


def _of(reader: Reader, row: Mapping[str, Any]) -> bool:
    place = (reader.group, reader.partition.topic, reader.partition.number)
    return (row["group"], row["topic"], row["partition"]) == place


def _figures(reader: Reader, start: int, row: Mapping[str, Any], true: truth.WindowTruth) -> Iterator[Failure]:
    expected: dict[str, float | None] = {"records_consumed": len(true.latencies)}
    if len(true.latencies):
        expected |= {"records_latency_max_ms": int(true.latencies.max()), "records_latency_ms": int(true.latencies[-1]),
                     "records_latency_avg_ms": float(true.latencies.mean())}  # fmt: skip
    if row["unknown_reason"] is None and true.age is not None:
        expected["backlog_age_ms"] = true.age
        life = reader.partition.lives[0]
        end = epoch_ms(row["window_end"])
        position = reader.standing(end)
        if position and position.offset is not None:
            expected["records_lag"] = max(0, life.log_end(end) - position.offset)
    for name, value in expected.items():
        made = row[name]
        if made is None or value is None or abs(made - value) > (_OFF_MS if name.endswith("_ms") else 0):
            yield Failure("exact facts give exact figures", name, reader.name, start, str(value), str(made))


def _lives(reader: Reader, sla: Sla) -> Iterator[tuple[int, str, int]]:
    """Of each bootstrapping: when it began, why, and from when on it was steady."""
    life = reader.partition.lives[0]
    began: tuple[int, str, int] | None = None
    before = None
    for commit in reader.commits:
        event = _event(before, commit, sla)
        if event:
            if began:
                yield began
            grace_period = sla.steady_state.grace_period_ms
            began = (commit.at, event, NEVER if grace_period is None else commit.at + grace_period)
        if began and commit.offset is not None:
            waiting = life.waiting(commit.offset, commit.at)
            age = 0 if waiting is None else commit.at - int(life.stamp[waiting])
            if age <= sla.steady_state.caught_up_within_ms:
                began = (began[0], began[1], min(began[2], commit.at))
        before = commit
    if began:
        yield began


def _event(before: Any, commit: Any, sla: Sla) -> str:
    if before is None:
        return "first_commit"
    if before.offset is None:
        return "offset_reset"
    if commit.at - before.at > sla.steady_state.expire_group_ms:
        return "returned"
    if commit.offset is not None and commit.offset < before.offset:
        return "rewind"
    return ""


def _state(
    reader: Reader, sla: Sla, row: Mapping[str, Any], lives: list[tuple[int, str, int]],
    true: Mapping[int, truth.WindowTruth],
) -> Iterator[Failure]:  # fmt: skip
    start, end = epoch_ms(row["window_start"]), epoch_ms(row["window_end"])
    _, _, steady = next(life for life in reversed(lives) if life[0] < end)
    expected = ("steady" if steady < end else "bootstrapping", steady <= start)
    if (row["state"], row["steady_whole_window"]) != expected:
        yield Failure("steady states by a plain loop", f"state, {sla.name}", reader.name, start, str(expected),
                      str((row["state"], row["steady_whole_window"], row["reason"])))  # fmt: skip
    over = int((true[start].latencies > sla.max_latency_ms).sum())
    if (
        row["records_over_threshold"] != over
        and not np.isclose(true[start].latencies, sla.max_latency_ms, atol=1).any()
    ):
        yield Failure("exact facts give exact figures", f"records_over_threshold, {sla.name}", reader.name, start, str(over),
                      str(row["records_over_threshold"]))  # fmt: skip
