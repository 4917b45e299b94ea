"""The kinds of events that a task measures with, and the columns of each. Names and types only; times are µs.

*Points* of produced timelines, *ranges* of offsets that were read, *commits* and polls of positions, *configurations*
of topics; and of the rows that were published before: *latency*, *states*, *status* and *unread*.
"""

from __future__ import annotations

import pyarrow as pa

POINTS, RANGES, COMMITS, CONFIGURATIONS = "points", "ranges", "commits", "configurations"
LATENCY, STATES, STATUS, UNREAD = "latency", "states", "status", "unread"
SIGHTINGS = "sightings"

PLACE = ("cluster", "topic", "partition")
GROUP_PARTITION = (*PLACE, "group")
NAME = pa.dictionary(pa.int32(), pa.string())
POLLED, LOOKED_UP, CERTAIN, EARLIER_LOST, CARRIED = (1 << bit for bit in range(5))
"""Bits of `flags`, which millions of events have: one byte is quicker to move than several columns."""
_NUMBERS = pa.list_(pa.int64())
_PLACE = [("cluster", NAME), ("topic", NAME), ("partition", pa.int32())]
_KEY = [*_PLACE, ("group", NAME)]

IN_RUNS = (POINTS, RANGES, COMMITS)
"""Kinds of which there are millions. They travel in `run_lengths`."""
LAYOUTS = {
    POINTS: pa.schema(
        [
            *_PLACE,
            ("at", pa.int64()),
            ("offset", pa.int64()),
            ("log_start", pa.int64()),
            ("flags", pa.uint8()),
        ]
    ),
    RANGES: pa.schema(
        [
            *_PLACE,
            ("at", pa.int64()),
            ("offset", pa.int64()),
            ("until", pa.int64()),
            ("records", pa.int64()),
            ("earliest", pa.int64()),
            ("latest", pa.int64()),
        ]
    ),
    COMMITS: pa.schema(
        [
            *_KEY,
            ("at", pa.int64()),
            ("offset", pa.int64()),
            ("flags", pa.uint8()),
            ("invalid", pa.int8()),
        ]
    ),
    CONFIGURATIONS: pa.schema(
        [
            ("cluster", NAME),
            ("topic", NAME),
            ("at", pa.int64()),
            ("cleanup_policy", NAME),
            ("retention_ms", pa.int64()),
            ("topic_id", NAME),
            ("partitions", pa.int64()),
        ]
    ),
    SIGHTINGS: pa.schema(
        [
            ("cluster", NAME),
            ("topic", NAME),
            ("group", NAME),
            ("at", pa.int64()),
            ("flags", pa.uint8()),
        ]
    ),
    LATENCY: pa.schema(
        [
            *_KEY,
            ("at", pa.int64()),
            ("offset", pa.int64()),
            ("assumed", pa.int64()),
            ("log_start", pa.int64()),
            ("log_end", pa.int64()),
            ("polled", pa.bool_()),
            ("invalid", pa.int64()),
        ]
    ),
    STATES: pa.schema(
        [
            *_KEY,
            ("sla", pa.string()),
            ("state", pa.string()),
            ("since", pa.int64()),
            ("reason", pa.string()),
            ("rewound_from", pa.int64()),
            ("rewound_at", pa.int64()),
            ("rewinds", pa.int64()),
            ("progress_at", pa.int64()),
            ("lowest_age_ms", pa.float64()),
            ("lowest_lag", pa.int64()),
        ]
    ),
    STATUS: pa.schema(
        [
            *_KEY,
            ("at", pa.int64()),
            ("log_end", pa.int64()),
            ("polled", pa.bool_()),
            ("seen", pa.int64()),
            ("times", _NUMBERS),
            ("offsets", _NUMBERS),
            ("lags", _NUMBERS),
        ]
    ),
    UNREAD: pa.schema(
        [
            *_KEY,
            ("at", pa.int64()),
            ("offset", pa.int64()),
            ("log_start", pa.int64()),
            ("low", pa.int64()),
            ("high", pa.int64()),
            ("lost_low", pa.int64()),
            ("lost_high", pa.int64()),
        ]
    ),
}
"""Columns of each kind. Points: POLLED, LOOKED_UP or neither. Commits: `offset` null: it was deleted; POLLED: it was
seen, not heard of; CERTAIN: no commit after it is missing; EARLIER_LOST: commits before it may have been compacted
away; CARRIED: a position that was carried over; `invalid`: why it is no position. Latency: `at` and `offset` of the
last commit. Status: the evaluated commits, oldest first, and when the position was `seen` last. Unread: bounds of the
positions since the last poll, and what was lost until then."""
