"""A world as a picture: log end and commits, facts, bounds and truth of each reader, and verdicts. Draws only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.facts import Facts
from benchmarks.simulation.truth import WindowTruth
from benchmarks.simulation.world import Reader, World
from kafka_sla.model.entities import SlaWindow, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS

_MOST = 6
_COLORS = {"good": "tab:green", "bad": "tab:red", "unknown": "0.6", "excluded": "tab:purple"}
Row = Mapping[str, Any]


def draw(
    path: Path,
    world: World,
    known: Facts,
    rows: Sequence[Row],
    true: Mapping[Any, Mapping[int, WindowTruth]],
    failed: Sequence[Failure],
    judged: Mapping[str, Sequence[SlaWindow]],
) -> None:
    """Two panels for each reader: offsets, and ages with their bounds; windows that fail are red. The verdicts of each
    SLA come last, in bright colours where they are certain."""
    names = {failure.reader for failure in failed}
    readers = sorted(world.readers, key=lambda reader: reader.name not in names)[:_MOST]
    heights = [3, 2] * len(readers) + [0.8]
    figure, axes = plt.subplots(
        len(heights), 1, figsize=(13, sum(heights) + 1), sharex=True, squeeze=False, height_ratios=heights
    )
    for number, reader in enumerate(readers):
        place = (reader.group, reader.partition.topic, reader.partition.number)
        own = [row for row in rows if (row["group"], row["topic"], row["partition"]) == place]
        _offsets(axes[2 * number][0], world, reader, known)
        _ages(axes[2 * number + 1][0], world, own, true[place], [f for f in failed if f.reader == reader.name])
    _verdicts(axes[-1][0], world, judged)
    axes[-1][0].set_xlabel("seconds since the world began to be measured; lines at the ends of windows")
    edge = world.window_ms / 1_000
    axes[-1][0].set_xlim(-1.5 * edge, (world.end - world.start) / 1_000 + 1.5 * edge)
    for (axis,) in axes:
        for window in range(0, world.end - world.start + 1, world.window_ms):
            axis.axvline(window / 1_000, color="0.9", linewidth=0.6, zorder=0)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _verdicts(axis: Any, world: World, judged: Mapping[str, Sequence[SlaWindow]]) -> None:
    for row, windows in enumerate(judged.values()):
        for one in windows:
            left = (epoch_ms(one.window.start) - world.start) / 1_000
            axis.barh(
                row,
                world.window_ms / 1_000,
                left=left,
                align="edge",
                height=0.9,
                color=_COLORS[one.verdict],
                alpha=1.0 if one.is_certain else 0.4,
                label=one.verdict,
            )
    axis.set_yticks([row + 0.45 for row in range(len(judged))], list(judged), fontsize=7)
    axis.legend(*_once(axis), fontsize=7, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))


def _offsets(axis: Any, world: World, reader: Reader, known: Facts) -> None:
    place = {"topic": reader.partition.topic, "partition": reader.partition.number}
    for life in reader.partition.lives:
        ends = np.append(life.appended, min(life.died, max(world.end, *life.appended[-1:].tolist(), 0)))
        axis.step(
            (ends - world.start) / 1_000,
            np.minimum(np.arange(len(ends)) + 1, len(life.appended)),
            where="post",
            color="0.6",
            label="log end (truth)",
        )
        if len(life.moved_at):
            axis.step(
                (life.moved_at - world.start) / 1_000, life.moved_to, where="post", color="0.8", label="log start"
            )
    steps = [(c.at, c.offset) for c in reader.commits if c.offset is not None]
    if steps:
        at, offsets = (np.array(values) for values in zip(*steps, strict=True))
        axis.step((at - world.start) / 1_000, offsets, where="post", color="tab:blue", label="committed (truth)")
    marks = (
        (LOG_OFFSETS, "log_end_offset", "^", "tab:red"),
        (COMMITTED_OFFSETS, "committed_offset", "o", "tab:orange"),
    )
    for table, column, mark, color in marks:
        rows = [r for r in known[table].to_pylist() if all(r[name] == value for name, value in place.items())]
        rows = [r for r in rows if r.get("group", reader.group) == reader.group and r[column] is not None]
        times = [(epoch_ms(r["at"]) - world.start) / 1_000 for r in rows]
        axis.plot(times, [r[column] for r in rows], mark, markersize=4, color=color, label=f"facts: {table.name}")
    _zoom(axis, world, reader)
    axis.set_title(reader.name)
    axis.set_ylabel("offset")
    axis.legend(*_once(axis), fontsize=7)


def _zoom(axis: Any, world: World, reader: Reader) -> None:
    """To the offsets that are there while the world is measured."""
    shown = [c.offset for c in reader.commits if c.offset is not None and world.start <= c.at <= world.end]
    for life in reader.partition.lives:
        if life.born < world.end and life.died > world.start:
            shown += [life.log_end(max(world.start, life.born)), life.log_end(min(world.end, life.died))]
    room = max(2, (max(shown) - min(shown)) // 15)
    axis.set_ylim(min(shown) - room, max(shown) + room)


def _once(axis: Any) -> tuple[list[Any], list[str]]:
    found = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    return list(found.values()), list(found)


def _ages(
    axis: Any, world: World, rows: Sequence[Row], true: Mapping[int, WindowTruth], failed: Sequence[Failure]
) -> None:
    for row in rows:
        start = (epoch_ms(row["window_start"]) - world.start) / 1_000
        middle, low = start + world.window_ms / 2_000, row["backlog_age_max_low_ms"]
        if low is not None:
            high = row["backlog_age_max_high_ms"]
            height, width = ((low if high is None else high) - low) / 1_000, world.window_ms / 2_500
            axis.bar(
                middle, height, width, low / 1_000, color="tab:blue", edgecolor="tab:blue", alpha=0.35, label="bounds"
            )
            if high is None:
                axis.plot(middle, low / 1_000, "^", color="tab:blue", markersize=7, alpha=0.6, label="no high bound")
            axis.plot(middle, row["backlog_age_max_ms"] / 1_000, "_", color="navy", markersize=9, label="estimate")
        happened = true.get(epoch_ms(row["window_start"]))
        if happened and happened.age is not None:
            worst = max(happened.age, int(happened.possible.max(initial=0)))
            axis.plot(middle, worst / 1_000, "x", color="black", markersize=5, label="truth")
    for window in {failure.window for failure in failed}:
        left = (window - world.start) / 1_000
        axis.axvspan(left, left + world.window_ms / 1_000, color="tab:red", alpha=0.15)
    axis.set_ylabel("largest backlog age, s")
    axis.legend(*_once(axis), fontsize=7)
