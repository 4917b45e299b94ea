"""When groups were seen on topics. Partitions of a topic belong to several tasks, so each task gets all sightings.

A few rows tell enough: of every batch of commits the first one, and the first one after each deletion of an offset.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafka_sla.spark_jobs.events.columns import distinct, ints
from kafka_sla.spark_jobs.events.layouts import CARRIED, CERTAIN, LAYOUTS, SIGHTINGS
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, time_order

_NAMES = ("cluster", "topic", "group")


def sightings_in(commits: pa.Table) -> pa.Table:
    """Sightings in a batch of commits."""
    if not len(commits):
        return LAYOUTS[SIGHTINGS].empty_table()
    numbers = [distinct(commits, name) for name in _NAMES]
    run = np.flatnonzero(begins(*numbers))
    deleted = ints(commits, "offset") == NONE
    at = np.where(deleted, FAR, ints(commits, "at"))
    first = np.minimum.reduceat(at, run)
    flags = np.bitwise_or.reduceat(ints(commits, "flags") & CERTAIN, run)
    sizes = [int(of.max()) + 1 for of in numbers]
    key = np.ravel_multi_index([of[run] for of in numbers], sizes)
    keys, row, of_key = np.unique(key, return_index=True, return_inverse=True)
    earliest, certain = np.full(len(keys), FAR), np.zeros(len(keys), dtype=np.uint8)
    np.minimum.at(earliest, of_key, first)
    np.bitwise_or.at(certain, of_key, flags)
    rows, times, bits = run[row], earliest, certain
    if deleted.any():
        after, when = _after_deletions(np.ravel_multi_index(numbers, sizes), ints(commits, "at"), deleted)
        number = np.searchsorted(keys, np.ravel_multi_index([of[after] for of in numbers], sizes))
        rows = np.concatenate([rows, after])
        times, bits = np.concatenate([times, when]), np.concatenate([bits, certain[number]])
    seen = times < FAR
    names = {name: commits[name].combine_chunks().take(pa.array(rows[seen])) for name in _NAMES}
    return pa.table({**names, "at": times[seen], "flags": bits[seen]}, LAYOUTS[SIGHTINGS])


def _after_deletions(key: Ints, at: Ints, deleted: Bools) -> tuple[Ints, Ints]:
    """For each deletion after which its group was seen on its topic again: the row of the next commit, and its time."""
    valid = np.flatnonzero(~deleted)
    order = valid[time_order(key[valid], at[valid])]
    gone = np.flatnonzero(deleted)
    last = last_until(key[order], at[order], key[gone], at[gone])
    following = np.where(last == NONE, np.searchsorted(key[order], key[gone]), last + 1)
    there = following < len(order)
    found = order[following[there]]
    same = key[found] == key[gone][there]
    return found[same], at[found[same]]


def carried_sightings(latency: pa.Table) -> pa.Table:
    """Groups and topics that the carried rows know."""
    known = latency.filter(latency["offset"].is_valid())
    keys = [distinct(known, name) for name in _NAMES]
    opens = np.flatnonzero(begins(*keys))
    names = {name: known[name].combine_chunks().take(pa.array(opens, pa.int64())) for name in _NAMES}
    count = len(opens)
    return pa.table({**names, "at": [-1] * count, "flags": np.full(count, CARRIED, np.uint8)}, LAYOUTS[SIGHTINGS])
