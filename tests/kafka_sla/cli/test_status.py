"""What people see of the ledger on a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.cli.status import cluster_status, interval_values, status_values
from kafka_sla.cli.status_text import interval_text, miss_text, status_text
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SlaWindow, SteadyState
from kafka_sla.sla.rollups import SLOT_MS, RecordStats
from kafka_sla.sla.rollups import judged as judged_slot

START = datetime(2026, 11, 2, tzinfo=UTC)
SLA = Sla("payments", "prod", Patterns(), Patterns(), 30_000, 120_000, 0.99, SteadyState(30_000), period="day")
SETTINGS = Settings((Cluster("prod", None), Cluster("old", None)), (SLA,))


def minutes(first: float, last: float) -> Interval:
    return Interval(START + timedelta(minutes=first), START + timedelta(minutes=last))


def window(minute: int, verdict: str = "good", **more: Any) -> SlaWindow:
    worst = {"worst_latency_ms": 90_000.0, "worst_latency_low_ms": 80_000.0, "worst_latency_high_ms": 95_000.0}
    where = {"worst_group": "service", "worst_topic": "payments", "worst_partition": 3}
    bad = {**worst, **where} if verdict == "bad" else {}
    return SlaWindow(
        "payments", minutes(minute, minute + 1), verdict, True, "", **{"max_latency_ms": 30_000, **bad, **more}
    )  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Store.embedded(tmp_path))


def judged(ledger: Ledger, *windows: SlaWindow) -> None:
    span = Interval(windows[0].window.start, windows[-1].window.end)
    ledger.verdicts.replace(SLA, span, windows)


def test_an_empty_store_says_that_nothing_is_published(ledger: Ledger) -> None:
    text = status_text(SETTINGS, ledger)
    assert "prod     nothing published" in text and "last validation: none" in text


def test_coverage_counts_gaps_between_published_intervals(ledger: Ledger) -> None:
    for number, span in enumerate([minutes(0, 5), minutes(5, 10), minutes(15, 20)]):
        ledger.publications.publish(["prod"], span, f"load{number}", 0)
    prod, old = cluster_status(SETTINGS, ledger)
    assert (prod.first, prod.last, prod.gaps) == (START, minutes(15, 20), (minutes(10, 15),))
    assert (prod.coverage, old.coverage) == (0.75, None)


def test_time_that_is_published_as_unknown_is_not_covered(ledger: Ledger) -> None:
    """A monitor that saw nothing for three of four hours, and a second SLA that knows one of these hours."""
    other, four = replace(SLA, name="late"), minutes(0, 240)
    ledger.publications.publish(["prod"], four, "load", 0)
    for sla, known in ((SLA, {0}), (other, {0, 2})):
        slots = [
            judged_slot(slot, [replace(window(0, word), sla=sla.name, window=slot)], RecordStats())
            for slot in four.windows(SLOT_MS)
            for word in ["good" if (slot.start - START) // timedelta(hours=1) in known else "unknown"]
        ]
        ledger.rollups.replace(sla.name, four, slots, SLOT_MS)
    settings = Settings((Cluster("prod", None),), (SLA, other))

    (prod,) = cluster_status(settings, ledger)

    assert (prod.coverage, prod.gaps, prod.unknown) == (0.5, (), (minutes(60, 120), minutes(180, 240)))
    assert "50" in next(line for line in status_text(settings, ledger).splitlines() if line.startswith("prod"))


def test_status_shows_attainment_up_to_the_newest_published_time(ledger: Ledger) -> None:
    ledger.publications.publish(["prod"], minutes(0, 10), "load", 0)
    judged(
        ledger,
        *[
            window(m, "bad" if m in (3, 4) else "good", records_due=100, records_late=50 * (m in (3, 4)))
            for m in range(10)
        ],
    )
    short, line = (
        next(line for line in status_text(SETTINGS, ledger, wide=wide).splitlines() if line.startswith("payments"))
        for wide in (False, True)
    )
    assert " ".join(short.split()) == "payments on track 80 % of 99 % 12 min 24 s 20 30 s"
    assert (
        " ".join(line.split()[1:])
        == "30 s 99 % 80 % 90 % day from 2026-11-02 00:00 UTC 100 % 14 min 24 s 12 min 24 s 20 0"
    )


def test_the_last_validation_names_what_broke(ledger: Ledger) -> None:
    ledger.publications.publish(["prod"], minutes(0, 5), "load", 0)
    row = {
        "load_id": "load",
        "interval_start": START,
        "interval_end": minutes(0, 5).end,
        "table_name": "log_offsets",
        "expectation_id": "fresh",
        "expectation": "facts are fresh",
        "severity": "warning",
        "success": False,
        "observed": "none",
        "unexpected_rows": None,
    }
    ledger.validations.store([row, {**row, "expectation_id": "other", "success": True}])
    assert status_text(SETTINGS, ledger).splitlines()[-2:] == [
        "last validation: 2026-11-02T00:00:00Z/2026-11-02T00:05:00Z: 1 of 2 expectations held",
        "  warning: log_offsets: facts are fresh (observed none)",
    ]


def test_a_run_tells_verdicts_worst_latency_and_misses(ledger: Ledger) -> None:
    judged(ledger, *[window(m, "bad" if m >= 3 else "good") for m in range(6)])
    (miss,) = ledger.verdicts.misses()
    last = interval_text([SLA], ledger, minutes(0, 6)).splitlines()[-1]
    assert last.split() == f"payments 30 s 3 3 0 0 1 min 30 s {miss.id} (open)".split()
    assert interval_values([SLA], ledger, minutes(0, 6)) == [
        {
            "sla": "payments",
            "max_latency_ms": 30_000,
            "good": 3,
            "bad": 3,
            "excluded": 0,
            "unknown": 0,
            "worst_latency_ms": 90_000.0,
            "misses": [{"id": miss.id, "state": "open", "end_reason": ""}],
        }
    ]


def test_a_miss_tells_how_long_how_bad_and_where(ledger: Ledger) -> None:
    judged(ledger, *[window(m, "bad" if m in (1, 2, 3) else "good") for m in range(6)])
    (miss,) = ledger.verdicts.misses()
    assert miss_text(
        replace(miss, evidence={"sentence": "It stopped.", "lag_worst": 7, "produce_rate_before": 2.0, "status": None})
    ).splitlines() == [
        "RECOVERED: payments at 2026-11-02 00:04:00 UTC, missed for 3 min: worst latency 1 min 30 s, threshold 30 s.",
        "  It stopped.",
        "  Required: every record is consumed within 30 s; a miss opens after 2 min of violations",
        "  Worst: 1 min 30 s (bounds 1 min 20 s – 1 min 35 s) at 2026-11-02 00:01:00 UTC:"
        " group service, payments-3, cluster prod",
        f"  Since: 2026-11-02 00:01:00 UTC, 3 bad windows; miss {miss.id}",
        "    Produced: 2/s before",
        "    Records waiting: up to 7",
    ]


def test_an_open_miss_says_how_long_it_has_lasted(ledger: Ledger) -> None:
    windows = [window(m, "bad" if m >= 1 else "good") for m in range(6)]
    judged(ledger, *windows)
    (miss,) = ledger.verdicts.misses()

    text = miss_text(miss)

    assert text.startswith("SLA MISSED: payments since 2026-11-02 00:01:00 UTC (5 min so far): ")


def test_open_misses_are_first_and_no_line_is_wider_than_100_columns(ledger: Ledger) -> None:
    ledger.publications.publish(["prod"], minutes(0, 10), "load", 0)
    names = [f"{n} billing.alerts-authorised-v2 within 30 seconds of being produced" for n in range(30)]
    slas = tuple(replace(SLA, name=name) for name in names)
    for number, sla in enumerate(slas):
        bad = {12: range(3, 10), 20: range(3, 8)}.get(number, ())
        windows = [replace(window(m, "bad" if m in bad else "good"), sla=sla.name) for m in range(10)]
        ledger.verdicts.replace(sla, minutes(0, 10), windows)
    settings = Settings((Cluster("prod", None),), slas)

    lines = status_text(settings, ledger).splitlines()
    rows = [line for line in lines if " billing." in line]

    assert max(map(len, lines)) <= 100
    assert rows[0].startswith("12 ") and " 1     on track " in rows[0]
    assert [row.split()[0] for row in rows[1:4]] == ["0", "1", "2"]
    assert [row.split()[0] for row in rows[-2:]] == ["28", "29"]
    assert names[0] in status_text(settings, ledger, wide=True)


def test_the_values_of_a_status_can_be_written_as_json(ledger: Ledger) -> None:
    ledger.publications.publish(["prod"], minutes(0, 10), "load", 0)
    judged(ledger, *[window(m, "bad" if m in (3, 4) else "good") for m in range(10)])

    found = json.loads(json.dumps(status_values(SETTINGS, ledger)))

    assert found["clusters"][0] == {
        "cluster": "prod",
        "published_from": "2026-11-02T00:00:00.000Z",
        "published_until": "2026-11-02T00:10:00.000Z",
        "coverage": 1.0,
        "gaps": [],
        "unknown": [],
    }
    (sla,) = found["slas"]
    assert (sla["sla"], sla["attainment"], sla["budget"], sla["open_misses"]) == ("payments", 0.8, "on_track", 0)
    assert found["last_validation"] == {"expectations": 0, "failed": []}
