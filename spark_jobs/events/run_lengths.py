"""Facts without what they repeat: those that follow each other and have one key are a *run*, one row of a packed table.

Facts come from files that are sorted, so a run has thousands. The key of each is told once, with its first time and
offsets; of the others `rows`, a list of structs, tells the differences, which fit into half the bytes. Where one does
not, a run ends.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafka_sla.spark_jobs.events.columns import distinct, ints
from kafka_sla.spark_jobs.events.layouts import GROUP_PARTITION
from kafka_sla.spark_jobs.numeric.arrays import Ints
from kafka_sla.spark_jobs.numeric.scans import begins

_ROWS = "rows"


def packed(events: pa.Table) -> pa.Table:
    """One row a run of these events; `unpacked` makes them again, with -1 for null."""
    keys = [name for name in events.column_names if name in GROUP_PARTITION]
    columns = {name: ints(events, name) for name in events.column_names if name not in keys}
    wide = {name: values for name, values in columns.items() if values.dtype == np.int64}
    opens = begins(*(distinct(events, name) for name in keys))
    for name, values in wide.items():
        difference = np.diff(values, prepend=values[:1])
        columns[name] = difference.astype(np.int32)
        opens |= columns[name] != difference
    first = np.flatnonzero(opens)
    for name in wide:
        columns[name][first] = 0
    rows = pa.StructArray.from_arrays([pa.array(values) for values in columns.values()], list(columns))
    runs = events.select(keys)
    runs = runs.take(pa.array(first)) if len(first) < len(events) else runs
    for name, values in wide.items():
        runs = runs.append_column(name, pa.array(values[first]))
    offsets = pa.array(np.append(first, len(events)).astype(np.int32))
    return runs.append_column(_ROWS, pa.ListArray.from_arrays(offsets, rows))


def count(runs: pa.Table) -> Ints:
    """How many events each run has."""
    found: Ints = _lists(runs).value_lengths().to_numpy().astype(np.int64)
    return found


def unpacked(runs: pa.Table) -> pa.Table:
    """The events of these runs, one run's after the other's, without their keys."""
    rows, length = _lists(runs), count(runs)
    begin = np.cumsum(length) - length
    columns = dict(zip(rows.type.value_type.names, rows.flatten().flatten(), strict=True))
    for name in columns:
        if name in runs.column_names:
            total = np.cumsum(columns[name].to_numpy(), dtype=np.int64)
            total += np.repeat(runs.column(name).to_numpy() - total[begin], length)
            columns[name] = pa.array(total)
    return pa.table(columns)


def _lists(runs: pa.Table) -> pa.ListArray:
    return runs.column(_ROWS).combine_chunks()
