"""Checkpoint folders of Spark Structured Streaming. The one beside this was kept from a real query that read a real
Kafka of two partitions, fifty records a batch; `make checkpoint` makes another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kafka_sla.errors import CheckpointUnreadable
from kafka_sla.model.entities import Checkpoint, KeptPosition
from kafka_sla.sources.spark_checkpoints import read_checkpoint

STARTED_MS = [1795274598647, 1795274715730, 1795274744746, 1795274771350]
"""When the query said that its batches began."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The kept checkpoint; each commit was written two seconds after its batch began."""
    copy = tmp_path / "checkpoint"
    shutil.copytree(Path(__file__).with_name("checkpoint"), copy)
    for number, started in enumerate(STARTED_MS):
        written(copy, number, started + 2_000)
    return copy


def written(folder: Path, number: int, at_ms: int) -> None:
    os.utime(folder / "commits" / str(number), ns=(at_ms * 10**6, at_ms * 10**6))


def read(folder: Path | str, start: int = 0, end: int | None = None) -> list[KeptPosition]:
    return read_checkpoint(Checkpoint("enrich", str(folder)), start, end)


def steps(found: list[KeptPosition], partition: int = 0) -> list[tuple[int, int | None]]:
    return [(one.at_ms, one.offset) for one in found if one.partition == partition]


def test_a_batch_s_end_is_committed_when_its_commit_file_appears(folder: Path) -> None:
    found = read(folder)

    assert steps(found) == steps(found, 1) == [(STARTED_MS[i] + 2_000, 25 * (i + 1)) for i in range(4)]
    assert {(one.group, one.topic, one.source) for one in found} == {("enrich", "orders", "spark_checkpoint")}


def test_of_the_time_before_the_last_position_is_told_and_of_the_time_after_none(folder: Path) -> None:
    start, end = STARTED_MS[2], STARTED_MS[3] + 1_000

    assert steps(read(folder, start, end)) == [(STARTED_MS[1] + 2_000, 50), (STARTED_MS[2] + 2_000, 75)]
    assert steps(read(folder, STARTED_MS[3] + 60_000)) == [(STARTED_MS[3] + 2_000, 100)]


def test_a_batch_that_is_planned_but_not_done_has_not_been_read(folder: Path) -> None:
    (folder / "commits" / "3").unlink()

    assert [offset for _, offset in steps(read(folder))] == [25, 50, 75]


def test_a_copied_folder_has_newer_file_times_but_a_batch_ends_before_the_next_one_begins(folder: Path) -> None:
    for number in range(4):
        written(folder, number, STARTED_MS[3] + 86_400_000)

    assert steps(read(folder))[:3] == [(STARTED_MS[i + 1], 25 * (i + 1)) for i in range(3)]


def test_other_sources_of_the_query_are_left_out_and_of_two_that_read_one_partition_the_slower_counts(
    folder: Path,
) -> None:
    about = (folder / "offsets" / "3").read_text().splitlines()[1]
    sources = ["-", "17", '{"logOffset":3}', '{"orders":{"0":100}}', '{"orders":{"0":90},"returns":{"4":7}}']
    (folder / "offsets" / "3").write_text("\n".join(["v1", about, *sources]))

    last = [one for one in read(folder) if one.at_ms == STARTED_MS[3] + 2_000]

    assert [(one.topic, one.partition, one.offset) for one in last] == [("orders", 0, 90), ("returns", 4, 7)]


def test_a_uri_is_read_as_well_as_a_path(folder: Path) -> None:
    assert read(folder.as_uri()) == read(folder)


@pytest.mark.parametrize("there", ["", "empty"])
def test_a_folder_that_is_no_checkpoint_is_told_with_its_cure(tmp_path: Path, there: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(CheckpointUnreadable, match=r"group 'enrich'.*no offsets folder.*checkpointLocation"):
        read(tmp_path / (there or "absent"))


def test_a_log_of_an_unknown_version_is_refused(folder: Path) -> None:
    (folder / "offsets" / "3").write_text("v9\n{}\n")

    with pytest.raises(CheckpointUnreadable, match=r"batch 3 .* version is 'v9', not 'v1'"):
        read(folder)
