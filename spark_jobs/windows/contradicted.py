"""Polls that the next one contradicts: a position that drops and is back where it was within a minute. NumPy only.

A single poll can be wrong and say offset 0, for example. Taken as a
rewind, it would exclude time, and everything up to the old position would count as read late. Only polls of one window
are compared, because a row depends on nothing that became known after its window. What a commit log tells is exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.numeric.arrays import NONE

_SOON_US = 60_000_000
_OF_COMMITS = ("gp", "at", "offset", "polled", "gap_before", "invalid", "invalid_from", "carried", "contradicted")


def without_contradicted(chunk: Chunk, window_us: int) -> Chunk:
    """The chunk without these polls; `contradicted` of the poll after each tells the offset that was left out."""
    if not chunk.polled.any() or len(chunk.gp) < 3:
        return chunk
    before, dropped, after = slice(None, -2), slice(1, -1), slice(2, None)
    gp, at, offset, window = chunk.gp, chunk.at, chunk.offset, chunk.within // window_us
    is_wrong = (gp[before] == gp[dropped]) & (gp[dropped] == gp[after]) & chunk.polled[dropped] & chunk.polled[after]
    is_wrong &= (offset[dropped] != NONE) & (offset[dropped] < offset[before]) & (offset[after] >= offset[before])
    is_wrong &= (at[after] - at[dropped] <= _SOON_US) & (window[dropped] == window[after]) & ~chunk.carried[dropped]
    wrong = np.flatnonzero(is_wrong) + 1
    if not len(wrong):
        return chunk
    contradicted = chunk.contradicted.copy()
    contradicted[wrong + 1] = offset[wrong]
    kept = np.ones(len(gp), dtype=np.bool_)
    kept[wrong] = False
    columns = {name: getattr(chunk, name)[kept] for name in _OF_COMMITS if name != "contradicted"}
    return replace(chunk, **columns, contradicted=contradicted[kept])
