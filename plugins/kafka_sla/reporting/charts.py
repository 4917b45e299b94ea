"""Pictures of an SLA as PNG bytes, drawn by matplotlib without global state."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from kafka_sla.model.entities import Interval, Miss, Sla, SlaWindow
from kafka_sla.sla.wording import limits
from kafka_sla.text.formatting import span

MAX_POINTS = 1_500
"""Windows drawn one by one; beyond it neighbours are drawn as the worst of them."""
STEEP = 10
"""Worst latency over the threshold from which the scale is logarithmic above it, so that both can be seen."""
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    *(n * 10**power for power in range(3) for n in (1, 2, 5)),
    *(n * unit for unit in (_SECOND, _MINUTE) for n in (1, 2, 5, 10, 30)),
    *(n * _HOUR for n in (1, 2, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 30, 90, 365)),
)
_numbers: Callable[[Sequence[datetime]], Sequence[float]] = date2num
_DASHES = (0, (5, 3))
_NOTHING = (float("nan"),) * 3
_HATCHES = {"excluded": ("excluded", "/////"), "unknown": ("no data", "xxxxx")}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a picture."""

    paper: str
    line: str
    band: str
    threshold: str
    miss: str
    ink: str
    grid: str
    spine: str
    excluded: tuple[str, str]
    unknown: tuple[str, str]


LIGHT = Palette(
    "#ffffff",
    "#1f4e79",
    "#9dc3e6",
    "#b3261e",
    "#f2b8b5",
    "#3c4043",
    "#e3e6ea",
    "#9aa0a6",
    ("#eef0f3", "#b6bcc4"),
    ("#ffffff", "#c9a227"),
)
DARK = Palette(
    "#212428",
    "#9cc8f5",
    "#3f6790",
    "#ff8f86",
    "#6b302c",
    "#d5dae0",
    "#383d43",
    "#6e7781",
    ("#2b2f34", "#59616a"),
    ("#212428", "#8a6d12"),
)


PALETTES = {"light": LIGHT, "dark": DARK}
"""By the name that mails and pages give the screens they are for."""
_LEVEL_DASHES: tuple[Any, ...] = ((0, (1, 2)), _DASHES, "solid")
"""Lines of proposed thresholds, the smallest first."""


def latency_plot(
    sla: Sla,
    windows: Sequence[SlaWindow],
    misses: Sequence[Miss] = (),
    *,
    size: tuple[float, float] = (8.0, 3.0),
    palette: Palette = LIGHT,
) -> bytes:
    """The worst latency of each window with its bounds, the threshold of its time, misses and gaps shaded.

    `size` in inches at 160 dots each: the default is 1280 x 480, sharp when shown at half of it.
    """
    windows = sorted(windows, key=lambda w: w.window)
    if not windows:
        raise ValueError(f"no windows of SLA {sla.name!r} to draw")
    figure = Figure(figsize=size, dpi=160, layout="constrained", facecolor=palette.paper)
    axes = figure.add_subplot(facecolor=palette.paper)
    _shade(axes, windows, misses, palette)
    _draw(axes, _thinned(windows), palette)
    _label(axes, windows, palette)
    _legend(figure, sla, windows, misses, palette)
    return _png(figure)


def latency_plots(
    sla: Sla, windows: Sequence[SlaWindow], misses: Sequence[Miss] = (), *, size: tuple[float, float] = (8.0, 3.0)
) -> dict[str, bytes]:
    """`latency_plot` once for each of `PALETTES`, by name; nothing where there are no windows."""
    if not windows:
        return {}
    return {name: latency_plot(sla, windows, misses, size=size, palette=each) for name, each in PALETTES.items()}


def proposal_plot(
    title: str, windows: Sequence[SlaWindow], proposed_ms: Mapping[str, int], palette: Palette = LIGHT
) -> bytes:
    """The worst latency of each window with its bounds, and the thresholds that are proposed, by their labels."""
    windows = sorted(windows, key=lambda w: w.window)
    figure = Figure(figsize=(8.0, 3.2), dpi=160, layout="constrained", facecolor=palette.paper)
    axes = figure.add_subplot(facecolor=palette.paper)
    axes.set_title(title, color=palette.ink, fontsize=9, loc="left", parse_math=False)
    _shade(axes, windows, (), palette)
    thresholds = sorted(map(float, proposed_ms.values()))
    _scale(axes, thresholds, max([thresholds[-1], *(w.worst_latency_ms or 0.0 for w in windows)]))
    _draw_latency(axes, _thinned(windows), palette)
    handles: list[Line2D | Patch] = []
    for (label, ms), dashes in zip(proposed_ms.items(), _LEVEL_DASHES, strict=True):
        axes.axhline(ms, color=palette.threshold, lw=1.3, ls=dashes, zorder=3)
        handles.append(Line2D([], [], color=palette.threshold, lw=1.3, ls=dashes, label=f"{label} {span(ms)}"))
    _label(axes, windows, palette)
    _legend_of(figure, [*handles, *_shown(windows, palette)], palette)
    return _png(figure)


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return picture.getvalue()


def _draw(axes: Axes, windows: Sequence[SlaWindow], palette: Palette) -> None:
    thresholds = sorted({float(w.max_latency_ms) for w in windows})
    _scale(axes, thresholds, max([thresholds[-1], *(w.worst_latency_ms or 0.0 for w in windows)]))
    _draw_latency(axes, windows, palette)
    at = _numbers([*(w.window.start for w in windows), windows[-1].window.end])
    applied = [w.max_latency_ms for w in [*windows, windows[-1]]]
    axes.plot(at, applied, drawstyle="steps-post", color=palette.threshold, lw=1.3, ls=_DASHES, zorder=3)


def _draw_latency(axes: Axes, windows: Sequence[SlaWindow], palette: Palette) -> None:
    top = axes.get_ylim()[1]
    edges: list[datetime] = []
    values: list[tuple[float, float, float]] = []
    for before, window in pairwise([windows[0], *windows]):
        if before.window.end < window.window.start:  # never judged: a gap, not a line
            edges.append(before.window.end)
            values.append(_NOTHING)
        edges.append(window.window.start)
        values.append(_heights(window, top))
    middle, low, high = zip(*values, values[-1], strict=True)
    at = _numbers([*edges, windows[-1].window.end])
    axes.fill_between(at, low, high, step="post", color=palette.band, alpha=0.75, linewidth=0, zorder=2)
    axes.plot(at, middle, drawstyle="steps-post", color=palette.line, linewidth=1.6, zorder=4, solid_joinstyle="round")


def _scale(axes: Axes, thresholds: Sequence[float], worst: float) -> None:
    """Ticks at durations that people use."""
    if worst > STEEP * thresholds[0]:
        axes.set_yscale("symlog", linthresh=thresholds[0], linscale=0.6)
        above = [step for step in _STEPS_MS if 1.5 * thresholds[-1] < step <= 1.3 * worst]
        ticks = [0.0, *thresholds, *above[:: max(1, -(-len(above) // 6))]]
        axes.set_ylim(0, 1.5 * worst)
    else:
        step = next(step for step in _STEPS_MS if worst / step <= 6 or step == _STEPS_MS[-1])
        ticks = [n * step for n in range(int(1.15 * worst / step) + 1)]
        axes.set_ylim(0, 1.15 * worst)
    axes.set_yticks(ticks, [span(tick) if tick else "0" for tick in ticks], minor=False)
    axes.set_yticks([], minor=True)


def _heights(window: SlaWindow, top: float) -> tuple[float, float, float]:
    """Worst latency, low and high bound; an unbounded one reaches the top."""
    worst = window.worst_latency_ms
    if worst is None:
        return _NOTHING
    low = worst if window.worst_latency_low_ms is None else window.worst_latency_low_ms
    return worst, low, top if window.worst_latency_high_ms is None else window.worst_latency_high_ms


def _thinned(windows: Sequence[SlaWindow]) -> list[SlaWindow]:
    step = -(-len(windows) // MAX_POINTS)
    return [_worst_of(windows[i : i + step]) for i in range(0, len(windows), step)]


def _worst_of(group: Sequence[SlaWindow]) -> SlaWindow:
    """One window in the place of its neighbours."""
    worst = max(group, key=lambda w: -1.0 if w.worst_latency_ms is None else w.worst_latency_ms)
    return replace(worst, window=Interval(group[0].window.start, group[-1].window.end))


def _shade(axes: Axes, windows: Sequence[SlaWindow], misses: Sequence[Miss], palette: Palette) -> None:
    """Over the whole height: misses red, excluded and unknown time hatched."""
    first, last = windows[0].window.start, windows[-1].window.end
    late = [(max(m.start, first), min(m.end or last, last)) for m in misses]
    _bars(axes, [(start, end) for start, end in late if start < end], palette.miss, palette.miss, "")
    for verdict, (_, hatch) in _HATCHES.items():
        face, edge = getattr(palette, verdict)
        spans = ((w.window.start, w.window.end) for w in windows if w.verdict == verdict)
        _bars(axes, _merged(spans), face, edge, hatch)


def _bars(axes: Axes, spans: Iterable[tuple[datetime, datetime]], face: str, edge: str, hatch: str) -> None:
    bars = [(start, end - start) for start, end in map(_numbers, spans)]
    if bars:
        axes.broken_barh(
            bars,
            (0, 1),
            transform=axes.get_xaxis_transform(),
            facecolor=face,
            edgecolor=edge,
            hatch=hatch,
            linewidth=0,
            alpha=0.75,
            zorder=1,
        )


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Neighbouring spans as one."""
    found: list[tuple[datetime, datetime]] = []
    for start, end in spans:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _label(axes: Axes, windows: Sequence[SlaWindow], palette: Palette) -> None:
    shown = Interval(windows[0].window.start, windows[-1].window.end)
    axes.set_xlim(*_numbers([shown.start, shown.end]))
    locator = AutoDateLocator(tz=UTC, minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(
        locator,
        tz=UTC,
        show_offset=False,
        formats=["%Y", "%b %Y", "%-d %b", "%H:%M", "%H:%M", "%S s"],
        zero_formats=["", "%Y", "%b %Y", "%-d %b", "%H:%M", "%H:%M"],
    )  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)
    last = shown.end - timedelta(microseconds=1)
    days = f"{shown.start:%Y-%m-%d}" + ("" if last.date() == shown.start.date() else f" to {last:%Y-%m-%d}")
    axes.set_xlabel(f"{days}, UTC", color=palette.ink, fontsize=9)
    axes.set_ylabel("worst latency", color=palette.ink, fontsize=9)
    axes.grid(color=palette.grid, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(colors=palette.ink, labelsize=8.5, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.spine)


def _legend(figure: Figure, sla: Sla, windows: Sequence[SlaWindow], misses: Sequence[Miss], palette: Palette) -> None:
    """Only what the picture shows."""
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=palette.threshold, ls=_DASHES, lw=1.3, label=f"threshold {limits(windows, sla)}")
    ]
    handles += _shown(windows, palette, misses)
    _legend_of(figure, handles, palette)


def _shown(windows: Sequence[SlaWindow], palette: Palette, misses: Sequence[Miss] = ()) -> list[Line2D | Patch]:
    """What of the latency, misses and gaps there is."""
    handles: list[Line2D | Patch] = []
    if any(w.worst_latency_ms is not None for w in windows):
        handles += [
            Line2D([], [], color=palette.line, linewidth=1.6, label="worst latency"),
            Patch(facecolor=palette.band, alpha=0.75, label="its bounds"),
        ]
    if misses:
        handles.append(Patch(facecolor=palette.miss, alpha=0.75, label="miss"))
    seen = {w.verdict for w in windows}
    faces = {verdict: getattr(palette, verdict) for verdict in _HATCHES}
    handles += [
        Patch(facecolor=faces[verdict][0], edgecolor=faces[verdict][1], hatch=hatch, linewidth=0, label=label)
        for verdict, (label, hatch) in _HATCHES.items()
        if verdict in seen
    ]
    return handles


def _legend_of(figure: Figure, handles: Sequence[Line2D | Patch], palette: Palette) -> None:
    columns = len(handles) if figure.get_figwidth() >= 7 else 3
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=columns,
        fontsize=8,
        frameon=False,
        labelcolor=palette.ink,
        handlelength=1.6,
        columnspacing=1.2,
        borderaxespad=0.2,
    )
