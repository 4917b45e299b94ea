"""Small loads of a day that become one: what is read stays the same, for us and others, whatever happens meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.config.store import Store
from kafka_sla.files import files_below
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.span_totals import totals
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.load_sums import Piece
from kafka_sla.model.entities import EVERYTHING, Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, NON_CONSUMED, STEADY_STATE
from kafka_sla.sla.rollups import DAY_MS
from tests.kafka_sla.loads import DAY, at, load, span, write

pytestmark = pytest.mark.slow

NAMES = (CONSUMER_LATENCY.name, STEADY_STATE.name)
WHOLE_DAY = span("0:00", "24:00")
DAYS = timedelta(days=1, minutes=1)
CLUSTERS = ("a", "b")
BOTH, ALONE = "b0" * 16, "a0" * 16
FILES = 8
"""Of two tables and two loads, each of two hours."""


def pieces(start: str, end: str, minutes: int = 5) -> Iterator[Interval]:
    return span(start, end).pieces(timedelta(minutes=minutes))


def identifier(interval: Interval) -> str:
    return f"{interval.start:%d%H%M}".ljust(32, "0")


@pytest.fixture
def a_day(lake: Lake, ledger: Ledger) -> Lake:
    """Loads of two clusters from 0:00 to 1:30 and from 2:00 to 3:20, some measured again, for one cluster or both."""
    for one in (*pieces("0:00", "1:30", 10), *pieces("2:00", "3:20", 10)):
        load(lake, ledger, identifier(one), one, CLUSTERS)
    load(lake, ledger, BOTH, span("0:30", "0:55"), CLUSTERS, partitions=2)
    load(lake, ledger, ALONE, span("1:00", "1:10"), ("a",), partitions=3)
    lake.show(WHOLE_DAY, NAMES)
    return lake


def rows_of(lake: Lake) -> dict[str, pa.Table]:
    return {name: lake.published(name, EVERYTHING) for name in NAMES}


def by_others(store: Store) -> dict[str, list[dict[str, Any]]]:
    """The rows of `main` in their contract's columns, as any engine reads them."""
    found = {}
    for table in (CONSUMER_LATENCY, STEADY_STATE):
        rows = Iceberg(store, Ledger(store).open).table(table).scan(selected_fields=table.names).to_arrow()
        found[table.name] = rows.sort_by([(name, "ascending") for name in table.key]).to_pylist()
    return found


def loads_of(ledger: Ledger) -> set[str]:
    return {one.load_id for one in ledger.publications.slices(None, EVERYTHING)}


def test_rows_are_the_same_in_fewer_files(store: Store, a_day: Lake, ledger: Ledger) -> None:
    before, others = rows_of(a_day), by_others(store)
    last = max(one.published_at for one in ledger.queries.publications(WHOLE_DAY))
    assert a_day.maintain().merged_loads == 17, "two of nineteen are not shown any more"
    assert rows_of(a_day) == before
    assert by_others(store) == others
    assert len(loads_of(ledger)) == 2, "before and after the gap"
    assert max(one.published_at for one in ledger.queries.publications(WHOLE_DAY)) == last
    for later in (1, 2, 3):
        a_day.maintain(datetime.now(UTC) + later * DAYS)
    assert rows_of(Lake(store)) == before
    assert by_others(store) == others
    assert len(files_below(f"{store.warehouse}/staging")) == FILES
    assert files_below(f"{store.warehouse}/published") == {}, "nothing is shown in part any more"


def test_what_nobody_published_stays_unpublished(a_day: Lake, ledger: Ledger) -> None:
    a_day.maintain()
    assert ledger.publications.incomplete(["a"], span("1:30", "2:00")) == ["a"]
    assert ledger.publications.incomplete(["a", "b"], span("0:00", "1:30")) == []


def test_merging_again_does_nothing(a_day: Lake) -> None:
    a_day.maintain()
    assert a_day.maintain().merged_loads == 0


def test_a_day_that_is_not_over_for_a_day_is_left_alone(a_day: Lake) -> None:
    tomorrow = DAY + timedelta(days=1)
    assert a_day.maintain(tomorrow + timedelta(hours=23)).merged_loads == 0
    assert a_day.maintain(tomorrow + timedelta(hours=24)).merged_loads > 0


def test_a_few_loads_and_those_that_end_on_another_day_are_left_alone(lake: Lake, ledger: Ledger) -> None:
    for one in pieces("12:00", "15:30", 30):
        load(lake, ledger, identifier(one), one)
    load(lake, ledger, "night", span("16:00", "30:00"))
    load(lake, ledger, "midnight", span("23:00", "25:00"))
    assert lake.maintain().merged_loads == 0
    for one in (span("15:30", "16:00"), *pieces("30:00", "34:00", 30)):
        load(lake, ledger, identifier(one), one)
    assert lake.maintain().merged_loads == 8 + 8
    assert {"night", "midnight"} < loads_of(ledger)


def test_what_is_measured_again_afterwards_counts(store: Store, a_day: Lake, ledger: Ledger) -> None:
    a_day.maintain()
    again = span("0:20", "0:30")
    load(a_day, ledger, "later", again, CLUSTERS, records_consumed=7)
    a_day.show(again, NAMES)
    assert set(a_day.published(CONSUMER_LATENCY.name, again)["records_consumed"].to_pylist()) == {7}
    others = by_others(store)[CONSUMER_LATENCY.name]
    assert {row["records_consumed"] for row in others if again.start <= row["window_start"] < again.end} == {7}
    assert len(others) == a_day.published(CONSUMER_LATENCY.name, WHOLE_DAY).num_rows


def test_what_is_published_meanwhile_is_not_hidden(a_day: Lake, ledger: Ledger) -> None:
    slices = ledger.publications.slices(None, span("0:00", "1:30"))
    load(a_day, ledger, "meanwhile", span("0:20", "0:30"), CLUSTERS, records_consumed=7)
    before = rows_of(a_day)
    assert not ledger.publications.merge(slices, "merged too late")
    assert rows_of(a_day) == before
    assert "merged too late" not in loads_of(ledger)


def test_killed_before_it_is_published_it_begins_anew(
    store: Store, a_day: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(a_day)
    with monkeypatch.context() as patched:
        patched.setattr("kafka_sla.ledger.publications.Publications.merge", _killed)
        with pytest.raises(KeyboardInterrupt):
            a_day.maintain()
    assert rows_of(a_day) == before
    assert a_day.maintain().merged_loads == 17
    for later in (2, 4, 6):
        a_day.maintain(datetime.now(UTC) + later * DAYS)
    assert rows_of(a_day) == before
    assert len(files_below(f"{store.warehouse}/staging")) == FILES


def test_killed_before_others_see_it_they_see_it_next_time(
    store: Store, a_day: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = by_others(store)
    with monkeypatch.context() as patched:
        patched.setattr("kafka_sla.lake.loads.Loads.show", _killed)
        with pytest.raises(KeyboardInterrupt):
            a_day.maintain()
    assert by_others(store) == others
    for later in (1, 2, 3):
        a_day.maintain(datetime.now(UTC) + later * DAYS)
    assert by_others(store) == others
    assert len(files_below(f"{store.warehouse}/staging")) == FILES


def test_a_damaged_file_leaves_its_day_as_it_is(a_day: Lake, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    for one in pieces("24:00", "24:40"):
        load(a_day, ledger, identifier(one), one, CLUSTERS)
    broken = identifier(span("0:20", "0:30"))
    (path,) = Path(a_day.stage_dir(broken)).glob("consumer_latency/*.parquet")
    path.write_bytes(path.read_bytes()[:200])
    with caplog.at_level(logging.WARNING):
        assert a_day.maintain().merged_loads == 8 + 8, "what follows the gap, and the next day"
    assert str(path) in caplog.text
    assert broken in loads_of(ledger)


def test_a_file_that_no_table_names_leaves_its_day_as_it_is(
    a_day: Lake, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """What was published without one of its files can be measured again as long as somebody can find that."""
    torn = identifier(span("0:20", "0:30"))
    (path,) = Path(a_day.stage_dir(torn)).glob("consumer_latency/*.parquet")
    path.with_name("part-00001.parquet").write_bytes(path.read_bytes())
    with caplog.at_level(logging.WARNING):
        assert a_day.maintain().merged_loads == 8, "what follows the gap"
    assert "no table names" in caplog.text
    assert "part-00001.parquet" in caplog.text
    assert torn in loads_of(ledger)


def test_more_rows_than_one_load_should_have_make_several(
    store: Store, a_day: Lake, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(a_day)
    monkeypatch.setattr("kafka_sla.lake.load_merging._MOST_ROWS", 100)
    a_day.maintain(fewest=2)
    assert rows_of(a_day) == before
    loads = {path.parts[-3] for path in merged_files(store)}
    assert 2 < len(loads) < 10
    assert max(sum(rows_in(path) for path in merged_files(store) if one in path.parts) for one in loads) <= 100


def rows_in(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)


def merged_files(store: Store) -> list[Path]:
    return sorted(Path(store.warehouse).glob("staging/*/consumer_latency/[0-9][0-9].parquet"))


def test_who_reads_an_hour_reads_one_file(lake: Lake, ledger: Ledger) -> None:
    for one in pieces("0:00", "6:00", 40):
        load(lake, ledger, identifier(one), one)
    lake.maintain()
    hour = span("3:00", "4:00")
    files = lake.published_files(CONSUMER_LATENCY, ledger.publications.slices(None, hour))
    assert [pq.read_table(path)["window_start"].to_pylist()[::59] for path in files] == [[hour.start, at("3:59")]]


@pytest.mark.parametrize("late", [None, "4:00", "11:00"])
def test_it_is_trusted_no_further_than_what_was_merged(lake: Lake, ledger: Ledger, late: str | None) -> None:
    """`carry` may answer an earlier time than before, which costs reading; never a later one, which would be wrong."""
    ledger.open(writing=True)
    for one in pieces("0:00", "12:00", 60):
        ledger.ingestions.record("a", one)
        load(lake, ledger, identifier(one), one)
        if late and one.start == span("8:00", "9:00").start:
            ledger.ingestions.record("a", span(late, "12:30"))
    ends = [one.end for one in pieces("0:00", "12:00", 60)]
    before = [ledger.publications.carry("a", end) for end in ends]
    lake.maintain()
    after = [ledger.publications.carry("a", end) for end in ends]
    for old, new in zip(before, after, strict=True):
        assert new is None or (old is not None and new[0] <= old[0])
    if late != "4:00":
        assert [found and found[0] for found in after] == [found and found[0] for found in before]


def test_sums_are_the_same_and_fewer(store: Store, lake: Lake, ledger: Ledger) -> None:
    ledger.open(writing=True)
    for one in pieces("0:00", "24:00", 60):
        rows = [
            {"cluster": "a", "group": "g", "topic": "t", "partition": p, "window_start": w.start, "window_end": w.end}
            | {"non_consumed_low": w.start.minute, "non_consumed_high": w.start.hour, "unread_records": p}
            for w in one.windows(60_000)
            for p in range(3)
        ]
        files = {NON_CONSUMED.name: [write(lake, identifier(one), one, NON_CONSUMED, rows)]}
        lake.add_load(identifier(one), one, files)
        ledger.publications.publish(["a"], one, identifier(one), 0)
    spans = [WHOLE_DAY, span("3:00", "4:00"), span("3:05", "7:25"), span("0:02", "5:13")]
    before = [totals(lake, ledger, NON_CONSUMED, one, "SELECT * FROM totals", 10**9) for one in spans]
    assert lake.maintain().merged_loads == 24
    assert [totals(lake, ledger, NON_CONSUMED, one, "SELECT * FROM totals", 10**9) for one in spans] == before
    assert len({piece.load_id for piece in ledger.load_sums.read(NON_CONSUMED.name, day_pieces(ledger))}) == 1


def day_pieces(ledger: Ledger) -> list[Piece]:
    return [Piece(one.load_id, DAY_MS, DAY) for one in ledger.publications.slices(None, WHOLE_DAY)]


def result(load_id: str, interval: Interval, expectation: str, *, success: bool) -> dict[str, Any]:
    return {
        "load_id": load_id,
        "interval_start": interval.start,
        "interval_end": interval.end,
        "table_name": CONSUMER_LATENCY.name,
        "expectation_id": expectation,
        "expectation": f"{expectation} in words",
        "severity": "critical",
        "success": success,
        "observed": "5 rows",
        "unexpected_rows": 0 if success else 5,
    }


def test_what_held_is_said_once_and_what_did_not_stays(lake: Lake, ledger: Ledger) -> None:
    broken = {span("0:10", "0:15"), span("0:30", "0:35")}
    for one in pieces("0:00", "1:00"):
        load(lake, ledger, identifier(one), one)
        ledger.validations.store(
            [
                result(identifier(one), one, "keys", success=True),
                result(identifier(one), one, "bounds", success=one not in broken),
            ]
        )
    lake.maintain()
    (merged,) = loads_of(ledger)
    said = {(r["load_id"], r["expectation_id"]): r for r in ledger.validations.results(WHOLE_DAY)}
    assert {key for key, row in said.items() if not row["success"]} == {(identifier(one), "bounds") for one in broken}
    assert said[merged, "keys"]["observed"] == "held in 12 of 12 loads"
    assert said[merged, "bounds"]["observed"] == "held in 10 of 12 loads"
    assert said[merged, "keys"]["expectation"] == "keys in words"
    assert len(said) == 4


def test_a_load_that_was_replaced_is_forgotten_with_its_files(store: Store, lake: Lake, ledger: Ledger) -> None:
    old, new = "0".ljust(32, "0"), "1".ljust(32, "0")
    for load_id in (old, new):
        load(lake, ledger, load_id, WHOLE_DAY)
        ledger.validations.store([result(load_id, WHOLE_DAY, "keys", success=True)])
    for later in (2, 4):
        lake.maintain(datetime.now(UTC) + later * DAYS)
    assert {r["load_id"] for r in ledger.validations.results(WHOLE_DAY)} == {old, new}
    lake.maintain(datetime.now(UTC) + 10 * DAYS)
    assert {r["load_id"] for r in ledger.validations.results(WHOLE_DAY)} == {new}
    assert ledger.publications.known_loads([old, new]) == {new}


def _killed(*_: Any) -> None:
    raise KeyboardInterrupt
