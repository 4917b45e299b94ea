from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import STEADY_STATE, Table
from kafka_sla.spark_jobs.events.write_files import RowRules, Target, keep, writing
from tests.spark_jobs.conftest import EPOCH, at

STATE = {
    "sla": "promise",
    "cluster": "prod",
    "group": "billing",
    "topic": "orders",
    "partition": 0,
    "window_start": at(0),
    "window_end": at(60),
    "state": "steady",
    "since": at(0),
    "reason": "caught_up",
    "steady_whole_window": True,
    "records_due": 0,
    "records_late": 0,
    "records_late_low": 0,
    "records_late_high": 0,
}


def _target(folder: Path) -> Target:
    return Target(str(folder), EPOCH, "load-1")


def _states(count: int) -> pa.Table:
    return arrow_rows(STEADY_STATE, [STATE | {"partition": partition} for partition in range(count)])


def _written(target: Target, *parts: pa.Table, asked: RowRules | None = None) -> list[dict[str, object]]:
    """What one task tells that measured these rows one after the other."""

    def measured(_: Iterable[pa.RecordBatch]) -> Iterator[dict[Table, pa.Table]]:
        yield from ({STEADY_STATE: part} for part in parts)

    return [row for batch in writing(target, measured, asked)([]) for row in batch.to_pylist()]


def _rows(folder: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted((folder / STEADY_STATE.name).iterdir())]


def test_a_task_writes_one_file_a_table_and_labels_its_rows_with_their_load(tmp_path: Path) -> None:
    (told,) = _written(_target(tmp_path), _states(2), _states(3))

    (rows,) = _rows(tmp_path)
    assert (STEADY_STATE.name, 5) == (told["name"], told["rows"])
    assert [*STEADY_STATE.names, "interval_start", "load_id"] == rows.column_names
    assert {(EPOCH, "load-1")} == {(row["interval_start"], row["load_id"]) for row in rows.to_pylist()}


def test_a_task_tells_whether_all_its_rows_passed_what_is_asked_of_them(tmp_path: Path) -> None:
    def kept(*counts: int, of: str = STEADY_STATE.name) -> object:
        asked = {of: lambda rows: rows.num_rows < 3}
        (told,) = _written(_target(tmp_path), *map(_states, counts), asked=asked)
        return told["kept"]

    assert [True, False, False] == [kept(1, 2), kept(3, 1), kept(1, 3)]
    assert kept(3, of="another_table")


def _days(count: int, rows_a_day: int, partitions: int = 2) -> pa.Table:
    """Rows of each partition, each in order of time."""
    of_a_day = [nth * timedelta(seconds=10) for nth in range(rows_a_day // partitions)]
    times = [at(0) + nth * timedelta(days=1) + after for nth in range(count) for after in of_a_day]
    one = _states(1).take([0] * len(times) * partitions)
    columns = {"partition": pa.array(np.repeat(range(partitions), len(times)), pa.int32())}
    columns["window_start"] = pa.array(times * partitions, pa.timestamp("us", "UTC"))
    for name, values in columns.items():
        one = one.set_column(one.column_names.index(name), one.schema.field(name), values)
    return one


def _spans(folder: Path) -> list[tuple[int, int]]:
    """Of each row group of the one file: in which of the days its rows begin and end."""
    (path,) = (folder / STEADY_STATE.name).iterdir()
    file = pq.ParquetFile(path)
    times = [file.read_row_group(nth, ["window_start"])[0].to_pylist() for nth in range(file.num_row_groups)]
    return [((min(of) - at(0)).days, (max(of) - at(0)).days) for of in times]


def test_rows_of_many_days_follow_each_other_in_time_so_that_a_day_of_them_is_read_alone(tmp_path: Path) -> None:
    (told,) = _written(_target(tmp_path), rows := _days(4, 12_000))

    (found,) = _rows(tmp_path)
    assert [(0, 0), (1, 1), (2, 2), (3, 3)] == _spans(tmp_path)
    assert 48_000 == told["rows"] == found.num_rows
    assert found.select(rows.column_names).sort_by([("partition", "ascending"), ("window_start", "ascending")]) == rows
    assert [*[0] * 6_000, *[1] * 6_000] * 4 == found["partition"].to_pylist(), "by key within each day"


def test_few_rows_of_many_days_are_not_many_small_row_groups(tmp_path: Path) -> None:
    _written(_target(tmp_path), _days(30, 1_000), _days(5, 100))

    assert [(0, 9), (10, 19), (20, 29), (0, 4)] == _spans(tmp_path)


def test_what_earlier_tasks_left_is_removed(tmp_path: Path) -> None:
    target = _target(tmp_path)
    _written(target, _states(1))
    (told,) = _written(target, _states(2))

    keep(target, STEADY_STATE, [str(told["path"])])

    assert [2] == [rows.num_rows for rows in _rows(tmp_path)]


def test_a_table_without_rows_is_an_empty_file_that_can_be_read(tmp_path: Path) -> None:
    keep(_target(tmp_path), STEADY_STATE, [])

    (rows,) = _rows(tmp_path)
    assert (0, [*STEADY_STATE.names, "interval_start", "load_id"]) == (rows.num_rows, rows.column_names)


def test_a_task_that_fails_says_so(tmp_path: Path) -> None:
    def measured(_: Iterable[pa.RecordBatch]) -> Iterator[dict[Table, pa.Table]]:
        yield {STEADY_STATE: _states(1)}
        raise ArithmeticError("no such offset")

    with pytest.raises(ArithmeticError, match="no such offset"):
        list(writing(_target(tmp_path), measured)([]))
