"""Which time snapshots speak for: kept as few spans, whatever order they land in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import GROUP_STATES
from tests.kafka_sla.loads import DAY, at, span

WHOLE = Interval(DAY, DAY + timedelta(days=1))


def seen(times: Sequence[str], cluster: str = "a") -> pa.Table:
    """What snapshots at these times saw of two groups."""
    rows: list[dict[str, Any]] = [
        {"cluster": cluster, "group": group, "at": at(time), "type": "classic", "state": "Stable", "members": 1}
        for time in times
        for group in ("payments", "orders")
    ]
    return arrow_rows(GROUP_STATES, rows)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_snapshots_that_follow_each_other_are_one_span_in_any_order(
    lake: Lake, ledger: Ledger, order: tuple[int, ...]
) -> None:
    looks = [["10:05", "10:10"], ["10:15"], ["11:00", "11:05"]]
    for number in (*order, order[0]):
        lake.land({GROUP_STATES.name: seen(looks[number])})

    found = ledger.observed_time.spans(["a"], WHOLE)

    assert {"a": [span("9:55", "10:15"), span("10:50", "11:05")]} == found


def test_clusters_are_observed_each_for_itself(lake: Lake, ledger: Ledger) -> None:
    lake.land({GROUP_STATES.name: pa.concat_tables([seen(["10:05"]), seen(["12:00"], "b")])})

    assert {"b": [span("11:50", "12:00")]} == ledger.observed_time.spans(["b", "c"], WHOLE)
    assert {} == ledger.observed_time.spans(["a", "b"], span("20:00", "21:00"))


def test_snapshots_of_longer_intervals_speak_for_longer(lake: Lake, ledger: Ledger) -> None:
    for look in ("10:00", "10:15", "10:30"):
        lake.land({GROUP_STATES.name: seen([look])}, vouched=timedelta(minutes=30))

    assert {"a": [span("9:30", "10:30")]} == ledger.observed_time.spans(["a"], WHOLE)
