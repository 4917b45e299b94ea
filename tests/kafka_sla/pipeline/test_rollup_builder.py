"""Adding up an SLA's windows and records into slots, hours and days."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.rollups import Packed
from kafka_sla.model.entities import Interval, Patterns, Sla, SlaWindow, SteadyState
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.parquet_files import write_options
from kafka_sla.pipeline.rollup_builder import sum_up, sum_up_all
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, Sums, unpacked_histogram
from tests.kafka_sla.loads import DAY, at, load, span

PROMISE = Sla(
    "payments", "a", Patterns(("payments",)), Patterns(("orders",)), 30_000, 60_000, 0.99, SteadyState(30_000)
)
WHOLE = Interval(DAY, DAY + timedelta(days=1))


def judge(ledger: Ledger, interval: Interval, *, bad: int = 0, sla: Sla = PROMISE, **changes: Any) -> None:
    """Verdicts for every minute, the first ones of which are bad."""
    windows = [
        SlaWindow(
            sla.name,
            w,
            "bad" if i < bad else "good",
            True,
            "",
            40_000.0 if i < bad else 1_000.0,
            900.0,
            changes.get("high", 50_000.0),
            "payments",
            "orders",
            0,
            1,
            0,
            0,
            10,
            2 if i < bad else 0,
            max_latency_ms=30_000,
        )
        for i, w in enumerate(interval.windows(60_000))
    ]
    ledger.verdicts.replace(sla, interval, windows, lambda *_: [])


def records(packed: Packed) -> int:
    return int(unpacked_histogram(packed.histogram)[1].sum())


def test_hours_and_days_hold_what_their_windows_say(lake: Lake, ledger: Ledger) -> None:
    interval = span("09:30", "11:00")
    load(lake, ledger, "one", interval)
    judge(ledger, interval, bad=3)

    sum_up(PROMISE, lake, ledger, interval, 60_000)

    hours = ledger.rollups.read("payments", HOUR_MS, WHOLE)
    (day,) = ledger.rollups.read("payments", DAY_MS, WHOLE)
    assert [at("09:00"), at("10:00")] == [hour.start for hour in hours]
    assert [(27 * 60_000, 3 * 60_000), (60 * 60_000, 0)] == [(h.rollup.good_ms, h.rollup.bad_ms) for h in hours]
    assert (87 * 60_000, 3 * 60_000, 6) == (day.rollup.good_ms, day.rollup.bad_ms, day.rollup.records_late)
    assert 40_000.0 == day.rollup.worst_latency_ms
    # the loads' histograms: 3 records and the minute of the day, each minute
    assert sum(3 + minute for minute in range(570, 660)) == records(day) == sum(records(hour) for hour in hours)
    assert sum(range(570, 660)) == day.rollup.measured.records_consumed
    assert 18 == len(ledger.rollups.read("payments", SLOT_MS, WHOLE))


def test_the_same_interval_twice_and_in_pieces_adds_up_to_the_same(lake: Lake, ledger: Ledger) -> None:
    for number, interval in enumerate([span("09:00", "09:10"), span("09:10", "10:00"), span("09:10", "10:00")]):
        load(lake, ledger, f"load{number}", interval)
        judge(ledger, interval)
        sum_up(PROMISE, lake, ledger, interval, 60_000)

    (hour,) = ledger.rollups.read("payments", HOUR_MS, WHOLE)

    assert 60 * 60_000 == hour.rollup.good_ms
    assert sum(3 + minute for minute in range(540, 600)) == records(hour)


def test_one_unbounded_window_leaves_the_hour_unbounded(lake: Lake, ledger: Ledger) -> None:
    judge(ledger, span("09:00", "09:30"))
    judge(ledger, span("09:30", "10:00"), high=None)

    sum_up(PROMISE, lake, ledger, span("09:00", "10:00"), 60_000)

    (hour,) = ledger.rollups.read("payments", HOUR_MS, WHOLE)
    assert (1_000.0, None) == (hour.rollup.worst_latency_ms, hour.rollup.worst_latency_high_ms)


def test_slots_are_kept_for_a_week_and_hours_for_ever(lake: Lake, ledger: Ledger) -> None:
    early, late = span("09:00", "10:00"), Interval(DAY + timedelta(days=9), DAY + timedelta(days=9, hours=1))
    for interval in (early, late):
        judge(ledger, interval)
        sum_up(PROMISE, lake, ledger, interval, 60_000)

    ever = Interval(DAY, DAY + timedelta(days=10))
    assert late.start == ledger.rollups.read("payments", SLOT_MS, ever)[0].start
    assert [early.start, late.start] == [hour.start for hour in ledger.rollups.read("payments", HOUR_MS, ever)]


def test_single_windows_are_kept_for_a_day_and_add_up_to_their_slots(lake: Lake, ledger: Ledger) -> None:
    early, late = span("09:00", "10:00"), Interval(DAY + timedelta(days=1, hours=12), DAY + timedelta(days=1, hours=13))
    for number, interval in enumerate((early, late)):
        load(lake, ledger, f"load{number}", interval)
        judge(ledger, interval, bad=2)
        sum_up(PROMISE, lake, ledger, interval, 60_000)

    ever = Interval(DAY, DAY + timedelta(days=2))
    windows = ledger.rollups.read("payments", 60_000, ever)
    first = next(slot for slot in ledger.rollups.read("payments", SLOT_MS, ever) if slot.start == late.start)
    assert [late.start + timedelta(minutes=i) for i in range(60)] == [window.start for window in windows]
    assert [0, 0, 60_000] == [window.rollup.good_ms for window in windows[:3]]
    assert records(first) == sum(records(window) for window in windows[:5]) > 0


def test_a_day_long_past_keeps_its_slots_and_no_windows(lake: Lake, ledger: Ledger) -> None:
    for interval in (Interval(DAY + timedelta(days=3), DAY + timedelta(days=3, hours=1)), span("09:00", "10:00")):
        judge(ledger, interval)
        sum_up(PROMISE, lake, ledger, interval, 60_000)

    ever = Interval(DAY, DAY + timedelta(days=4))
    assert DAY + timedelta(days=3) == ledger.rollups.read("payments", 60_000, ever)[0].start
    assert at("09:00") == ledger.rollups.read("payments", SLOT_MS, ever)[0].start


def test_the_database_adds_up_the_rollups_of_many_slas(lake: Lake, ledger: Ledger) -> None:
    judge(ledger, span("09:00", "11:00"), bad=30)
    sum_up(PROMISE, lake, ledger, span("09:00", "11:00"), 60_000)

    found = ledger.rollups.sums(["payments", "unheard of"], HOUR_MS, WHOLE)

    assert {"payments": Sums(90 * 60_000, 30 * 60_000, 0, 0, 1_200, 60, 0, 0)} == found


def rollups(ledger: Ledger, sla: str = "payments", span: Interval = WHOLE) -> list[list[Packed]]:
    return [ledger.rollups.read(sla, width_ms, span) for width_ms in (60_000, SLOT_MS, HOUR_MS, DAY_MS)]


@pytest.mark.slow
def test_a_long_past_adds_up_to_what_its_days_do(lake: Lake, ledger: Ledger) -> None:
    past = Interval(at("21:00"), DAY + timedelta(days=10, hours=2))
    by_day = replace(PROMISE, name="by day")
    load(lake, ledger, "one", past)
    for sla in (PROMISE, by_day):
        judge(ledger, past, bad=3, sla=sla)

    sum_up(PROMISE, lake, ledger, past, 60_000)
    for piece in past.pieces(timedelta(days=1)):
        sum_up(by_day, lake, ledger, piece, 60_000)

    in_one, in_days = (rollups(ledger, sla.name, past) for sla in (PROMISE, by_day))
    assert in_one == in_days
    assert [len(found) for found in in_one[2:]] == [10 * 24 - 19, 10]


def test_the_histograms_of_the_window_before_are_not_read(lake: Lake, ledger: Ledger) -> None:
    for number, interval in enumerate([span("08:50", "09:00"), span("09:00", "09:10")]):
        load(lake, ledger, f"load{number}", interval)
        judge(ledger, interval)
    sum_up(PROMISE, lake, ledger, span("08:50", "09:10"), 60_000)
    before = rollups(ledger)
    (path,) = Path(lake.stage_dir("load0")).rglob("consumer_latency/*.parquet")
    columns = pq.read_metadata(path).row_group(0).to_dict()["columns"]
    counts = next(column for column in columns if column["path_in_schema"] == "latency_histogram.key_value.value")
    content, begin, size = (
        bytearray(path.read_bytes()),
        counts["dictionary_page_offset"],
        counts["total_compressed_size"],
    )
    content[begin : begin + size] = b"\xff" * size
    path.write_bytes(content)

    assert sum_up(PROMISE, lake, ledger, span("09:00", "09:10"), 60_000) == ()
    assert rollups(ledger) == before
    assert sum_up(PROMISE, lake, ledger, span("08:50", "09:00"), 60_000) == (str(path),)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_intervals_in_any_order_measured_anew_and_judged_late_add_up_to_what_one_does(
    lake: Lake, ledger: Ledger, seed: int
) -> None:
    """Intervals of one to nineteen minutes around the full hour."""
    lots = random.Random(seed)
    bounds = sorted(
        {
            at("09:38"),
            at("10:00"),
            at("10:26"),
            *(at("09:38") + m * timedelta(minutes=1) for m in lots.sample(range(48), 7)),
        }
    )
    intervals = [Interval(*ends) for ends in pairwise(bounds)]
    again = lots.sample(intervals, 3)
    lots.shuffle(intervals)
    published: list[Interval] = []
    for number, interval in enumerate([*intervals, *again]):
        load(lake, ledger, f"load{number}", interval, log_end_offset=lots.randint(0, 10**6))
        published.append(interval)
        if lots.random() < 0.8 or number >= len(intervals):  # else it is judged with a later one
            lots.shuffle(published)
            for one in published:
                judge(ledger, one, bad=lots.randint(0, 2))
                sum_up(PROMISE, lake, ledger, one, 60_000)
            published = []

    run_by_run = rollups(ledger)
    sum_up(PROMISE, lake, ledger, Interval(bounds[0], bounds[-1]), 60_000)
    assert run_by_run == rollups(ledger)


def test_slas_together_add_up_to_what_each_does_alone(lake: Lake, ledger: Ledger, tmp_path: Path) -> None:
    interval, alone = span("09:30", "11:00"), Store.embedded(tmp_path)
    slas: Sequence[Sla] = [
        PROMISE,
        replace(PROMISE, name="also payments", topics=Patterns(("ord.*",))),
        replace(PROMISE, name="billing", groups=Patterns(("billing",))),
        replace(PROMISE, name="elsewhere", cluster="b"),
        replace(PROMISE, name="all", groups=Patterns((".*",))),
    ]
    for store in (None, alone):
        mine, of = (ledger, lake) if store is None else (Ledger(store), Lake(store))
        mine.open(writing=True)
        of.make_tables()
        load(of, mine, "one", interval, ["a", "b"], 3)
        for sla in slas:
            judge(mine, interval, bad=3, sla=sla)
            if store:
                sum_up(sla, of, mine, interval, 60_000)

    assert sum_up_all(slas, lake, ledger, interval, 60_000) == [(sla, ()) for sla in slas]

    for sla in slas:
        assert rollups(ledger, sla.name) == rollups(Ledger(alone), sla.name)
    assert rollups(ledger, "payments") == rollups(ledger, "all") != rollups(ledger, "billing")


def test_a_damaged_file_costs_the_slas_whose_rows_it_held_and_no_run_that_reads_others(
    lake: Lake, ledger: Ledger
) -> None:
    elsewhere = replace(PROMISE, name="elsewhere", cluster="b")
    for number, interval in enumerate([span("09:00", "09:10"), span("09:10", "09:20"), span("09:20", "09:30")]):
        for cluster in ("a", "b"):
            load(lake, ledger, f"load{number}{cluster}", interval, [cluster])
        for sla in (PROMISE, elsewhere):
            judge(ledger, interval, sla=sla)
        if number == 2:
            break
        sum_up_all([PROMISE, elsewhere], lake, ledger, interval, 60_000)
    (damaged,) = Path(lake.stage_dir("load0a")).rglob("consumer_latency/*.parquet")
    damaged.write_bytes(b"damaged")

    later = sum_up_all([PROMISE, elsewhere], lake, ledger, span("09:20", "09:30"), 60_000)
    again = sum_up_all([PROMISE, elsewhere], lake, ledger, span("09:00", "09:10"), 60_000)

    assert later == [(PROMISE, ()), (elsewhere, ())]
    assert [bool(left_out) for _, left_out in again] == [True, False]
    assert rollups(ledger) == rollups(ledger, "elsewhere")


def test_of_a_long_load_the_row_groups_of_other_hours_are_not_read(lake: Lake, ledger: Ledger) -> None:
    load(lake, ledger, "long", span("09:00", "12:00"))
    (path,) = map(Path, lake.metric_files(["long"], CONSUMER_LATENCY))
    rows = pq.read_table(path)
    pq.write_table(rows, path, row_group_size=60, **write_options(rows.schema))
    histogram = pq.read_metadata(path).row_group(2).column(rows.schema.names.index("latency_histogram"))
    content = bytearray(path.read_bytes())
    content[histogram.data_page_offset + histogram.total_compressed_size - 1] ^= 1
    path.write_bytes(content)

    hours = (span("09:00", "10:00"), span("11:00", "12:00"))
    found = [sum_up(PROMISE, lake, ledger, hour, 60_000) for hour in hours]

    (hour, *_) = ledger.rollups.read("payments", HOUR_MS, WHOLE)
    assert [(), (str(path),)] == found
    assert (at("09:00"), sum(3 + minute for minute in range(540, 600))) == (hour.start, records(hour))
