"""What the partitions of a consumer group say together in a window, for the table `consumer_status`. Columns only.

A partition that is gone says nothing of a group of which others are not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.entities import StatusRules
from kafka_sla.model.tables import Table, ddl_columns

_GROUP = ["cluster", "group", "window_end"]
_SUMS = {"severity": "max", "commits": "sum", "partitions": "sum", "commits_found": "sum", "partitions_found": "sum"}
SUMS = Table(
    "consumer_status_of_groups",
    "metric",
    tuple(_GROUP),
    "window_end",
    "What the partitions of a group say together, of which some tasks know a part each.",
    ddl_columns("""
        cluster STRING NOT NULL             -- cluster name of the configuration
        group STRING NOT NULL               -- consumer group
        window_end TIMESTAMP NOT NULL       -- end of the window, exclusive
        severity BIGINT NOT NULL            -- the worst: 0 NOTFOUND, 1 OK, 2 WARNING, 3 ERROR
        commits BIGINT NOT NULL             -- evaluated commits
        partitions BIGINT NOT NULL          -- partitions
        commits_found BIGINT NOT NULL       -- evaluated commits of the partitions that are not gone
        partitions_found BIGINT NOT NULL    -- partitions that are not gone
    """),
)
_SEVERITY = {"NOTFOUND": 0, "OK": 1, "WARNING": 2}
_STATUSES = ("NOTFOUND", "OK", "WARNING", "ERROR")


def sums(rows: pa.Table) -> pa.Table:
    """Rows of SUMS from rows of `consumer_status.OF_PARTITIONS`."""
    statuses = pc.dictionary_encode(rows["status"].combine_chunks())
    severity = np.array([_SEVERITY.get(name, 3) for name in statuses.dictionary.to_pylist()], dtype=np.int64)
    severity = severity[statuses.indices.to_numpy()]
    commits, found = pc.list_value_length(rows["commit_times"]).cast(pa.int64()), (severity > 0).astype(np.int64)
    values = {
        "severity": severity,
        "commits": commits,
        "partitions": np.ones(len(found), dtype=np.int64),
        "commits_found": pc.multiply(commits, pa.array(found)),
        "partitions_found": found,
    }
    return together(pa.table({**{name: rows[name] for name in _GROUP}, **values}))


def together(of_parts: pa.Table) -> pa.Table:
    """The sums of all rows from those of several parts of them, each group and window once."""
    found = of_parts.group_by(_GROUP).aggregate(list(_SUMS.items()))
    return found.select([*_GROUP, *(f"{name}_{how}" for name, how in _SUMS.items())]).rename_columns([*_GROUP, *_SUMS])


def with_groups(rows: pa.Table, of_groups: pa.Table, rules: Mapping[str, StatusRules]) -> pa.Table:
    """The rows with `group_status` and `group_complete`, in their order."""
    keys = rows.select(_GROUP).append_column("nth", pa.array(np.arange(rows.num_rows)))
    here = [pc.is_in(of_groups[name], pc.unique(rows[name])) for name in ("group", "window_end")]
    own = keys.join(of_groups.filter(pc.and_(*here)), _GROUP).sort_by("nth")
    severity, commits, partitions, commits_found, partitions_found = (own[name].to_numpy() for name in _SUMS)
    gone = severity == 0
    clusters = pc.dictionary_encode(own["cluster"].combine_chunks())
    most = np.array([rules[cluster].commits for cluster in clusters.dictionary.to_pylist()], dtype=np.int64)
    most = most[clusters.indices.to_numpy()]
    complete = np.where(gone, commits, commits_found) / np.where(gone, partitions, partitions_found) / most
    status = pa.array(_STATUSES).take(pa.array(severity))
    return rows.append_column("group_status", status).append_column("group_complete", pa.array(complete))
