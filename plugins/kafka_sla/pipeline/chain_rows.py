"""What was published of chains: as rows that an SLA is judged by, as evidence of its misses, and as of now. Judges
nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from kafka_sla.lake.lake import Lake
from kafka_sla.model.arrow_schemas import arrow_rows, arrow_schema
from kafka_sla.model.entities import Interval, Miss, Sla
from kafka_sla.model.tables import CHAIN_LATENCY, CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.chains import ChainState, chain_state, longest

_Row = dict[str, Any]
_STATES = pa.schema([field.with_nullable(True) for field in arrow_schema(STEADY_STATE)])
_BOUNDS = ("_ms", "_low_ms", "_high_ms")


def as_measured(sla: Sla, lake: Lake, interval: Interval, steady: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The chain as if it were one partition, in the columns of `consumer_latency` and `steady_state`: it stands where
    its slowest stage is, and is steady while all its stages are."""
    whole = [row for row in _published(lake, sla.cluster, interval) if row["sla"] == sla.name and row["stage"] == 0]
    states = _states(sla, steady)
    latency = arrow_rows(CONSUMER_LATENCY, [_latency(row) for row in whole])
    return latency, pa.Table.from_pylist([_state(sla, row, states) for row in whole], _STATES)


def newest_chains(
    lake: Lake, slas: Sequence[Sla], until: Mapping[str, datetime], window_ms: int
) -> dict[str, ChainState]:
    """Those of these SLAs that have a chain, in the window that ends at the time given for their cluster."""
    chained = [sla for sla in slas if sla.chain and sla.cluster in until]
    rows = {
        cluster: _published(lake, cluster, Interval(until[cluster] - timedelta(milliseconds=window_ms), until[cluster]))
        for cluster in {sla.cluster for sla in chained}
    }
    found = {sla.name: chain_state(sla, rows[sla.cluster]) for sla in chained}
    return {name: state for name, state in found.items() if state}


def chain_evidence(sla: Sla, miss: Miss, lake: Lake, window_ms: int) -> dict[str, Any]:
    """Which stage was late in the worst window of a miss; nothing where no row says so."""
    end = miss.worst_at + timedelta(milliseconds=window_ms)
    found = newest_chains(lake, [sla], {sla.cluster: end}, window_ms).get(sla.name)
    if found is None or found.slowest_stage is None:
        return {}
    stage = asdict(found.stages[found.slowest_stage - 1])
    return {
        "chain": [str(one) for one in sla.chain],
        "chain_stage": found.slowest_stage,
        "chain_added_low_ms": stage["added_low_ms"],
        "chain_added_high_ms": stage["added_high_ms"],
    }


def _published(lake: Lake, cluster: str, interval: Interval) -> list[_Row]:
    rows: list[_Row] = lake.published(CHAIN_LATENCY.name, interval, [cluster]).to_pylist()
    return rows


def _place(row: Mapping[str, Any]) -> _Row:
    shared = ("cluster", "group", "topic", "window_start", "window_end")
    return {name: row[name] for name in shared} | {"partition": row["partition"] or 0}


def _latency(row: Mapping[str, Any]) -> _Row:
    names = [f"{what}{bound}" for what in ("records_latency_max", "backlog_age") for bound in _BOUNDS]
    return (
        _place(row)
        | {name: row[name] for name in names}
        | {
            **{f"backlog_age_max{bound}": longest(row, bound) for bound in _BOUNDS},
            "records_consumed": row["records_consumed"],
            "negative_latency_records": 0,
            "unknown_latency_records": 0,
            "polled_only": False,
            "unknown_reason": row["unknown_reason"],
        }
    )


def _states(sla: Sla, steady: pa.Table) -> dict[datetime, list[_Row]]:
    """The states of the stages' group-partitions, by window."""
    stages = {(stage.group, stage.topic) for stage in sla.chain}
    found: dict[datetime, list[_Row]] = defaultdict(list)
    for row in steady.to_pylist():
        if row["sla"] == sla.name and (row["group"], row["topic"]) in stages:
            found[row["window_start"]].append(row)
    return found


def _state(sla: Sla, row: Mapping[str, Any], states: Mapping[datetime, Iterable[_Row]]) -> _Row:
    """Unknown where the state of one stage is; else a contradictory stage comes first, then one that bootstraps."""
    known = sorted(
        states.get(row["window_start"], ()),
        key=lambda state: (state["state"] != "contradictory", state["steady_whole_window"] is not False),
    )
    late = {f"records_late{bound}": row[f"records_over_threshold{bound}"] for bound in ("", "_low", "_high")}
    own = {name: known[0][name] for name in ("state", "since", "reason", "steady_whole_window")} if known else {}
    if any(state["steady_whole_window"] is None for state in known):
        own["steady_whole_window"] = None
    return _place(row) | {"sla": sla.name} | own | late | {"records_due": row["records_consumed"]}
