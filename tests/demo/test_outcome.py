from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from demo.mailbox import Mailbox
from demo.outcome import Outcome
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, SlaWindow

CONFIGURATION = Path(__file__).resolve().parents[2] / "demo" / "kafka_sla.yml"
START = datetime(2026, 11, 21, 10, tzinfo=UTC)
WHERE: dict[str, Any] = {"worst_group": "g", "worst_topic": "t", "worst_partition": 0}
SPAN = Interval(START, START + timedelta(seconds=30))


def _outcome(folder: Path) -> Outcome:
    return Outcome(load_settings(CONFIGURATION), Store.embedded(folder), SPAN, Mailbox(folder))


def _miss(outcome: Outcome, sla: str) -> None:
    """Write an open miss of that SLA."""
    promise = outcome.settings.sla(sla)
    windows = [
        SlaWindow(sla, window, "bad", True, "", 12_000.0, **WHERE, max_latency_ms=5_000)
        for window in SPAN.windows(10_000)
    ]
    miss = Miss(
        "m-" + sla,
        sla,
        "demo",
        SPAN.start,
        None,
        SPAN.end,
        3,
        True,
        12_000.0,
        None,
        None,
        SPAN.start,
        "g",
        "t",
        0,
        state="open",
        bad_until=SPAN.end,
        max_latency_ms=5_000,
        for_ms=10_000,
    )
    Ledger(outcome.store).verdicts.replace(promise, SPAN, windows, lambda *_: [miss])


def _mail(folder: Path, number: int, sla: str) -> None:
    (folder / f"{number:03}.eml").write_text(f"Subject: missed: {sla}\n\n")


def test_the_told_misses_are_no_surprise(tmp_path: Path) -> None:
    outcome = _outcome(tmp_path)
    for number, sla in enumerate(("payments: too slow", "shipments: stopped", "audit: expiring")):
        _miss(outcome, sla)
        _mail(tmp_path, number, sla)

    assert [] == outcome.surprises()
    assert "payments: too slow" in outcome.text(tmp_path / "report.html")
    assert (tmp_path / "report.html").exists()


def test_an_absent_miss_a_false_one_and_an_untold_one_are_surprises(tmp_path: Path) -> None:
    outcome = _outcome(tmp_path)
    _miss(outcome, "payments: too slow")
    _miss(outcome, "orders: healthy")
    _mail(tmp_path, 1, "payments: too slow")

    assert [
        "audit: expiring should have been missed and was not",
        "shipments: stopped should have been missed and was not",
        "orders: healthy should not have been missed and was",
        "nobody was mailed about orders: healthy",
        "1 mails came, not 2",
    ] == outcome.surprises()
