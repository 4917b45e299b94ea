"""A world as a picture: log end and commits, facts, bounds and truth of each reader. Draws only."""

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
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS

_MOST = 6
Row = Mapping[str, Any]


def draw(
    path: Path, world: World, known: Facts, rows: Sequence[Row], true: Mapping[Any, Mapping[int, WindowTruth]],
    failed: Sequence[Failure],
) -> None:  # fmt: skip
    """Two panels for each reader: offsets, and ages with their bounds; windows that fail are red."""
    names = {failure.reader for failure in failed}
    readers = sorted(world.readers, key=lambda reader: reader.name not in names)[:_MOST]
    figure, axes = plt.subplots(2 * len(readers), 1, figsize=(13, 5 * len(readers)), sharex=True, squeeze=False)
    for number, reader in enumerate(readers):
        place = (reader.group, reader.partition.topic, reader.partition.number)
        own = [row for row in rows if (row["group"], row["topic"], row["partition"]) == place]
        _offsets(axes[2 * number][0], world, reader, known)
        _ages(axes[2 * number + 1][0], world, own, true[place], [f for f in failed if f.reader == reader.name])
    axes[-1][0].set_xlabel("seconds since the world began to be measured")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _offsets(axis: Any, world: World, reader: Reader, known: Facts) -> None:
    place = {"topic": reader.partition.topic, "partition": reader.partition.number}
    for life in reader.partition.lives:
        ends = np.append(life.appended, min(life.died, max(world.end, *life.appended[-1:].tolist(), 0)))
        axis.step((ends - world.start) / 1_000, np.minimum(np.arange(len(ends)) + 1, len(life.appended)), where="post",
                  color="0.6", label="log end (truth)")  # fmt: skip
        if len(life.moved_at):
            axis.step(
                (life.moved_at - world.start) / 1_000, life.moved_to, where="post", color="0.8", label="log start"
            )
    steps = [(c.at, c.offset) for c in reader.commits if c.offset is not None]
    if steps:
        at, offsets = (np.array(values) for values in zip(*steps, strict=True))
        axis.step((at - world.start) / 1_000, offsets, where="post", color="tab:blue", label="committed (truth)")
    for table, column, mark in ((LOG_OFFSETS, "log_end_offset", "^"), (COMMITTED_OFFSETS, "committed_offset", "o")):
        rows = [r for r in known[table].to_pylist() if all(r[name] == value for name, value in place.items())]
        rows = [r for r in rows if r.get("group", reader.group) == reader.group and r[column] is not None]
        times = [(epoch_ms(r["at"]) - world.start) / 1_000 for r in rows]
        axis.plot(times, [r[column] for r in rows], mark, markersize=3, alpha=0.6, label=f"facts: {table.name}")
    axis.set_title(reader.name)
    axis.set_ylabel("offset")
    axis.legend(*_once(axis), fontsize=7)


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
            upper = low + 60_000 if high is None else high
            axis.plot([middle, middle], [low / 1_000, upper / 1_000], color="tab:blue", linewidth=4,
                      alpha=0.4, linestyle="-" if high is not None else ":", label="bounds")  # fmt: skip
            axis.plot(middle, row["backlog_age_max_ms"] / 1_000, "_", color="tab:blue", label="estimate")
        happened = true.get(epoch_ms(row["window_start"]))
        if happened and happened.age is not None:
            worst = max(happened.age, int(happened.possible.max(initial=0)))
            axis.plot(middle, worst / 1_000, "x", color="black", markersize=5, label="truth")
    for window in {failure.window for failure in failed}:
        left = (window - world.start) / 1_000
        axis.axvspan(left, left + world.window_ms / 1_000, color="tab:red", alpha=0.15)
    axis.set_ylabel("largest backlog age, s")
    axis.legend(*_once(axis), fontsize=7)
