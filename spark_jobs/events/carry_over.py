"""What rows published before say of the time before the replayed facts: where each group-partition stood, as commits.

Rows of `consumer_latency` whose window ends where the replay begins carry the last commit and, in `carry`, the steady
states. Where a group-partition has such rows no more, because it expired, while polls still find its offset, the rows
of `consumer_status` tell it, without `carry`: or the next poll would be the first that is known of it, and it would
begin anew. Knows the layouts of events only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark_jobs.events.layouts import CARRIED, CERTAIN, COMMITS, GROUP_PARTITION, LAYOUTS
from kafka_sla.spark_jobs.numeric.positions import VALID

_OWN = [("log_start", pa.int64()), ("log_end", pa.int64()), ("carry", pa.string())]
"""What only a carried position has: the bounds of the log, and its steady states as JSON."""
_Key = tuple[str, str, int, str]


def carried_commits(latency: pa.Table, states: pa.Table, status: pa.Table) -> pa.Table:
    """One commit per group-partition that the published rows know: the layout of commits, and the columns of _OWN."""
    keys = _keys(latency)
    known = latency.append_column("carry", pa.array(_carry(keys, states), pa.string()))
    there = set(keys)
    gone = status.filter(pa.array([key not in there for key in _keys(status)], pa.bool_()))
    of_latency = _as_commits(known.filter(pc.is_valid(known["offset"])))
    return pa.concat_tables([of_latency, _as_commits(_last_evaluated(gone))]).unify_dictionaries()


def carried_assumptions(latency: pa.Table, states: pa.Table) -> pa.Table:
    """The same of positions that a group was assumed to have, without a commit of its own."""
    assumed = latency.filter(pc.is_valid(latency["assumed"]))
    rows = assumed.drop_columns(["offset"]).rename_columns({"assumed": "offset"})
    return _as_commits(rows.append_column("carry", pa.array(_carry(_keys(rows), states), pa.string())))


def _carry(keys: list[_Key], states: pa.Table) -> list[str]:
    """Of each group-partition its states as JSON, by SLA; `since` in µs."""
    told: dict[_Key, dict[str, Any]] = defaultdict(dict)
    for key, state in zip(_keys(states), states.drop_columns(list(GROUP_PARTITION)).to_pylist(), strict=True):
        told[key][state.pop("sla")] = state
    return [json.dumps(told.get(key, {})) for key in keys]


def _last_evaluated(status: pa.Table) -> pa.Table:
    """The last commit of each row's list, in the columns that carried latency has."""
    at, offset = (
        pa.array([values[-1] for values in status[name].to_pylist()], pa.int64()) for name in ("times", "offsets")
    )
    unknown = {name: pa.nulls(status.num_rows, pa.int64()) for name in ("log_start", "log_end")}
    unknown |= {"carry": pa.nulls(status.num_rows, pa.string()), "invalid": pa.array([VALID] * status.num_rows)}
    return pa.table(
        {name: status[name] for name in (*GROUP_PARTITION, "polled")} | {"at": at, "offset": offset} | unknown
    )


def _as_commits(rows: pa.Table) -> pa.Table:
    flags = pc.if_else(pc.fill_null(rows["polled"], True), CARRIED, CARRIED | CERTAIN)
    layout = pa.schema([*LAYOUTS[COMMITS], *_OWN])
    columns = {name: rows[name] if name in rows.column_names else flags for name in layout.names}
    return pa.table(columns).cast(layout)


def _keys(rows: pa.Table) -> list[_Key]:
    """cluster, topic, partition and group of each row."""
    return list(zip(*(rows[name].to_pylist() for name in GROUP_PARTITION), strict=True))
