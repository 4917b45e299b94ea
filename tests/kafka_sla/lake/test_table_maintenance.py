"""What settling removes, and what it must leave."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import files_below, write_text
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.staging import keep_unreadable
from kafka_sla.lake.table_maintenance import MaintenanceResult
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS
from tests.kafka_sla.loads import at, load, points, span, stage

HOUR = span("10:00", "11:00")
OLD = "01d".ljust(32, "0")
SECOND = timedelta(seconds=1)
NOTHING = MaintenanceResult(0, 0, 0, 0, 0, 0, 0)
DAYS = timedelta(days=1, minutes=1)


def now() -> datetime:
    return datetime.now(UTC)


def data_files(store: Store) -> set[str]:
    """What is in place: not in the trash."""
    return {path for area in ("facts", "staging") for path in files_below(f"{store.warehouse}/{area}")}


def test_a_superseded_load_is_kept_for_its_readers_and_then_dropped(store: Store, lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, OLD, HOUR)
    reading = ledger.publications.slices(["a"], HOUR)
    load(lake, ledger, "new", HOUR)
    lake.maintain()
    assert lake.read(CONSUMER_LATENCY, reading).num_rows == 60
    time.sleep(1.1)
    assert lake.maintain(grace_period=SECOND, orphan_age=SECOND).dropped_loads == 1
    assert lake.metric_files([OLD], CONSUMER_LATENCY) == []
    assert Path(lake.stage_dir(OLD)).exists(), "who planned before the drop still reads"
    time.sleep(1.1)
    lake.maintain(grace_period=SECOND, orphan_age=SECOND)
    assert not Path(lake.stage_dir(OLD)).exists()
    assert lake.published("consumer_latency", HOUR).num_rows == 60


def test_readers_and_the_abandoned_have_a_day_and_the_trash_a_week(lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, OLD, HOUR)
    load(lake, ledger, "new", HOUR)
    stage(lake, "02d".ljust(32, "0"), HOUR)
    began, week = now(), 24 * 7

    found = [lake.maintain(began + timedelta(hours=passed)) for passed in (23, 25, 24 + week, 26 + week)]

    assert [done.dropped_loads for done in found] == [0, 2, 0, 0]
    assert [done.trashed_files > 0 for done in found] == [False, True, False, False]
    assert [done.deleted_files > 0 for done in found] == [False, False, False, True]


def test_a_load_that_shows_anywhere_is_kept(lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, "day", span("0:00", "24:00"))
    load(lake, ledger, "rerun", HOUR)
    lake.maintain(now() + 3 * DAYS)
    lake.maintain(now() + 6 * DAYS)
    assert lake.published("consumer_latency", span("0:00", "24:00")).num_rows == 24 * 60


@pytest.mark.parametrize("added", [True, False])
def test_a_load_that_was_never_published_goes_when_it_is_old_and_can_be_told_so(
    lake: Lake, ledger: Ledger, added: bool
) -> None:
    files = stage(lake, OLD, HOUR)
    if added:
        lake.add_load(OLD, HOUR, files)
    lake.maintain()
    assert Path(files["steady_state"][0]).exists()
    lake.maintain(now() + DAYS)
    lake.maintain(now() + 3 * DAYS)
    assert not Path(lake.stage_dir(OLD)).exists()
    assert lake.metric_files([OLD], CONSUMER_LATENCY) == []


def test_a_folder_still_written_to_is_left_alone_with_all_its_files(lake: Lake) -> None:
    files = stage(lake, "running", HOUR)
    old = (now() - 2 * DAYS).timestamp()
    os.utime(files["consumer_latency"][0], (old, old))
    lake.maintain()
    assert Path(files["consumer_latency"][0]).exists()


def test_unreadable_commit_records_go_one_by_one_when_they_are_old(store: Store, lake: Lake) -> None:
    for hour in (1, 2):
        keep_unreadable(store, "a", span(f"{hour}:00", f"{hour + 1}:00"), points("10:00"))
    kept = sorted((Path(store.warehouse) / "unreadable_commit_records").rglob("*.parquet"))
    old = (now() - 2 * DAYS).timestamp()
    os.utime(str(kept[0]), (old, old))
    assert lake.maintain().trashed_files == 1
    assert [Path(str(path)).exists() for path in kept] == [False, True]


def test_the_archive_of_reports_is_kept_however_old(store: Store, lake: Lake) -> None:
    write_text(page := f"{store.archive}/Weekly/week-20200302T0000Z.html", "kept promises")
    old = (now() - 400 * DAYS).timestamp()
    os.utime(page, (old, old))
    lake.maintain()
    assert Path(page).read_text() == "kept promises"


STRANGERS = (
    "accounts/2024.csv",
    "readme.txt",
    "facts/notes.parquet",
    "staging/thesis/chapter.tex",
    "kafka_sla/backup.tar",
    "commit_records/a/mine.parquet",
    "trash/holiday.jpg",
    "trash/20200101T000000Z/photo.jpg",
)


def test_files_of_others_survive_wherever_they_lie(store: Store, lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, OLD, HOUR)
    load(lake, ledger, "new", HOUR)
    long_ago = (now() - 400 * DAYS).timestamp()
    for name in STRANGERS:
        write_text(f"{store.warehouse}/{name}", name)
        os.utime(f"{store.warehouse}/{name}", (long_ago, long_ago))

    for later in (1, 3, 30):
        lake.maintain(now() + later * DAYS)

    assert not Path(lake.stage_dir(OLD)).exists()
    assert [Path(store.warehouse, name).read_text() for name in STRANGERS] == list(STRANGERS)


def test_what_is_swept_lies_in_the_trash_for_a_week_and_can_be_moved_back(store: Store, lake: Lake) -> None:
    (path, _) = (file for files in stage(lake, OLD, HOUR).values() for file in files)
    rows = Path(path).read_bytes()

    swept = lake.maintain(now() + 2 * DAYS)
    (trashed,) = (
        p for p in files_below(f"{store.warehouse}/trash") if p.endswith(f"consumer_latency/{Path(path).name}")
    )
    assert (swept.trashed_files, swept.deleted_files, Path(path).exists()) == (2, 0, False)
    assert Path(trashed).read_bytes() == rows

    assert lake.maintain(now() + 8 * DAYS).deleted_files == 0
    os.renames(trashed, path)
    later = lake.maintain(now() + 10 * DAYS)
    assert (later.trashed_files, later.deleted_files) == (1, 1)
    assert lake.maintain(now() + 18 * DAYS).deleted_files == 1
    assert list(Path(store.warehouse, "trash").iterdir()) == []


def test_a_warehouse_reached_by_another_path_is_not_swept(store: Store, lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, "load", HOUR)
    link = Path(store.warehouse).with_name("link")
    link.symlink_to(store.warehouse)
    before = files_below(store.warehouse)

    with pytest.raises(StoreError, match=r"its warehouse is .*/link"):
        Lake(replace(store, warehouse=str(link))).maintain(now() + DAYS)
    assert before.keys() <= files_below(store.warehouse).keys()


def test_facts_of_a_day_become_one_file_with_the_same_rows(store: Store, lake: Lake) -> None:
    for minute in range(10):
        lake.append_facts(LOG_OFFSETS, points(f"9:{minute:02}", f"30:{minute:02}"))
    lake.append_facts(LOG_OFFSETS, points("60:00"))
    rows, planned = lake.read_facts(LOG_OFFSETS, span("0:00", "72:00")), data_files(store)
    assert lake.maintain().compacted_files == 20
    assert lake.read_facts(LOG_OFFSETS, span("0:00", "72:00")).equals(rows)
    assert planned < data_files(store), "who planned before reads on"
    lake.maintain(now() + DAYS)
    assert len(data_files(store)) == 3
    assert lake.read_facts(LOG_OFFSETS, span("0:00", "72:00")).equals(rows)
    assert lake.append_facts(LOG_OFFSETS, points("9:00", "60:00")) == 0


def test_a_day_of_very_many_facts_becomes_few_files_that_follow_each_other(store: Store, lake: Lake) -> None:
    """About as many rows are in memory as one file has: a day of real clusters has hundreds of millions."""
    for hour in range(23):  # each has rows before and after a full hour, and of it
        lake.append_facts(LOG_OFFSETS, points(f"{hour}:30", f"{hour}:45", f"{hour + 1}:00", f"{hour + 1}:15"))
    whole = span("0:00", "24:00")
    rows = lake.read_facts(LOG_OFFSETS, whole)

    assert lake.maintain(rows_a_file=8).compacted_files == 23

    assert lake.read_facts(LOG_OFFSETS, whole).equals(rows)
    pieces = [lake.counted_fact_files(LOG_OFFSETS, at(f"{n}:00"), at(f"{n + 1}:59")) for n in range(0, 24, 2)]
    assert [[rows.all for rows in files.values()] for files in pieces] == [[6], *[[8]] * 10, [6]]
    assert lake.maintain(rows_a_file=8).compacted_files == 0, "it has as few files as it may have"
    lake.append_facts(LOG_OFFSETS, points("23:50"))
    assert lake.maintain(rows_a_file=8).compacted_files == 0, "one more is not worth it"


def test_snapshots_are_forgotten_when_they_were_replaced_long_ago(lake: Lake, ledger: Ledger) -> None:
    for number in range(3):
        load(lake, ledger, f"load {number}", span(f"{number}:00", f"{number}:05"))
    assert lake.maintain().expired_snapshots == 0
    assert lake.maintain(now() + DAYS).expired_snapshots == 6, "two tables: what each began with, and two loads"
    assert lake.published("consumer_latency", span("0:00", "24:00")).num_rows == 15


def test_settling_a_settled_store_does_nothing(lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, "one", HOUR)
    lake.maintain(now() + DAYS)
    assert lake.maintain(now() + DAYS) == NOTHING


def test_settling_an_empty_store_does_nothing(lake: Lake) -> None:
    assert lake.maintain() == NOTHING


@pytest.mark.slow
def test_a_hundred_loads_are_read_the_same_before_and_after(tmp_path: Path) -> None:
    store = Store.embedded(tmp_path)
    lake, ledger = Lake(store), Ledger(store)
    clocks = [f"{h}:{m:02}" for h, m in itertools.product(range(9), range(0, 60, 5))]
    for start, end in itertools.pairwise(clocks):
        load(lake, ledger, f"load {start}", span(start, end))
    before = lake.published("consumer_latency", span("0:00", "24:00"))
    load(lake, ledger, "half", span("4:00", "8:00"))
    lake.maintain(now() + DAYS)
    lake.maintain(now() + 3 * DAYS)
    after = lake.published("consumer_latency", span("0:00", "24:00"))
    assert after.equals(before)
    assert len(lake.published_files(CONSUMER_LATENCY, ledger.publications.slices(["a"], span("0:00", "24:00")))) == 9
