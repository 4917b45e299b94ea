"""Damage of stored files is noticed by whoever reads them: pages carry checksums."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import BadImport, DamagedFile, KafkaSlaError
from kafka_sla.files import batches_of, columns_of, write_rows
from kafka_sla.lake.files.export_files import write_stream
from kafka_sla.lake.import_files import read_rows
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS
from kafka_sla.parquet_files import parquet_file, verify, write_options
from kafka_sla.sql import database, inside, one_of
from tests.kafka_sla.loads import MINUTE, at, load, points, span

FLIPS = 100
FACTS = points(*(f"{hour}:{minute:02}" for hour in range(24) for minute in range(60)))
Read = Callable[[str], Any]


def flip(path: Path, content: bytes, dice: random.Random) -> None:
    """The file with one bit of its pages changed; its footer has no checksum."""
    damaged = bytearray(content)
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    damaged[dice.randrange(pages)] ^= 1 << dice.randrange(8)
    path.write_bytes(damaged)


def whole(path: str) -> pa.Table:
    with parquet_file(path, ("topic",)) as file:
        return file.read()


def unnoticed(path: Path, read: Read, seed: int) -> int:
    """How many of the flips changed what is read, and nobody noticed."""
    content, right, dice, missed = path.read_bytes(), read(str(path)), random.Random(seed), 0
    for _ in range(FLIPS):
        flip(path, content, dice)
        with contextlib.suppress(KafkaSlaError):
            missed += read(str(path)) != right
    path.write_bytes(content)
    return missed


@pytest.mark.parametrize(
    "read",
    [
        whole,
        lambda path: list(batches_of(path, 10_000)),
        lambda path: columns_of([path], FACTS.schema),
        lambda path: read_rows(LOG_OFFSETS, Path(path), ["a"]),
    ],
)
def test_a_flipped_bit_changes_nothing_unnoticed(tmp_path: Path, read: Read) -> None:
    write_rows(str(tmp_path / "facts.parquet"), FACTS)

    assert unnoticed(tmp_path / "facts.parquet", read, 1) == 0


def test_a_flipped_bit_in_a_published_file_is_noticed_by_who_reads_its_rows(tmp_path: Path) -> None:
    store = Store.embedded(tmp_path)
    lake, ledger, interval = Lake(store), Ledger(store), span("10:00", "12:00")
    load(lake, ledger, "load1", interval)
    (path,) = map(Path, lake.metric_files(["load1"], CONSUMER_LATENCY))
    write_rows(str(path), pq.read_table(path))  # as a run writes it

    assert unnoticed(path, lambda _: lake.published(CONSUMER_LATENCY.name, interval), 2) == 0


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    write_rows(str(path), FACTS)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(DamagedFile, match=r"facts.parquet cannot be read, .*`kafka-sla store repair`") as told:
        verify([str(path)])
    assert told.value.files == (str(path),)


def test_an_exported_file_carries_checksums_and_a_damaged_one_is_not_imported(tmp_path: Path) -> None:
    stream, path = BytesIO(), tmp_path / "facts.parquet"
    write_stream(FACTS, "parquet", stream)
    content = bytearray(stream.getvalue())
    column = pq.read_metadata(stream).row_group(0).column(0)
    content[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)

    with pytest.raises(BadImport, match="CRC checksum"):
        read_rows(LOG_OFFSETS, path, ["a"])


def test_a_flipped_bit_anywhere_is_damage_or_harmless_and_no_other_error(tmp_path: Path) -> None:
    """In the footer, too, which has no checksum: its names may become no text, its types none that Arrow knows."""
    path, dice, found = tmp_path / "facts.parquet", random.Random(3), 0
    write_rows(str(path), points("10:00"))
    content = path.read_bytes()
    for _ in range(20 * FLIPS):
        damaged = bytearray(content)
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        try:
            verify([str(path)])
        except DamagedFile:
            found += 1
    assert found > FLIPS


def test_times_and_offsets_that_grow_evenly_take_hardly_any_room(tmp_path: Path) -> None:
    seconds = pa.array(range(0, 86_400_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    write_rows(str(tmp_path / "day.parquet"), pa.table({"at": seconds, "offset": list(range(0, 864_000, 10))}))

    assert (tmp_path / "day.parquet").stat().st_size < 4_000, "two numbers a second"


def test_so_do_lists_of_them(tmp_path: Path) -> None:
    commits = [list(range(ten_seconds, ten_seconds + 600_000, 10_000)) for ten_seconds in range(0, 86_400_000, 60_000)]
    times = pa.array([[1_000 * ms for ms in row] for row in commits], pa.list_(pa.timestamp("us", "UTC")))
    rows = pa.table({"commit_times": times, "commit_offsets": pa.array(commits, pa.list_(pa.int64()))})
    write_rows(str(tmp_path / "day.parquet"), rows)

    assert pq.read_table(tmp_path / "day.parquet").equals(rows)
    assert (tmp_path / "day.parquet").stat().st_size < 20_000, "two lists of sixty numbers a minute"


def test_who_reads_some_consumer_groups_verifies_the_row_groups_that_may_hold_them(tmp_path: Path) -> None:
    path, names = tmp_path / "rows.parquet", [f"billing.alerts-{number}" for number in range(10)]
    rows = pa.table({"group": [name for name in names for _ in range(100)], "records": list(range(1_000))})
    pq.write_table(rows, path, row_group_size=100, **write_options(rows.schema))
    records = pq.read_metadata(path).row_group(3).column(1)
    with database() as db:
        of = {name: db.row_groups([str(path)], "group", one_of([name])) for name in (*names, "nobody")}

    assert of == {name: {str(path): [number]} for number, name in enumerate(names)} | {"nobody": {str(path): []}}
    content = bytearray(path.read_bytes())
    content[records.data_page_offset + records.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    verify([str(path)], row_groups=of[names[4]])
    with pytest.raises(DamagedFile):
        verify([str(path)], row_groups=of[names[3]])
    with pytest.raises(DamagedFile):
        verify([str(path)])


def test_who_reads_some_hours_finds_the_row_groups_that_may_hold_them(tmp_path: Path) -> None:
    path, minutes = tmp_path / "rows.parquet", [at("00:00") + n * MINUTE for n in range(240)]
    rows = pa.table({"window_start": pa.array(minutes, pa.timestamp("us", "UTC")), "records": list(range(240))})
    pq.write_table(rows, path, row_group_size=60, **write_options(rows.schema))
    cases = {
        ("00:00", "01:00"): [0],
        ("00:59", "01:00"): [0],
        ("00:59", "01:01"): [0, 1],
        ("01:00", "03:00"): [1, 2],
        ("03:59", "24:00"): [3],
        ("04:00", "24:00"): [],
    }
    with database() as db:
        for asked, row_groups in cases.items():
            assert db.row_groups([str(path)], "window_start", inside(span(*asked))) == {str(path): row_groups}


def test_statistics_that_do_not_tell_leave_no_row_group_out(tmp_path: Path) -> None:
    path, hour = tmp_path / "rows.parquet", span("10:00", "11:00")
    without_zone = pa.array([at("01:00").replace(tzinfo=None)], pa.timestamp("us"))
    pq.write_table(pa.table({"naive": without_zone, "word": ["noon"], "nothing": pa.nulls(1, pa.int64())}), path)
    with database() as db:
        found = [db.row_groups([str(path)], name, inside(hour)) for name in ("naive", "word", "nothing", "not_there")]

    assert [{str(path): [0]}, {str(path): [0]}, {str(path): [0]}, {}] == found


def test_any_damaged_footer_gives_row_groups_or_leaves_all_to_be_verified(tmp_path: Path) -> None:
    """Its statistics, which have no checksum either, end the process where Arrow decodes them."""
    path, dice = tmp_path / "facts.parquet", random.Random(4)
    write_rows(str(path), points("10:00"))
    content, found = path.read_bytes(), []
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    with database() as db:
        for _ in range(5 * FLIPS):
            damaged = bytearray(content)
            damaged[dice.randrange(footer, len(damaged))] ^= 1 << dice.randrange(8)
            path.write_bytes(damaged)
            found.append(db.row_groups([str(path)], "topic", one_of(["orders"])))
            db.row_groups([str(path)], "at", inside(span("10:00", "11:00")))

    assert {str(path): [0]} in found and {} in found
