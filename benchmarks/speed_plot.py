"""Plots of the speed benchmarks. Knows lines, not what they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]


def plot(path: Path, across: str, up: str, lines: Sequence[Line], *, logarithmic: bool = False) -> None:
    """Lines through measured points, from zero upwards; `logarithmic`: along the x axis."""
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for line in lines:
        axes.plot([x for x, _ in line.points], [y for _, y in line.points], marker="o", label=line.name)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    if logarithmic:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
