"""The verdicts on SLAs from what was published: those of one cluster by one query. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta

from kafka_sla.config.settings import Settings
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval, Sla, SlaWindow
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.pipeline.chain_rows import as_measured
from kafka_sla.pipeline.evidence_reader import ROWS_AT_ONCE, measured
from kafka_sla.pipeline.expiry import unread_rows
from kafka_sla.sla.evaluate import judge_together

_PIECE = timedelta(days=1)
"""Longer intervals are judged piece by piece, because the rows of a piece are held in memory."""
_WINDOWS_AT_ONCE = 100_000
"""So many verdicts are held in memory: of hundreds of SLAs over some minutes, of a few over a month."""


def verdicts(
    settings: Settings, slas: Sequence[Sla], lake: Lake, interval: Interval
) -> Iterator[tuple[Sla, list[SlaWindow] | Exception]]:
    """One verdict per window of the interval on each of these SLAs, a chain's after the others; or why that one cannot
    be judged, which keeps no other from its verdicts."""
    windows = (interval.end - interval.start) // timedelta(milliseconds=settings.window_ms)
    for batch in _batches(slas, windows):
        yield from _of_batch(settings, batch, lake, interval)


def _batches(slas: Sequence[Sla], windows: int) -> Iterator[list[Sla]]:
    """SLAs that can be judged together, of so many windows each: of one cluster, and not too many. A chain is judged
    alone, because its latency is no partition's."""
    by_cluster: dict[str, list[Sla]] = defaultdict(list)
    for sla in slas:
        if not sla.chain:
            by_cluster[sla.cluster].append(sla)
    most = max(1, _WINDOWS_AT_ONCE // max(1, windows))
    for mine in by_cluster.values():
        yield from (mine[first : first + most] for first in range(0, len(mine), most))
    yield from ([sla] for sla in slas if sla.chain)


def _of_batch(
    settings: Settings, batch: Sequence[Sla], lake: Lake, interval: Interval
) -> Iterator[tuple[Sla, list[SlaWindow] | Exception]]:
    """Together; each alone where that fails, to find whose error it is."""
    try:
        found = _judged(settings, batch, lake, interval)
    except Exception as error:
        if len(batch) == 1:
            yield batch[0], error
            return
        for sla in batch:
            yield from _of_batch(settings, [sla], lake, interval)
    else:
        yield from ((sla, found[sla.name]) for sla in batch)


def _judged(settings: Settings, slas: Sequence[Sla], lake: Lake, interval: Interval) -> dict[str, list[SlaWindow]]:
    found: dict[str, list[SlaWindow]] = defaultdict(list)
    for piece in _pieces(settings, slas[0].cluster, lake, interval):
        for name, windows in _of_piece(settings, slas, lake, piece).items():
            found[name] += windows
    return found


def _pieces(settings: Settings, cluster: str, lake: Lake, interval: Interval) -> Iterator[Interval]:
    """No verdict depends on where an interval begins."""
    for day in interval.pieces(_PIECE):
        yield from lake.in_pieces(CONSUMER_LATENCY, day, cluster, settings.window_ms, ROWS_AT_ONCE)


def _of_piece(settings: Settings, slas: Sequence[Sla], lake: Lake, piece: Interval) -> dict[str, tuple[SlaWindow, ...]]:
    first = slas[0]
    latency, steady = measured(first, lake, piece)
    unread = unread_rows(slas, lake, piece)
    if first.chain:
        latency, steady = as_measured(first, lake, piece, steady)
    return judge_together(slas, piece, settings.window_ms, latency, steady, unread=unread)
