"""The table `consumer_status`: Burrow's rules over the last commits of each group-partition. Columns only.

Why the rules stand in this order: docs/reference/consumer_status.md. What a group's other partitions say is added by
`group_status`, when all of them are judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_columns
from kafka_sla.model.entities import StatusRules
from kafka_sla.model.tables import CONSUMER_STATUS
from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.metrics import Metric
from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, latest
from kafka_sla.spark_jobs.windows.observed_positions import LogEnds, Sightings, lag_behind, sightings
from kafka_sla.spark_jobs.windows.window_grid import JobSpan

OF_GROUPS = ("group_status", "group_complete")
OF_PARTITIONS = replace(
    CONSUMER_STATUS,
    name="consumer_status_of_partitions",
    columns=tuple(column for column in CONSUMER_STATUS.columns if column.name not in OF_GROUPS),
)
"""The rows without what is said of the whole group."""


def measure(chunk: Chunk, scope: JobSpan, rules: Mapping[str, StatusRules]) -> pa.Table:
    """One row per group-partition and window from its first sighting on, evaluated at the window's end.

    In the columns of OF_PARTITIONS; `rules`: those of each cluster.
    """
    own = [rules[cluster] for cluster in chunk.keys["cluster"].to_pylist()]
    expire = _ints([1_000 * rule.expire_group_ms for rule in own])
    ends = LogEnds(chunk)
    seen = sightings(chunk, ends, scope.end, expire)
    of_row, end = _grid(seen, scope, expire)
    evaluated = _evaluated(seen, of_row, expire, _ints([rule.commits for rule in own]))
    gp = seen.gp[of_row]
    row = _Rows(
        evaluated,
        gp,
        end,
        expire[gp],
        ends.newest(chunk.gp_partition[gp], end),
        _ints([r.commits for r in own])[gp],
        _ints([r.allowed_lag for r in own])[gp],
        np.array([r.min_complete for r in own], dtype=np.float64)[gp],
    )
    outdated = ends.is_outdated(chunk.gp_partition[gp], end, scope.window, row.position, row.last)
    row.lag = np.where(outdated, NONE, row.lag)
    status, reason = _judged(row)
    lists = pa.array(np.append(0, np.cumsum(evaluated.count)).astype(np.int32))
    columns: dict[str, Any] = {
        **{name: chunk.keys[name].combine_chunks().take(pa.array(gp)) for name in chunk.keys.column_names},
        "window_start": pa.array(end - scope.window),
        "window_end": pa.array(end),
        "status": status,
        "complete": pa.array(row.complete),
        "reason": reason,
        "lag": _known(row.lag),
        "log_end_offset": _known(row.log_end),
        "last_commit_at": pa.array(row.last),
        "last_seen_at": pa.array(seen.at[of_row]),
        "polled_only": pa.array(seen.polled_only[of_row]),
        "commit_times": pa.ListArray.from_arrays(lists, pa.array(evaluated.at)),
        "commit_offsets": pa.ListArray.from_arrays(lists, pa.array(evaluated.position)),
        "commit_lags": pa.ListArray.from_arrays(lists, _known(evaluated.lag)),
    }
    return arrow_columns(OF_PARTITIONS, columns)


def _grid(seen: Sightings, scope: JobSpan, expire: Ints) -> tuple[Ints, Ints]:
    """Of each row its last sighting, an index, and the window's end.

    A group-partition has rows from its first sighting on, none while its offset is deleted, and after `expire` without
    a sighting one more.
    """
    first = np.flatnonzero(begins(seen.gp))
    begin = np.maximum(seen.at[first] // scope.window * scope.window, -(-scope.start // scope.window) * scope.window)
    count = np.maximum((scope.end - begin) // scope.window, 0)
    gp = np.repeat(seen.gp[first], count)
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    end = np.repeat(begin, count) + (nth + 1) * scope.window
    last = last_until(seen.gp, seen.at, gp, end, before=True)
    kept = end <= (seen.at[last] + expire[gp]) // scope.window * scope.window + scope.window
    kept &= seen.position[last] != NONE
    return last[kept], end[kept]


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """The evaluated commits of all rows, row by row; `first` and `count`: where those of each row lie."""

    first: Ints
    count: Ints
    at: Ints
    position: Ints
    lag: Ints

    def each(self, ufunc: np.ufunc, values: Ints) -> Any:
        """What a ufunc makes of each row's values."""
        return ufunc.reduceat(values, self.first) if len(self.first) else self.first


def _evaluated(seen: Sightings, of_row: Ints, expire: Ints, most: Ints) -> _Evaluated:
    """The last commits until each row's sighting, at most so many of them, without a silence longer than `expire`."""
    commits = np.flatnonzero(seen.is_commit)
    gp, at = seen.gp[commits], seen.at[commits]
    fresh = begins(gp) | seen.begins[commits]
    fresh[1:] |= at[1:] - at[:-1] > expire[gp[1:]]
    last = (np.cumsum(seen.is_commit) - 1)[of_row]
    begin = np.maximum(latest(fresh)[last], last - most[seen.gp[of_row]] + 1)
    count = last - begin + 1
    first = np.cumsum(count) - count
    index = commits[np.repeat(begin - first, count) + np.arange(count.sum())]
    return _Evaluated(first, count, seen.at[index], seen.position[index], seen.lag[index])


class _Rows:
    """What the rules look at, one entry per row."""

    def __init__(
        self,
        commits: _Evaluated,
        gp: Ints,
        end: Ints,
        expire: Ints,
        log_end: Ints,
        most: Ints,
        allowed: Ints,
        needed: Floats,
    ) -> None:
        ending = commits.first + commits.count - 1
        self.expire, self.log_end, self.allowed_lag, self.min_complete = expire, log_end, allowed, needed
        self.n = commits.count
        self.complete: Floats = commits.count / most
        self.last, self.position = commits.at[ending], commits.position[ending]
        self.silence, self.span = end - self.last, self.last - commits.at[commits.first]
        self.lag = lag_behind(log_end, self.position)
        self.highest = commits.each(np.maximum, commits.position)
        self.lowest = commits.each(np.minimum, commits.position)
        self.smallest_lag = commits.each(np.minimum, commits.lag)
        self.had_no_lag: Bools = commits.each(np.maximum, (commits.lag == 0).astype(np.int64)) > 0
        fell = np.zeros(len(commits.lag), dtype=np.int64)
        fell[1:] = commits.lag[1:] < commits.lag[:-1]
        fell[commits.first] = 0
        self.lag_never_fell: Bools = commits.each(np.maximum, fell) == 0


def _judged(row: _Rows) -> tuple[pa.Array, pa.Array]:
    """Status and reason of each row: the first rule that applies decides."""
    verdict, undecided = np.zeros(len(row.n), dtype=np.int64), np.ones(len(row.n), dtype=np.bool_)
    rules, decided, said = _rules(row), [], []
    for number, (_, applies, words) in enumerate(rules):
        decided.append(np.flatnonzero(undecided & applies))
        undecided[decided[-1]] = False
        verdict[decided[-1]] = number
        said.append(_said(words, decided[-1]))
    place = np.argsort(np.concatenate(decided))
    status = pa.array([name for name, _, _ in rules]).take(pa.array(verdict))
    return status, pa.concat_arrays(said).take(pa.array(place))


def _rules(row: _Rows) -> list[tuple[str, Bools, list[Any]]]:
    """Status, where, and why: words, and between them what is to be told of each row."""
    silent = ["no commit for ", _seconds(row.silence), ", longer than "]
    return [
        ("NOTFOUND", row.silence > row.expire, [*silent, "expire_group: the group is gone"]),
        ("OK", row.complete < row.min_complete, ["commits known: ", row.n, ", too few to judge by (min_complete)"]),
        ("OK", row.lag == NONE, ["no log end offset is known"]),
        ("OK", row.lag <= row.allowed_lag, ["the lag of ", row.lag, " is within allowed_lag"]),
        (
            "STOPPED",
            row.silence > row.span,
            [*silent, "the ", _seconds(row.span), " from the first to the last of the commits before: ", row.n],
        ),
        # Only the highest offset matters: a rewind from any other one was reached again by the commit that made it.
        (
            "REWIND",
            row.position < row.highest,
            ["went back from offset ", row.highest, " and has not reached it again, only ", row.position],
        ),
        ("OK", row.had_no_lag, ["the lag was zero at one of the commits"]),
        ("OK", row.smallest_lag == NONE, ["no log end offset was known at some of the commits"]),
        (
            "STALLED",
            (row.lowest == row.highest) & row.lag_never_fell,
            ["commits, but has not moved from offset ", row.position, " in ", _seconds(row.span)],
        ),
        ("WARNING", row.lag_never_fell, ["moves, but the lag fell between no two of the commits: ", row.n]),
        ("OK", np.ones(len(row.n), dtype=np.bool_), ["moves, and the lag fell between two of the commits"]),
    ]


def _said(words: list[Any], rows: Ints) -> pa.Array:
    """The sentence of each of these rows."""
    parts = [
        pa.repeat(pa.scalar(word), len(rows))
        if isinstance(word, str)
        else word.take(pa.array(rows))
        if isinstance(word, pa.Array)
        else pa.array(word[rows]).cast(pa.string())
        for word in words
    ]
    return pc.binary_join_element_wise(*parts, "")


def _seconds(micros: Ints) -> pa.Array:
    """As text, to the millisecond."""
    whole, rest = (pa.array(part).cast(pa.string()) for part in np.divmod((micros + 500) // 1_000, 1_000))
    text = pc.binary_join_element_wise(whole, pc.utf8_lpad(rest, 3, "0"), ".")
    return pc.binary_join_element_wise(pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), "."), "s", " ")


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _known(values: Ints) -> pa.Array:
    return pa.array(values, mask=values == NONE)


METRIC = Metric(CONSUMER_STATUS)
