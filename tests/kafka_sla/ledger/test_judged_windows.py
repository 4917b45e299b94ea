"""Days of windows that are packed: whatever is asked, changed or excluded, the answers are those of rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedWindows
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.recovery.store_copy import copy_store
from kafka_sla.ledger.exclusions import apply_exclusions
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.verdicts import MissChange
from kafka_sla.model.entities import EVERYTHING, Interval, Sla, SlaWindow
from kafka_sla.model.tables import SLA_MISSES, SLA_WINDOWS
from kafka_sla.pipeline import steps
from kafka_sla.sla.exclusion_request import exclusion_request
from kafka_sla.sla.miss_rule import judge_misses
from kafka_sla.sla.rollups import SLOT_MS, RecordStats, judged
from tests.kafka_sla.ledger.test_verdicts import SLA
from tests.kafka_sla.loads import DAY as FIRST
from tests.kafka_sla.loads import load

MINUTES_10 = 600_000
"""Windows of ten minutes: a day is 144 of them."""
SLAS = (
    SLA,
    replace(SLA, name="Zahlungen – „eilig“: group-7.eu-west_1/topic.v2 within 30 seconds", for_ms=4 * MINUTES_10),
)
DAY, HOUR, WIDTH = timedelta(days=1), timedelta(hours=1), timedelta(minutes=10)
DAYS = 5


def windows(sla: Sla, span: Interval, lots: random.Random) -> list[SlaWindow]:
    """Of the span, in stretches of one verdict, some of them missing; some of a version that kept fewer columns."""
    found, starts = list[SlaWindow](), list(span.windows(MINUTES_10))
    while starts:
        length, verdict = (
            lots.choice((2, 5, 100)),
            lots.choice(("good", "bad", "bad", "unknown", "excluded", "missing")),
        )
        some, starts = starts[:length], starts[length:]
        latency = lots.uniform(0, 60_000)
        for window in some if verdict != "missing" else ():
            found.append(
                SlaWindow(
                    sla.name,
                    window,
                    verdict,
                    lots.random() < 0.5,
                    "" if verdict in ("good", "bad") else f"no data for group {sla.name!r}",
                    latency if verdict == "bad" else None,
                    latency - 10_000 if verdict == "unknown" and latency > 30_000 else None,
                    records_due=lots.randint(0, 10**12),
                    records_late=lots.randint(0, 10),
                    records_late_low=0,
                    records_late_high=10,
                    **({"worst_group": "g", "worst_topic": "t", "worst_partition": 7} if verdict == "bad" else {}),
                    max_latency_ms=lots.choice((30_000, 30_000, 30_000, 5_000)),
                )
            )
    return found


def put(ledger: Ledger, sla: Sla, span: Interval, found: Sequence[SlaWindow]) -> MissChange:
    change = ledger.verdicts.replace(sla, span, found, looks_back=WIDTH)
    hours = Interval(span.start.replace(minute=0), span.end.replace(minute=0) + HOUR)
    slots = [(slot, [w for w in found if slot.covers(w.window)]) for slot in hours.windows(MINUTES_10)]
    rollups = [judged(slot, of, RecordStats()) for slot, of in slots if of]
    ledger.rollups.replace(sla.name, hours, rollups, SLOT_MS)
    return change


def exclude(ledger: Ledger, sla: Sla, span: Interval) -> list[Any]:
    request = exclusion_request(
        sla, (span.start, span.end), "load test", "ada", now=FIRST + 30 * DAY, window_ms=MINUTES_10
    )
    one = ledger.exclusions.add(request)
    return [one.span, one.reason]


def a_change(lots: random.Random) -> Any:
    """Something that is done to a ledger, and what it answers."""
    sla = lots.choice(SLAS)
    start = FIRST + lots.randrange(DAYS * 144) * WIDTH
    span = Interval(start, start + lots.choice((1, 6, 30, 144, 300)) * WIDTH)
    if lots.random() < 0.3:
        return lambda ledger: exclude(ledger, sla, span)
    if lots.random() < 0.2:
        number = lots.random()
        return lambda ledger: undo(ledger, number)
    found = windows(sla, span, lots)
    return lambda ledger: put(ledger, sla, span, found)


def undo(ledger: Ledger, number: float) -> list[Any]:
    there = [one for one in reversed(ledger.exclusions.listed()) if one.undone_at is None]
    if not there:
        return []
    there.sort(key=lambda one: (one.sla, one.span.start, one.span.end))
    return [ledger.exclusions.undo(there[int(number * len(there))].id, "grace", "it was none").span]


def answers(ledger: Ledger, spans: Sequence[Interval]) -> list[Any]:
    """Everything that can be asked of windows."""
    names, verdicts, queries = [sla.name for sla in SLAS], ledger.verdicts, ledger.queries
    found: list[Any] = [queries.newest_verdicts(names), queries.newest_verdicts(names, FIRST + 4 * DAY)]
    found += [queries.judged_slas(), queries.newest_verdicts(["nobody"])]
    for span in spans:
        found.append(verdicts.sums_of_slas(names, span))
        found.append(
            sorted(
                (sla, round(float(at), 6), *rest) for sla, at, *rest in verdicts.counted_windows(names, span, 3_600_000)
            )
        )
        found += [
            ledger.declared_rows(table, span, clusters)
            for table in (SLA_WINDOWS, SLA_MISSES)
            for clusters in (None, ["a"], [])
        ]
        for name in names:
            found += [verdicts.windows(name, span), verdicts.judged_time(name, span), verdicts.thresholds(name, span)]
            found += [verdicts.misses_around(name, span), ledger.rollups.numbers(name, SLOT_MS, span)]
    return found


def some_spans(lots: random.Random) -> list[Interval]:
    starts = [FIRST + lots.uniform(-1, DAYS) * DAY for _ in range(2)]
    return [EVERYTHING, *(Interval(start, start + lots.uniform(0.01, 3) * DAY) for start in starts)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_packed_days_give_the_answers_of_rows_and_misses_are_those_of_all_windows(
    ledger: Ledger, tmp_path: Path, seed: int
) -> None:
    lots, plain = random.Random(seed), Ledger(Store.embedded(tmp_path / "plain"))
    plain.open(writing=True)
    whole = Interval(FIRST, FIRST + DAYS * DAY)
    for sla in SLAS:
        for part in whole.pieces(8 * HOUR):
            found = windows(sla, part, lots)
            assert put(ledger, sla, part, found) == put(plain, sla, part, found)
    packed = 0
    for _ in range(4):
        packed += ledger.verdicts.pack(FIRST + lots.randint(1, DAYS + 1) * DAY)
        change, spans = a_change(lots), some_spans(lots)
        assert outcome(change, ledger) == outcome(change, plain)
        assert_misses_follow_the_rule(ledger)
        assert answers(ledger, spans) == answers(plain, spans)
    assert packed >= DAYS


@pytest.mark.parametrize("database", ["sqlite"])
def test_a_night_packs_what_is_older_than_forty_days_and_a_copy_of_the_store_has_it(
    lake: Lake, ledger: Ledger, store: Store, tmp_path: Path
) -> None:
    whole, lots = Interval(FIRST, FIRST + 12 * DAY), random.Random(0)
    found = [w for w in windows(SLA, whole, lots) if w.window.start != FIRST + 3 * DAY]
    put(ledger, SLA, whole, found)

    days = [lake.maintain(FIRST + n * DAY + HOUR).packed_days for n in (40, 41, 41, 44)]

    assert days == [0, 1, 0, 3]
    assert [ledger.verdicts.pack(FIRST + 12 * DAY, at_most=5) for _ in range(3)] == [5, 3, 0]
    assert sql(store, "SELECT count(*) FROM sla_windows") == 0
    assert list(ledger.verdicts.windows(SLA, whole)) == found
    rows = sql(store, "SELECT max(length(windows)) FROM sla_window_days")
    assert 1_000 < int(rows) < 144 * 100, "144 rows as SQL rows are some 250 bytes each"
    copy = Store.embedded(tmp_path / "copy")
    copy_store(store, copy)
    assert list(Ledger(copy).verdicts.windows(SLA, whole)) == found


@pytest.mark.parametrize("database", ["sqlite"])
def test_a_damaged_day_is_named_and_judged_again(
    lake: Lake, ledger: Ledger, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "orders-api.eu-west-1 within 30 s"
    (tmp_path / "kafka_sla.yml").write_text(
        f"clusters: {{a: {{}}}}\nslas: [{{name: {name}, cluster: a, group: g, max_latency: 30s}}]\n"
    )
    places = ["--config", str(tmp_path / "kafka_sla.yml"), "--store", str(tmp_path)]
    span = Interval(FIRST + 10 * HOUR, FIRST + 11 * HOUR)
    load(lake, ledger, "load1", span)
    settings = load_settings(tmp_path / "kafka_sla.yml")
    list(steps.evaluate_all(settings, store, [name], span))
    before = ledger.verdicts.windows(name, EVERYTHING)
    assert ledger.verdicts.pack(FIRST + 3 * DAY) == 1 and before

    flip_a_bit(store)

    with pytest.raises(DamagedWindows, match=r"orders-api.* of 2026-03-02 .*judges that day again"):
        ledger.verdicts.windows(name, EVERYTHING)
    assert main(["store", "check", *places]) == 1
    assert f"the packed windows of the SLA '{name}' of 2026-03-02 cannot be read" in capsys.readouterr().out
    assert main(["store", "repair", "--yes", *places]) == 0
    assert ledger.verdicts.windows(name, EVERYTHING) == before
    assert main(["store", "check", *places]) == 0


def flip_a_bit(store: Store) -> None:
    with create_engine(store.url).begin() as connection:
        packed = bytearray(connection.execute(text("SELECT windows FROM sla_window_days")).scalar_one())
        packed[random.Random(1).randrange(len(packed))] ^= 4
        connection.execute(text("UPDATE sla_window_days SET windows = :packed"), {"packed": bytes(packed)})


def sql(store: Store, statement: str) -> Any:
    with create_engine(store.url).begin() as connection:
        return connection.execute(text(statement)).scalar_one()


def assert_misses_follow_the_rule(ledger: Ledger) -> None:
    """The stored misses are those that all stored windows make at once."""
    for sla in SLAS:
        windows = [window.as_judged for window in ledger.verdicts.windows(sla, EVERYTHING)]
        stored = [apply_exclusions(miss, []) for miss in ledger.verdicts.misses(sla)]
        assert stored == list(judge_misses(sla, windows))


def outcome(change: Any, ledger: Ledger) -> Any:
    try:
        return change(ledger)
    except Exception as error:
        return repr(error)
