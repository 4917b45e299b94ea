"""One SLA over time as columns: quantiles, worst latency with bounds, verdicts, rates. Reads nothing, draws nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kafka_sla.model.entities import Miss, Sla
from kafka_sla.model.tables import LATENCY_BUCKET_GAMMA
from kafka_sla.sla.rollups import Rollup
from kafka_sla.web.queries.schemas import MissAnswer, Timeline
from kafka_sla.web.queries.series import Counts, Pieces

QUANTILES = (0.5, 0.95, 0.99)
Floats = NDArray[np.float64]


def timeline(
    drawn: Pieces, misses: Sequence[Miss] = (), incidents: Mapping[str, str] = MappingProxyType({})
) -> Timeline:
    """The columns of the pieces, and the misses that overlap them; `incidents` by id of the miss."""
    p50, p95, p99 = _quantiles([piece.histogram() for piece in drawn.found], drawn.indexes, len(drawn.steps))
    worst, low, high = (_listed(column) for column in _worst(drawn))
    good, bad, excluded, unknown = (_shares(drawn, name) for name in ("good_ms", "bad_ms", "excluded_ms", "unknown_ms"))
    return Timeline(
        sla=drawn.sla.name,
        start=drawn.interval.start,
        end=drawn.interval.end,
        step_ms=drawn.step_ms,
        resolution=drawn.resolution,
        objective=drawn.sla.objective,
        at_ms=drawn.steps,
        threshold_ms=drawn.thresholds,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        worst_latency_ms=worst,
        worst_latency_low_ms=low,
        worst_latency_high_ms=high,
        good=good,
        bad=bad,
        excluded=excluded,
        unknown=unknown,
        consumed_per_s=_rates(drawn, lambda s: s.measured.records_consumed),
        produced_per_s=_rates(drawn, lambda s: s.measured.records_produced),
        misses=[answer(drawn.sla, miss, incidents.get(miss.id)) for miss in misses],
    )


def answer(sla: Sla | None, miss: Miss, incident: str | None) -> MissAnswer:
    """A miss as the API tells it; an SLA that has left the configuration has no team any more."""
    return MissAnswer(
        id=miss.id,
        sla=miss.sla,
        cluster=miss.cluster,
        team=sla.team if sla else "",
        start=miss.start,
        end=miss.end,
        state=miss.state,
        end_reason=miss.end_reason,
        bad_windows=miss.bad_windows,
        is_certain=miss.is_certain,
        worst_latency_ms=miss.worst_latency_ms,
        worst_latency_low_ms=miss.worst_latency_low_ms,
        worst_latency_high_ms=miss.worst_latency_high_ms,
        worst_at=miss.worst_at,
        worst_group=miss.worst_group,
        worst_topic=miss.worst_topic,
        worst_partition=miss.worst_partition,
        max_latency_ms=miss.max_latency_ms,
        min_time_to_expiry_ms=miss.min_time_to_expiry_ms,
        for_ms=miss.for_ms,
        evidence=miss.evidence,
        exclusion=miss.exclusion,
        incident=incident,
    )


def percentiles(histograms: Sequence[Counts]) -> list[list[float | None]]:
    """A column for each of `QUANTILES`, with a value for each of these histograms."""
    return _quantiles(histograms, np.arange(len(histograms)), len(histograms))


def _quantiles(histograms: Sequence[Counts], indexes: NDArray[np.int64], steps: int) -> list[list[float | None]]:
    """The middle of the bucket that each quantile falls into; null for a step without records."""
    width = 1 + max((int(buckets.max()) for buckets, _ in histograms if len(buckets)), default=0)
    cells = [step * width + buckets for step, (buckets, _) in zip(indexes, histograms, strict=True)]
    counts = [counts for _, counts in histograms]
    flat = np.bincount(_joined(cells), _joined(counts).astype(np.float64), minlength=steps * width)
    sums = np.cumsum(flat.reshape(steps, width), axis=1, dtype=np.float64)
    return [_listed(_quantile(sums, share)) for share in QUANTILES]


def _quantile(sums: Floats, share: float) -> Floats:
    total = sums[:, -1]
    bucket = np.argmax(sums >= share * total[:, None], axis=1)
    middle = 2 * np.power(LATENCY_BUCKET_GAMMA, bucket.astype(np.float64)) / (LATENCY_BUCKET_GAMMA + 1)
    return np.where(total > 0, middle, np.nan)


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _worst(drawn: Pieces) -> tuple[Floats, Floats, Floats]:
    """Worst latency, its low bound, its high bound (NaN where unbounded)."""
    known = [(step, p.rollup) for step, p in zip(drawn.indexes, drawn.found, strict=True) if p.rollup.worst_latency_ms]
    unbounded = [step for step, s in known if s.worst_latency_high_ms is None]
    high = _maxima(drawn, lambda s: s.worst_latency_high_ms)
    high[unbounded] = np.nan
    return _maxima(drawn, lambda s: s.worst_latency_ms), _maxima(drawn, lambda s: s.worst_latency_low_ms), high


def _maxima(drawn: Pieces, of: Callable[[Rollup], float | None]) -> Floats:
    found = np.full(len(drawn.steps), np.nan)
    values = np.array([of(piece.rollup) for piece in drawn.found], dtype=np.float64)
    np.fmax.at(found, drawn.indexes, values)
    return found


def _shares(drawn: Pieces, name: str) -> list[float]:
    spent = np.array([getattr(piece.rollup, name) for piece in drawn.found], dtype=np.float64)
    shares = np.bincount(drawn.indexes, spent, minlength=len(drawn.steps)) / drawn.step_ms
    return [round(min(1.0, share), 5) for share in shares.tolist()]


def _rates(drawn: Pieces, of: Callable[[Rollup], int | None]) -> list[float | None]:
    """Records per second of the time that the pieces of a step cover; null where none of them tells."""
    told = [(step, piece.rollup, of(piece.rollup)) for step, piece in zip(drawn.indexes, drawn.found, strict=True)]
    known = [(step, (s.span.end - s.span.start) / timedelta(seconds=1), n) for step, s, n in told if n is not None]
    steps = np.array([step for step, _, _ in known], dtype=np.int64)
    seconds = np.bincount(steps, [length for _, length, _ in known], minlength=len(drawn.steps))
    records = np.bincount(steps, [number for _, _, number in known], minlength=len(drawn.steps))
    return _listed(np.divide(records, seconds, out=np.full(len(seconds), np.nan), where=seconds > 0))


def _listed(column: Floats) -> list[float | None]:
    return [None if value != value else round(value, 3) for value in column.tolist()]
