"""Files in the words of an earlier version as Spark and its tasks read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_sla.files import write_rows
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import COMMITTED_OFFSETS, REPLICA_FETCHES
from kafka_sla.spark_jobs.events.frames import read
from tests.kafka_sla.loads import at
from tests.spark_jobs.conftest import commit, sla
from tests.spark_jobs.numeric.test_polls import ENDS
from tests.spark_jobs.test_steady_state import STEADY_FLOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Measure = Callable[..., list[dict[str, Any]]]


def test_a_renamed_column_is_one_column_whatever_a_file_calls_it(spark: SparkSession, tmp_path: Path) -> None:
    row = {"cluster": "a", "follower": 1, "leader": 0, "responses": 10, "io_wait_ms": 5.0}
    files = [str(tmp_path / name) for name in ("before.parquet", "now.parquet")]
    before, now = (
        arrow_rows(REPLICA_FETCHES, [row | {"at": at(clock), "fetcher_thread": thread}])
        for clock, thread in (("10:00", 3), ("10:01", 4))
    )
    names = ["fetcher" if name == "fetcher_thread" else name for name in before.column_names]
    write_rows(files[0], before.rename_columns(names))
    write_rows(files[1], now)

    for order in (files, files[::-1]):
        rows = read(spark, REPLICA_FETCHES, order).orderBy("at").collect()
        assert [(row.fetcher_thread, row.follower) for row in rows] == [(3, 1), (4, 1)]


def test_a_renamed_value_is_read_as_todays(spark: SparkSession, tmp_path: Path) -> None:
    row = {"cluster": "a", "group": "billing", "topic": "orders", "partition": 0, "at": at("10:00")}
    write_rows(
        path := str(tmp_path / "before.parquet"),
        arrow_rows(COMMITTED_OFFSETS, [row | {"source": word} for word in ("unchanged", "commit_log")]),
    )

    sources = {row.source for row in read(spark, COMMITTED_OFFSETS, [path]).collect()}
    assert sources == {"poll_confirmed", "commit_log"}


def test_a_position_is_as_good_as_a_commit_under_the_former_word_of_its_source(measure: Measure) -> None:
    before, today = (
        measure(ENDS, [commit(-300, 20), commit(-200, 20, source=source)], 0, 180)
        for source in ("unchanged", "poll_confirmed")
    )
    assert before == today
    assert [row["polled_only"] for row in before] == [False] * 3


def test_a_state_that_is_carried_over_under_its_former_reason_goes_on_under_todays(measure: Measure) -> None:
    slas, commits = (sla(30, grace_period=90),), [commit(300, 0), commit(420, 100)]
    first = measure(STEADY_FLOW, commits, 300, 480, slas=slas)
    for row in first:
        row["states"] = [state | {"reason": "grace_over"} for state in row["states"]]

    (second,) = measure(STEADY_FLOW, commits, 480, 540, slas=slas, carried=(480, first))
    assert [(state["state"], state["reason"]) for state in second["states"]] == [("steady", "grace_period_over")]
