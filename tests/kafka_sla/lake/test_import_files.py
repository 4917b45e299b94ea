"""Files that people keep, in, or refused as a whole."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import BadImport
from kafka_sla.lake.import_files import import_committed_offsets, import_log_offsets
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from tests.kafka_sla.loads import at, points, span

HEADER = "cluster,topic,partition,at,log_start_offset,log_end_offset,source\n"
DAY = span("0:00", "24:00")


@pytest.fixture
def embedded(tmp_path: Path) -> Store:
    return Store.embedded(tmp_path / "store")


def csv(folder: Path, *rows: str, header: str = HEADER, name: str = "offsets.csv") -> Path:
    path = folder / name
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def refused(store: Store, path: Path) -> str:
    with pytest.raises(BadImport) as caught:
        import_log_offsets(Lake(store), path, ["a", "b"])
    assert Lake(store).read_facts(LOG_OFFSETS, DAY).num_rows == 0
    return str(caught.value).removeprefix(f"{path}: ")


def test_log_offsets_are_imported_from_csv_once(tmp_path: Path, embedded: Store) -> None:
    lake = Lake(embedded)
    path = csv(
        tmp_path, "a,orders,0,2026-03-02T10:00:00.000Z,,600,list_offsets", "b,orders,0,2026-03-02T10:01:00.250Z,5,9,x"
    )
    assert [import_log_offsets(lake, path, ["a", "b"]) for _ in range(2)] == [2, 0]
    assert lake.read_facts(LOG_OFFSETS, DAY, ["a"]).equals(points("10:00"))
    found = lake.read_facts(LOG_OFFSETS, DAY, ["b"]).to_pylist()[0]
    assert found["at"] == datetime.fromisoformat("2026-03-02T10:01:00.250Z")
    assert (found["log_start_offset"], found["log_end_offset"], found["source"]) == (5, 9, "x")
    assert (Ledger(embedded).ingestions.readable_seq("a"), Ledger(embedded).ingestions.readable_seq("b")) == (1, 1)


def test_committed_offsets_are_imported_from_parquet(tmp_path: Path, embedded: Store) -> None:
    rows = pa.table(
        {
            "cluster": ["a", "a"],
            "group": ["g", "g"],
            "topic": ["t", "t"],
            "partition": pa.array([0, 0], pa.int64()),
            "at": pa.array([at("10:00").replace(tzinfo=None), at("10:01").replace(tzinfo=None)], pa.timestamp("ms")),
            "committed_offset": ["12.0", "deleted"],
            "source": ["mine", "mine"],
            "note": ["not", "asked for"],
        }
    )
    pq.write_table(rows, tmp_path / "commits.parquet")
    lake = Lake(embedded)
    assert import_committed_offsets(lake, tmp_path / "commits.parquet", ["a"]) == 2
    found = lake.read_facts(COMMITTED_OFFSETS, DAY, columns=["at", "committed_offset"]).to_pylist()
    assert found == [{"at": at("10:00"), "committed_offset": 12}, {"at": at("10:01"), "committed_offset": None}]


COMMITS = "cluster,group,topic,partition,at,committed_offset,source\n"


def test_an_empty_committed_offset_is_refused_with_advice(tmp_path: Path, embedded: Store) -> None:
    rows = [
        f"a,g,t,0,2026-03-02T10:0{minute}:00Z,{offset},poll" for minute, offset in enumerate(["7", "", "Deleted", "-"])
    ]
    path = csv(tmp_path, *rows, header=COMMITS)
    with pytest.raises(BadImport) as caught:
        import_committed_offsets(Lake(embedded), path, ["a"])
    allowed = "allowed: a whole number, 0 or more, or the word deleted where the group's offset was deleted or expired"
    assert str(caught.value).splitlines() == [
        f"{path}: nothing was imported, the file has 2 errors:",
        f"  row 3, committed_offset: empty; leave the row out when nothing was seen; {allowed}",
        f"  row 5, committed_offset: '-'; {allowed}",
    ]


def test_a_deleted_offset_is_imported_from_csv_by_its_word(tmp_path: Path, embedded: Store) -> None:
    lake = Lake(embedded)
    path = csv(tmp_path, "a,g,t,0,2026-03-02T10:00:00Z,deleted,poll", header=COMMITS)
    assert import_committed_offsets(lake, path, ["a"]) == 1
    assert lake.read_facts(COMMITTED_OFFSETS, DAY, columns=["committed_offset"]).to_pylist() == [
        {"committed_offset": None}
    ]


def test_what_was_exported_can_be_imported(tmp_path: Path, embedded: Store) -> None:
    lake = Lake(embedded)
    lake.append_facts(LOG_OFFSETS, points("10:00", "10:01"))
    pq.write_table(lake.published("log_offsets", DAY), tmp_path / "mine.parquet")
    other = Lake(Store.embedded(tmp_path / "other"))
    assert import_log_offsets(other, tmp_path / "mine.parquet", ["a"]) == 2
    assert other.published("log_offsets", DAY).equals(lake.published("log_offsets", DAY))


@pytest.mark.parametrize(
    "text",
    ["2026-03-02T10:00:00Z", "2026-03-02T11:00:00.000+01:00", "2026-03-02 10:00:00", " 2026-03-02T10:00 "],
)
def test_a_time_may_name_its_offset_and_is_utc_otherwise(tmp_path: Path, embedded: Store, text: str) -> None:
    lake = Lake(embedded)
    assert import_log_offsets(lake, csv(tmp_path, f"a,orders,0,{text},,600,list_offsets"), ["a"]) == 1
    assert lake.read_facts(LOG_OFFSETS, DAY).equals(points("10:00"))


def test_a_compressed_file_quotes_and_a_byte_order_mark_are_read(tmp_path: Path, embedded: Store) -> None:
    row = '"a","orders",0,2026-03-02T10:{:02}:00Z,,600,"said ""so"", twice"\n'
    with gzip.open(tmp_path / "packed.csv.gz", "wt") as packed:
        packed.write(HEADER + row.format(0))
    (tmp_path / "marked.csv").write_text("\ufeff" + HEADER + row.format(1))
    lake = Lake(embedded)
    assert [import_log_offsets(lake, tmp_path / name, ["a"]) for name in ("packed.csv.gz", "marked.csv")] == [1, 1]
    assert set(lake.read_facts(LOG_OFFSETS, DAY)["source"].to_pylist()) == {'said "so", twice'}


def test_a_file_without_rows_lands_nothing(tmp_path: Path, embedded: Store) -> None:
    assert import_log_offsets(Lake(embedded), csv(tmp_path), ["a"]) == 0


def test_one_bad_value_keeps_the_whole_file_out_and_says_where_it_is(tmp_path: Path, embedded: Store) -> None:
    good = "a,orders,0,2026-03-02T10:00:00Z,,600,x"
    assert refused(embedded, csv(tmp_path, good, good.replace("600", "-1"), good)) == (
        "nothing was imported, the file has 1 error:\n  row 3, log_end_offset: '-1'; allowed: a whole number, 0 or more"
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("c,orders,0,2026-03-02T10:00:00Z,,6,x", "cluster: 'c'; allowed: a cluster of the configuration (a, b)"),
        ("A,orders,0,2026-03-02T10:00:00Z,,6,x", "cluster: 'A'; allowed: a cluster of the configuration (a, b)"),
        ("a,,0,2026-03-02T10:00:00Z,,6,x", "topic: empty; allowed: a topic name: letters"),
        ("a,or ders,0,2026-03-02T10:00:00Z,,6,x", "topic: 'or ders'; allowed: a topic name: letters"),
        ("a,orders,4294967296,2026-03-02T10:00:00Z,,6,x", "partition: '4294967296'; allowed: a whole number"),
        ("a,orders,0,1772445600,,6,x", "at: '1772445600'; allowed: an ISO-8601 time from 1970 on"),
        ("a,orders,0,2026-02-30T10:00:00Z,,6,x", "at: '2026-02-30T10:00:00Z'; allowed: an ISO-8601 time"),
        ("a,orders,0,infinity,,6,x", "at: 'infinity'; allowed: an ISO-8601 time"),
        ("a,orders,0,1969-12-31T23:59:59Z,,6,x", "at: '1969-12-31T23:59:59Z'; allowed: an ISO-8601 time"),
        ("a,orders,0,2026-03-02T10:00:00Z,7,6,x", "log_start_offset: '7'; allowed: a whole number, 0 or more, not"),
        ("a,orders,0,2026-03-02T10:00:00Z,,,x", "log_end_offset: empty; allowed: a whole number, 0 or more"),
        ("a,orders,0,2026-03-02T10:00:00Z,,6.5,x", "log_end_offset: '6.5'; allowed: a whole number, 0 or more"),
        ("a,orders,0,2026-03-02T10:00:00Z,,6,", "source: empty; allowed: any text but nothing"),
    ],
)
def test_each_column_says_what_it_allows(tmp_path: Path, embedded: Store, row: str, said: str) -> None:
    assert f"\n  row 2, {said}" in refused(embedded, csv(tmp_path, row))


def test_the_first_twenty_mistakes_are_listed_in_order_and_all_are_counted(tmp_path: Path, embedded: Store) -> None:
    message = refused(embedded, csv(tmp_path, *["c,orders,x,2026-03-02T10:00:00Z,,6,x"] * 30_000)).splitlines()
    assert message[0] == "nothing was imported, the file has 60000 errors:"
    assert [line.split(";")[0] for line in message[1:4]] == [
        "  row 2, cluster: 'c'",
        "  row 2, partition: 'x'",
        "  row 3, cluster: 'c'",
    ]
    assert (len(message), message[-1]) == (22, "  … and 59980 more")


def test_a_mistake_far_down_has_its_own_row_number(tmp_path: Path, embedded: Store) -> None:
    good = [f"a,orders,{i},2026-03-02T10:00:00Z,,600,x" for i in range(300_000)]
    assert "row 300002, cluster: 'c'" in refused(embedded, csv(tmp_path, *good, "c,orders,0,2026-03-02T10:00:00Z,,6,x"))


def test_rows_of_the_wrong_width_are_numbered(tmp_path: Path, embedded: Store) -> None:
    assert refused(embedded, csv(tmp_path, "a,orders,0,2026-03-02T10:00:00Z,,600,x", "a,orders")) == (
        "nothing was imported, the file has 1 error:\n  row 3: 2 columns; allowed: 7"
    )


def test_missing_columns_are_named(tmp_path: Path, embedded: Store) -> None:
    assert refused(embedded, csv(tmp_path, header="cluster,topic,when\n")) == (
        "lacks the columns partition, at, log_start_offset, log_end_offset, source; log_offsets needs cluster, topic, "
        "partition, at, log_start_offset, log_end_offset, source; the file has cluster, topic, when"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone.csv", "no such file"),
        ("offsets.txt", "neither CSV nor Parquet by its name; allowed: *.csv, *.csv.gz, *.parquet"),
        ("empty.csv", "cannot be read as CSV: Empty CSV file"),
        ("broken.parquet", "cannot be read as Parquet: "),
    ],
)
def test_a_file_that_is_none_says_so(tmp_path: Path, embedded: Store, name: str, said: str) -> None:
    for there in ("offsets.txt", "empty.csv", "broken.parquet"):
        (tmp_path / there).write_text("")
    assert said in refused(embedded, tmp_path / name)
