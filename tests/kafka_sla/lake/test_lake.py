"""Facts appended once, loads seen whole, rows read by interval; with several processes at once and with kills."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedFile, StoreError
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows, arrow_schema
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, FACTS, LOG_OFFSETS, STEADY_STATE, TABLES
from tests.kafka_sla.databases import in_each
from tests.kafka_sla.loads import DAY, MINUTE, at, changed_since, load, metric_row, points, span, stage, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEASURED = (CONSUMER_LATENCY, STEADY_STATE)
"""The tables that `stage` fills."""
SPAWN = multiprocessing.get_context("spawn")


database = in_each


def minutes(rows: pa.Table) -> list[int]:
    """The minutes of the day that rows of consumer_latency are of; their figures must agree."""
    found = [int((start - DAY) / MINUTE) for start in rows["window_start"].to_pylist()]
    assert found == rows["records_consumed"].to_pylist()
    return found


class TestFacts:
    def test_rows_come_back_by_key_with_the_contract_s_columns(self, lake: Lake) -> None:
        assert lake.append_facts(LOG_OFFSETS, points("10:01", "10:00")) == 2
        assert lake.read_facts(LOG_OFFSETS, span("10:00", "10:02")).equals(points("10:00", "10:01"))

    def test_rows_that_are_there_already_are_not_appended_again(self, lake: Lake) -> None:
        lake.append_facts(LOG_OFFSETS, points("10:00", "10:01"))
        assert lake.append_facts(LOG_OFFSETS, points("10:00", "10:01", "10:02", "10:02")) == 1
        assert lake.append_facts(LOG_OFFSETS, points("10:00", source="record")) == 1
        assert lake.read_facts(LOG_OFFSETS, span("0:00", "24:00")).num_rows == 4

    def test_a_key_column_without_a_value_is_a_value_too(self, lake: Lake) -> None:
        deleted = {
            "cluster": "a",
            "group": "g",
            "topic": "t",
            "partition": 0,
            "at": at("10:00"),
            "source": "commit_log",
        }
        rows = arrow_rows(COMMITTED_OFFSETS, [deleted])
        assert [lake.append_facts(COMMITTED_OFFSETS, rows) for _ in range(2)] == [1, 0]

    def test_an_interval_holds_its_start_and_not_its_end(self, lake: Lake) -> None:
        lake.append_facts(LOG_OFFSETS, points("10:00", "10:05"))
        assert lake.read_facts(LOG_OFFSETS, span("10:00", "10:05")).equals(points("10:00"))

    def test_clusters_and_columns_can_be_chosen(self, lake: Lake) -> None:
        lake.append_facts(LOG_OFFSETS, pa.concat_tables([points("10:00"), points("10:01", cluster="b")]))
        found = lake.published("log_offsets", span("0:00", "24:00"), ["b"], ["at", "cluster"])
        assert found.to_pylist() == [{"at": at("10:01"), "cluster": "b"}]
        assert lake.published("log_offsets", span("0:00", "24:00"), []).num_rows == 0

    def test_groups_of_a_metric_can_be_chosen_whatever_their_names_are(self, lake: Lake, ledger: Ledger) -> None:
        load(lake, ledger, "load", span("10:00", "10:10"), group='o\'brien."payments"-v2')
        chosen = {
            name: lake.published(CONSUMER_LATENCY.name, span("10:00", "10:10"), groups=names).num_rows
            for name, names in {
                "all": None,
                "it": ['o\'brien."payments"-v2', "payments"],
                "another": ["payments"],
                "none": [],
            }.items()
        }
        assert chosen == {"all": 10, "it": 10, "another": 0, "none": 0}

    def test_columns_of_rows_that_were_read_before_are_not_read_again(self, lake: Lake, ledger: Ledger) -> None:
        load(lake, ledger, "load", span("10:00", "10:10"))
        remembering = lake.remembering()
        few, all_of_it = ["records_lag"], ["records_lag", "records_consumed"]
        assert remembering.published(CONSUMER_LATENCY.name, span("10:00", "10:10"), columns=few).column_names == few
        wide = remembering.published(CONSUMER_LATENCY.name, span("10:00", "10:10"), columns=all_of_it)
        for path in lake.metric_files(["load"], CONSUMER_LATENCY):
            Path(path).unlink()
        again = remembering.published(CONSUMER_LATENCY.name, span("10:00", "10:10"), columns=few)
        assert again.equals(wide.select(few))

    def test_every_table_can_be_read_before_anything_is_written(self, lake: Lake) -> None:
        for name, table in TABLES.items():
            assert lake.published(name, span("0:00", "24:00")).schema == arrow_schema(table)

    def test_files_are_chosen_by_the_time_of_their_rows(self, lake: Lake) -> None:
        lake.append_facts(LOG_OFFSETS, points("10:00", "11:00"))
        lake.append_facts(LOG_OFFSETS, points("12:00", "25:00"))
        morning, noon, tomorrow = lake.fact_files(LOG_OFFSETS, None, at("48:00"))
        by_time = {
            tuple(lake.fact_files(LOG_OFFSETS, at(a), at(b))) for a, b in (("11:00", "11:30"), ("10:30", "11:00"))
        }
        assert by_time == {(morning,)} or by_time == {(noon,)}
        assert len(lake.fact_files(LOG_OFFSETS, at("11:00"), at("12:00"))) == 2
        assert lake.fact_files(LOG_OFFSETS, at("11:01"), at("11:59")) == []
        assert lake.fact_files(LOG_OFFSETS, at("24:00"), at("48:00")) == [tomorrow]

    def test_rows_that_do_not_fit_the_contract_are_refused(self, tmp_path: Path) -> None:
        lake, rows = Lake(Store.embedded(tmp_path)), points("10:00")
        with pytest.raises(StoreError, match="rows for log_offsets lack the columns source"):
            lake.append_facts(LOG_OFFSETS, rows.drop_columns(["source"]))
        timeless = rows.drop_columns(["at"]).append_column("at", pa.nulls(1, pa.timestamp("us", "UTC")))
        with pytest.raises(StoreError, match=r"rows for log_offsets do not fit its columns: .* 'at' with null values"):
            lake.append_facts(LOG_OFFSETS, timeless)

    def test_facts_of_a_file_that_is_left_out_are_nobody_s(self, lake: Lake) -> None:
        hour = span("10:00", "11:00")
        for clock in ("10:10", "10:40"):
            lake.append_facts(LOG_OFFSETS, points(clock))
        first, second = lake.fact_files(LOG_OFFSETS, hour.start, hour.end)
        rest = lake.without([first])
        assert rest.fact_files(LOG_OFFSETS, hour.start, hour.end) == [second]
        assert (lake.read_facts(LOG_OFFSETS, hour).num_rows, rest.read_facts(LOG_OFFSETS, hour).num_rows) == (2, 1)


class TestLanding:
    def test_new_rows_are_a_landing_of_their_cluster(self, lake: Lake, ledger: Ledger) -> None:
        both = pa.concat_tables([points("10:00", "11:00"), points("9:00", cluster="b")])
        assert lake.land({"log_offsets": both}) == {"log_offsets": 3}
        assert (ledger.ingestions.readable_seq("a"), ledger.ingestions.readable_seq("b")) == (1, 1)
        assert changed_since(ledger, "b", 0, at("9:01"))
        assert not changed_since(ledger, "a", 0, at("10:00"))

    def test_nothing_new_is_no_landing(self, lake: Lake, ledger: Ledger) -> None:
        lake.land({"log_offsets": points("10:00")})
        assert lake.land({"log_offsets": points("10:00"), "group_states": empty_states()}) == {
            "log_offsets": 0,
            "group_states": 0,
        }
        assert ledger.ingestions.readable_seq("a") == 1

    def test_the_caller_may_say_which_time_a_landing_changes(self, lake: Lake, ledger: Ledger) -> None:
        lake.land({"log_offsets": points("9:30", "10:00")}, span("10:00", "10:05"))
        assert not changed_since(ledger, "a", 0, at("10:00"))
        assert changed_since(ledger, "a", 0, at("10:01"))

    def test_a_landing_reaches_from_the_first_to_the_last_row_of_all_tables(self, lake: Lake, ledger: Ledger) -> None:
        commit = {"cluster": "a", "group": "g", "topic": "t", "partition": 0, "committed_offset": 1}
        told = [commit | {"at": at(clock), "source": "commit_log"} for clock in ("9:00", "9:30")]
        facts = {"log_offsets": points("10:00", "11:00"), "committed_offsets": arrow_rows(COMMITTED_OFFSETS, told)}
        assert lake.land(facts) == {"log_offsets": 2, "committed_offsets": 2}
        assert (changed_since(ledger, "a", 0, at("9:00")), changed_since(ledger, "a", 0, at("9:01"))) == (False, True)
        assert ledger.ingestions.readable_seq("a") == 1


def empty_states() -> pa.Table:
    return arrow_schema(TABLES["group_states"]).empty_table()


class TestLoads:
    def test_a_load_is_unseen_until_it_is_published_and_then_seen_whole(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        lake.add_load("one", hour, stage(lake, "one", hour))
        assert [lake.published(t.name, hour).num_rows for t in MEASURED] == [0, 0]
        ledger.publications.publish(["a"], hour, "one", 0)
        assert [lake.published(t.name, hour).num_rows for t in MEASURED] == [60, 60]
        assert lake.published("consumer_latency", hour).schema == arrow_schema(CONSUMER_LATENCY)
        first = lake.published("consumer_latency", hour).slice(0, 1).to_pylist()[0]
        assert first["latency_histogram"] == [(35, 3), (70, 600)]

    def test_adding_a_load_twice_changes_nothing(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        files = stage(lake, "one", hour)
        for _ in range(2):
            lake.add_load("one", hour, files)
        ledger.publications.publish(["a"], hour, "one", 0)
        assert minutes(lake.published("consumer_latency", hour)) == list(range(600, 660))
        assert lake.metric_files(["one"], CONSUMER_LATENCY) == files["consumer_latency"]

    def test_a_rerun_inside_a_day_replaces_exactly_its_minutes(self, lake: Lake, ledger: Ledger) -> None:
        load(lake, ledger, "day", span("0:00", "24:00"))
        load(lake, ledger, "rerun", span("10:00", "10:05"))
        around = span("9:58", "10:07")
        assert minutes(lake.published("consumer_latency", around)) == list(range(598, 607))
        files = lake.published_files(CONSUMER_LATENCY, ledger.publications.slices(["a"], around))
        assert files == lake.metric_files(["day", "rerun"], CONSUMER_LATENCY)
        assert lake.published_files(CONSUMER_LATENCY, ledger.publications.slices(["a"], span("10:00", "10:05"))) == (
            lake.metric_files(["rerun"], CONSUMER_LATENCY)
        )

    def test_clusters_of_one_load_are_seen_by_their_own_publications(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        load(lake, ledger, "both", hour, ("a", "b"))
        load(lake, ledger, "b again", span("10:30", "11:00"), ("b",))
        assert minutes(lake.published("consumer_latency", hour, ["a"])) == list(range(600, 660))
        assert minutes(lake.published("consumer_latency", hour, ["b"])) == list(range(600, 660))
        assert lake.published("consumer_latency", hour).num_rows == 120

    def test_a_table_without_rows_is_no_obstacle(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        files = stage(lake, "one", hour)
        empty = Path(files["steady_state"][0])
        pq.write_table(pq.read_table(empty).slice(0, 0), empty)
        lake.add_load("one", hour, files)
        ledger.publications.publish(["a"], hour, "one", 0)
        assert [lake.published(t.name, hour).num_rows for t in MEASURED] == [60, 0]

    def test_of_many_rows_only_the_newest_are_summed_up(self, lake: Lake, ledger: Ledger) -> None:
        for name, clock in (("one", "9:00"), ("two", "10:00"), ("three", "11:00")):
            load(lake, ledger, name, Interval(at(clock), at(clock) + 60 * MINUTE))
        slices = ledger.publications.slices(None, span("9:00", "12:00"))
        newest = [lake.newest_slices(CONSUMER_LATENCY, slices, most) for most in (180, 179, 120, 119, 0)]
        assert newest == [slices, slices[1:], slices[1:], slices[2:], slices[2:]]
        assert lake.newest_slices(CONSUMER_LATENCY, [], 0) == []

    def test_what_is_summed_up_is_cut_at_one_time_for_all_clusters(self, lake: Lake, ledger: Ledger) -> None:
        load(lake, ledger, "both hours", span("9:00", "11:00"), ("a",))
        for name, clock in (("first", "9:00"), ("second", "10:00")):
            load(lake, ledger, name, Interval(at(clock), at(clock) + 60 * MINUTE), ("b",))
        slices = ledger.publications.slices(None, span("9:00", "11:00"))
        whole, second = slices[0], slices[2]
        assert lake.newest_slices(CONSUMER_LATENCY, slices, 240) == slices
        assert lake.newest_slices(CONSUMER_LATENCY, slices, 239) == [
            whole._replace(interval=span("10:00", "11:00")),
            second,
        ]

    def test_what_is_remembered_is_as_it_was_and_forgotten_after_a_dozen_other_questions(
        self, lake: Lake, ledger: Ledger
    ) -> None:
        hour = span("10:00", "11:00")
        load(lake, ledger, "one", span("10:00", "10:30"))
        remembering = lake.remembering()
        assert remembering.published("consumer_latency", hour).num_rows == 30
        load(lake, ledger, "two", span("10:30", "11:00"))
        assert [one.published("consumer_latency", hour).num_rows for one in (remembering, lake)] == [30, 60]
        for minute in range(5):  # two questions each: which files, and their rows
            remembering.published("consumer_latency", span(f"11:0{minute}", f"11:0{minute + 1}"), ["a"])
        assert remembering.published("consumer_latency", hour).num_rows == 30
        assert remembering.remembering().published("consumer_latency", hour).num_rows == 60
        for minute in range(13):
            remembering.published("consumer_latency", span(f"12:{minute:02}", f"12:{minute + 1:02}"), ["a"])
        assert remembering.published("consumer_latency", hour).num_rows == 60

    def test_answers_are_remembered_by_all_that_was_asked(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        load(lake, ledger, "one", hour, ("a", "b"))
        remembering = lake.remembering()
        asked: list[dict[str, Any]] = [
            {},
            {"clusters": ["a"]},
            {"columns": ["cluster"]},
            {"groups": ["nobody"]},
            {"clusters": ["b"], "columns": ["cluster", "partition"]},
        ]
        for one in (*asked, *asked):
            found = remembering.published("consumer_latency", hour, **one)
            assert found.equals(lake.published("consumer_latency", hour, **one))

    def test_a_file_that_is_left_out_is_nobody_s_until_it_is_asked_for_again(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        for name, half in (("one", span("10:00", "10:30")), ("two", span("10:30", "11:00"))):
            load(lake, ledger, name, half)
        first, second = lake.metric_files(["one", "two"], CONSUMER_LATENCY)
        rest = lake.without([first])
        assert minutes(rest.published("consumer_latency", hour)) == list(range(630, 660))
        assert rest.without([second]).published("consumer_latency", hour).num_rows == 0
        remembering = lake.remembering()
        assert remembering.published("consumer_latency", hour).num_rows == 60
        assert remembering.without([first]).published("consumer_latency", hour).num_rows == 30
        assert lake.published("consumer_latency", hour).num_rows == 60

    def test_the_files_of_a_load_are_its_own_and_not_those_of_one_whose_name_goes_on(
        self, lake: Lake, ledger: Ledger
    ) -> None:
        for name, half in (("one", span("10:00", "10:30")), ("one more", span("10:30", "11:00"))):
            load(lake, ledger, name, half)
        assert [Path(file).parts[-3] for file in lake.metric_files(["one"], CONSUMER_LATENCY)] == ["one"]
        assert lake.metric_files(["unheard of"], CONSUMER_LATENCY) == []

    def test_pieces_are_whole_steps_with_about_so_many_rows(self, lake: Lake, ledger: Ledger) -> None:
        load(lake, ledger, "one", span("9:00", "10:00"))
        load(lake, ledger, "another", span("9:00", "11:00"), ("b",))
        cases = {
            ("10:00", 60): [60],
            ("10:00", 59): [55, 5],
            ("10:00", 30): [30, 30],
            ("10:00", 1): [5] * 12,
            ("10:02", 60): [60, 2],  # as many rows in the rest as in what is published
            ("10:02", 1_000): [62],
            ("11:00", 60): [60, 60],
        }
        for (end, most_rows), minutes_each in cases.items():
            asked = Interval(at("9:00"), at(end))
            found = list(lake.in_pieces(CONSUMER_LATENCY, asked, "a", 300_000, most_rows))
            assert [(piece.end - piece.start) // MINUTE for piece in found] == minutes_each
            assert (found[0].start, found[-1].end) == (asked.start, asked.end)

    def test_of_a_long_load_the_rows_of_the_time_count(self, lake: Lake, ledger: Ledger) -> None:
        """However they are spread: partitions that are busy since yesterday have no rows of the days before."""
        whole, idle, busy = span("0:00", "20:00"), span("8:00", "9:00"), span("19:00", "20:00")
        rows = [
            metric_row(CONSUMER_LATENCY, "a", partition, window)
            for window in whole.windows(60_000)
            for partition in range(100 if busy.overlaps(window) else 1)
        ]
        ledger.open(writing=True)
        lake.add_load("long", whole, {CONSUMER_LATENCY.name: [write(lake, "long", whole, CONSUMER_LATENCY, rows)]})
        ledger.publications.publish(["a"], whole, "long", {"a": ledger.ingestions.readable_seq("a")})

        assert list(lake.in_pieces(CONSUMER_LATENCY, idle, "a", 60_000, 60)) == [idle]
        assert len(list(lake.in_pieces(CONSUMER_LATENCY, busy, "a", 60_000, 600))) == 10
        assert [lake.rows_shown(CONSUMER_LATENCY, hour, "a", 1_000) for hour in (idle, busy)] == [60, 6_000]

    def test_where_nothing_is_published_all_is_one_piece(self, lake: Lake) -> None:
        hour = span("9:00", "10:00")
        assert list(lake.in_pieces(CONSUMER_LATENCY, hour, "a", 300_000, 1)) == [hour]

    def test_what_is_read_is_spared_damaged_files_and_says_which(self, lake: Lake, ledger: Ledger) -> None:
        hour = span("10:00", "11:00")
        for name, start in (("one", "10:00"), ("two", "10:20"), ("three", "10:40")):
            load(lake, ledger, name, Interval(at(start), at(start) + 20 * MINUTE))
        damaged = sorted(lake.metric_files(["one", "three"], CONSUMER_LATENCY))
        for path in damaged:
            Path(path).write_bytes(Path(path).read_bytes()[:200])
        rows, left_out = lake.spared(lambda some: some.published("consumer_latency", hour))
        assert (minutes(rows), left_out) == (list(range(620, 640)), tuple(damaged))

    def test_damage_that_cannot_be_left_out_is_raised(self, lake: Lake) -> None:
        def read(_: Lake) -> None:
            raise DamagedFile(["some file"], "torn")

        with pytest.raises(DamagedFile, match="torn"):
            lake.spared(read)

    @pytest.mark.parametrize("wrong", ["elsewhere", "gone", "columns"])
    def test_files_that_are_not_the_load_s_are_refused(self, lake: Lake, wrong: str) -> None:
        hour = span("10:00", "11:00")
        path = stage(lake, "one", hour)["consumer_latency"][0]
        if wrong == "gone":
            Path(path).unlink()
        if wrong == "columns":
            pq.write_table(pq.read_table(path).append_column("more", pa.nulls(60, pa.int64())), path)
        with pytest.raises(
            StoreError, match=r"is not in its folder|does not take its staged files|is not there any more"
        ):
            lake.add_load("other" if wrong == "elsewhere" else "one", hour, {"consumer_latency": [path]})

    def test_files_that_spark_wrote_are_read_back(self, lake: Lake, ledger: Ledger, spark: SparkSession) -> None:
        hour = span("10:00", "11:00")
        written = stage(lake, "one", hour)["consumer_latency"][0]
        expected = pq.read_table(written).select(list(CONSUMER_LATENCY.names))
        folder = Path(lake.stage_dir("spark")) / "consumer_latency"
        rows = spark.read.parquet(written).selectExpr("* EXCEPT (load_id)", "'spark' AS load_id")
        rows.repartition(3).write.parquet(f"file://{folder}")
        files = [str(path) for path in sorted(folder.glob("*.parquet"))]
        lake.add_load("spark", hour, {"consumer_latency": files})
        ledger.publications.publish(["a"], hour, "spark", 0)
        assert lake.published("consumer_latency", hour).equals(expected.cast(arrow_schema(CONSUMER_LATENCY)))


def land_and_load(store: Store, number: int) -> None:
    """One of several tasks: the same facts as all the others, its own interval, and a load that all publish."""
    lake, ledger = Lake(store), Ledger(store)
    for table in FACTS:
        lake.append_facts(table, points("10:00", "34:00") if table is LOG_OFFSETS else arrow_rows(table, []))
    lake.land({"log_offsets": points(f"{number}:30")})
    load(lake, ledger, f"load {number}", span(f"{number}:00", f"{number}:05"))


@pytest.mark.slow
def test_processes_that_write_at_once_lose_and_double_nothing(store: Store) -> None:
    tasks = [SPAWN.Process(target=land_and_load, args=(store, number)) for number in range(4)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert [task.exitcode for task in tasks] == [0] * 4
    lake, ledger = Lake(store), Ledger(store)
    assert lake.read_facts(LOG_OFFSETS, span("0:00", "48:00")).num_rows == 2 + 4
    assert ledger.ingestions.readable_seq("a") == 4
    expected = [hour * 60 + minute for hour in range(4) for minute in range(5)]
    assert minutes(lake.published("consumer_latency", span("0:00", "24:00"))) == expected


def rewrite_for_ever(store: Store, first_turn: int) -> None:
    """Land, stage, add, publish and settle the same two intervals again and again, as killed tasks are run again."""
    lake, ledger = Lake(store), Ledger(store)
    for turn in itertools.count(first_turn):
        hour = span("10:00", "11:00") if turn % 3 else span("10:15", "10:20")
        lake.land({"log_offsets": points(f"{turn % 24}:{turn % 60:02}")})
        load_id = f"load {turn}"
        files = stage(lake, load_id, hour)
        for name, staged in files.items():
            lake.add_load(load_id, hour, {name: staged})
        ledger.publications.publish(["a"], hour, load_id, ledger.ingestions.readable_seq("a"))
        if turn % 5 == 4:
            lake.maintain()


@pytest.mark.slow
def test_a_reader_sees_a_whole_interval_whenever_a_writer_is_killed(store: Store) -> None:
    """Each dies some time after the reader saw a load of it."""
    dice, hour = random.Random(1), span("10:00", "11:00")
    whole = [window.start for window in hour.windows(60_000)]
    lake, ledger = Lake(store), Ledger(store)
    load(lake, ledger, "first", hour)
    seen = {"first"}
    for kill in range(3):
        writer, die = SPAWN.Process(target=rewrite_for_ever, args=(store, kill * 1_000_000)), float("inf")
        writer.start()
        try:
            while time.monotonic() < die:
                assert writer.is_alive()
                for table in MEASURED:
                    assert lake.published(table.name, hour)["window_start"].to_pylist() == whole
                shown = {s.load_id for s in ledger.publications.slices(["a"], hour)}
                if die == float("inf") and shown - seen:
                    die = time.monotonic() + 2 * dice.random()
                seen |= shown
        finally:
            writer.kill()
            writer.join()
    load(lake, ledger, "last", hour)
    assert minutes(lake.published("consumer_latency", hour)) == list(range(600, 660))
    found = lake.read_facts(LOG_OFFSETS, span("0:00", "24:00"))
    assert found.num_rows == len(pc.unique(found["at"]))
