"""What a Python worker of Spark does not do again between its tasks, and what it still notices."""

from __future__ import annotations

import gc
import mailbox
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_sla.spark_jobs.events.python_workers import map_batches
from kafka_sla.spark_jobs.events.task_ranges import given, indexes

_TOLD = "worker BIGINT, opened STRING, frozen BIGINT"


def test_a_worker_reads_the_archives_on_its_path_once_and_not_for_each_of_its_tasks(spark: SparkSession) -> None:
    def listening(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not hasattr(sys, "archives_opened"):
            opened: list[str] = []
            sys.archives_opened = opened  # type: ignore[attr-defined]
            ends = (".zip", ".jar")
            sys.addaudithook(
                lambda event, of: opened.append(str(of[0])) if event == "open" and str(of[0]).endswith(ends) else None
            )
        for _ in given(batches):
            told = {"worker": [os.getpid()], "opened": [" ".join(sys.archives_opened)]}  # type: ignore[attr-defined]
            yield pa.RecordBatch.from_pydict(told | {"frozen": [gc.get_freeze_count()]})

    tasks = 12
    rows = [map_batches(indexes(spark, tasks), listening, _TOLD).collect() for _ in range(2)][1]
    assert len({row["worker"] for row in rows}) < tasks  # some worker had several of them
    assert {row["opened"] for row in rows} == {""}
    assert all(row["frozen"] > 0 for row in rows)


def test_what_came_with_a_later_task_is_not_looked_at_for_garbage_either(spark: SparkSession) -> None:
    def first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in given(batches):
            yield pa.RecordBatch.from_pydict({"there": ["mailbox" in sys.modules]})

    def later(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in given(batches):
            looked_at = any(one is mailbox.Mailbox for one in gc.get_objects())
            yield pa.RecordBatch.from_pydict({"there": [looked_at]})

    for function in (first, later):
        rows = map_batches(indexes(spark, 4), function, "there BOOLEAN").collect()
        assert [row["there"] for row in rows] == [False] * 4


def test_an_archive_that_changed_is_read_again_and_one_that_is_gone_has_no_modules(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import importlib, sys, zipfile
        from pathlib import Path
        from kafka_sla.spark_jobs.events.python_workers import read_changed_archives_only

        archive = Path(sys.argv[1])

        def modules(**texts):
            with zipfile.ZipFile(archive, "w") as zipped:
                for name, text in texts.items():
                    zipped.writestr(f"{name}.py", text)

        modules(first="value = 1")
        sys.path.insert(0, str(archive))
        import first
        read_changed_archives_only()
        opened = []
        sys.addaudithook(lambda event, of: opened.append(of[0]) if event == "open" and of[0] == str(archive) else None)
        importlib.invalidate_caches()
        print(len(opened))
        modules(first="value = 1", second="value = 22")
        importlib.invalidate_caches()
        import second
        print(second.value)
        archive.unlink()
        importlib.invalidate_caches()
        try:
            import third
        except ModuleNotFoundError as error:
            print(error.name)
        """
    )
    command = [sys.executable, "-c", script, str(tmp_path / "code.zip")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["0", "22", "third"]
