"""The HTML report, from a real ledger to the words and pictures of the page."""

from __future__ import annotations

import re
import tempfile
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, SlaWindow
from kafka_sla.reporting.report import ReportedSla, html_report, reported, write_report
from tests.kafka_sla.notifications.misses import START, hour, miss, promise

HOUR = Interval(START, START + timedelta(hours=1))
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(1)>\u202e'


class Words(HTMLParser):
    """The text that a reader sees, tags that may do something, and whether every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.open = [""]
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text = f"{self.text} {' '.join(data.split())}".strip()


def one(windows: list[SlaWindow], found: tuple[Miss, ...] = (), **changes: Any) -> ReportedSla:
    """What is reported of a ledger that holds these."""
    sla = promise(**changes)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Store.embedded(Path(folder)))
        ledger.verdicts.replace(
            sla,
            HOUR,
            [replace(window, sla=sla.name) for window in windows],
            lambda *_: [replace(miss, sla=sla.name) for miss in found],
        )
        return reported(ledger, sla, HOUR)


def told(*slas: ReportedSla, validation: tuple[dict[str, Any], ...] = ()) -> str:
    return Words(html_report(HOUR, [(sla, {}) for sla in slas], validation)).text


def written(folder: Path) -> str:
    """The report of the story, with its plot."""
    ledger, sla = Ledger(Store.embedded(folder / "store")), promise()
    ledger.verdicts.replace(sla, HOUR, hour())
    return write_report(folder / "report.html", ledger, [sla], HOUR).read_text()


def result(number: int = 0, success: bool = True, severity: str = "warning", **changes: Any) -> dict[str, Any]:
    fields = {
        "load_id": "load",
        "interval_start": START,
        "interval_end": HOUR.end,
        "table_name": "consumer_latency",
        "expectation_id": f"e{number}",
        "expectation": f"rule {number}",
        "severity": severity,
        "success": success,
        "observed": None,
        "unexpected_rows": None,
    }
    return {**fields, **changes}


def only(verdict: str) -> list[SlaWindow]:
    return [w for w in hour() if w.verdict == verdict]


def test_a_report_is_written_from_what_the_ledger_holds(tmp_path: Path) -> None:
    ledger, sla = Ledger(Store.embedded(tmp_path / "store")), promise()
    ledger.verdicts.replace(sla, HOUR, hour())
    ledger.validations.store([result(), result(1, False, observed="3 rows", unexpected_rows=3)])

    path = write_report(tmp_path / "new" / "report.html", ledger, [sla], HOUR)

    text = Words(path.read_text()).text
    assert "SLA report 2026-03-02 09:40:00 UTC to 2026-03-02 10:40:00 UTC (1 h) 1 missed" in text
    assert "2026-03-02 10:00:00 UTC to 2026-03-02 10:21:00 UTC (21 min) , 21 bad windows" in text
    assert "1 of 2 expectations held in 1 validated load." in text


def test_it_says_what_was_promised_attained_and_missed_and_why() -> None:
    text = told(one(hour(), (miss(),)))

    assert "Every record is consumed within 30 s; a miss opens after 2 min of violations. Objective 99.9 %" in text
    assert "61.818 % attained in this interval, 96.666 % of it known" in text
    assert "88.545 % of 165,000 records in time, 18,900 late" in text
    assert "good 34 min bad 21 min excluded 3 min unknown 2 min" in text
    assert "23 min 38 s left of 44 min 38 s error budget; burn rate 382" in text
    assert (
        "Worst latency 17 min 24 s (bounds 16 min 32 s – 18 min 16 s) at 2026-03-02 10:17:00 UTC, threshold 30 s: group"
        in text
    )
    assert str(miss().evidence["sentence"]) in text
    assert "Produced 50.1/s 49.8/s Consumed 50/s 0/s Records waiting 120 up to 55,200" in text
    assert "excluded maintenance: broker upgrade 3 min unknown no data for group payments 2 min" in text


def test_the_plot_is_inside_the_file_and_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    page = written(tmp_path)

    pictures = re.findall(r'(src|srcset)="data:image/png;base64,([^"]+)"', page)
    assert [name for name, _ in pictures] == ["srcset", "src"], "for dark screens, and for all others and paper"
    assert all(b64decode(picture).startswith(b"\x89PNG") for _, picture in pictures)
    assert pictures[0][1] != pictures[1][1]
    assert not re.findall(r'(?:src|srcset|href)="(?!data:|#)', page)
    assert "default-src 'none'" in page


def test_of_very_many_slas_those_in_trouble_are_plotted(tmp_path: Path) -> None:
    ledger = Ledger(Store.embedded(tmp_path / "store"))
    slas = [promise(name=f"shop.orders-{n:03}") for n in range(25)]
    for n, sla in enumerate(slas):
        windows = [replace(w, sla=sla.name) for w in (hour() if n == 24 else only("good"))]
        ledger.verdicts.replace(sla, HOUR, windows)

    page = write_report(tmp_path / "report.html", ledger, slas, HOUR).read_text()

    assert page.count("<picture>") == 20
    assert page.count("Only the SLAs in most trouble are plotted here") == 5
    assert 'alt="Latency of shop.orders-024' in page


@pytest.mark.parametrize(
    ("windows", "found", "outcome"),
    [
        (only("good"), (), "met"),
        (only("bad")[:1], (), "met"),
        (hour(), (miss(),), "missed"),
        (only("excluded"), (), "excluded"),
        (only("unknown"), (), "unknown"),
        ([*only("excluded")[:1], *only("unknown")[1:]], (), "unknown"),
        ([], (), "unknown"),
    ],
)
def test_outcomes(windows: list[SlaWindow], found: tuple[Miss, ...], outcome: str) -> None:
    assert outcome == one(windows, found).outcome


def test_time_that_was_never_judged_is_shown_as_unknown() -> None:
    text = told(one([]))

    assert "unknown 1 h Nothing was judged in this interval." in text
    assert "unknown attained in this interval, 0 % of it known" in text


def test_a_miss_that_is_still_open_and_in_doubt_says_so() -> None:
    text = told(one(hour()[:41], (miss(end=None, is_certain=False),)))

    assert "Since 2026-03-02 10:00:00 UTC, still open , 21 bad windows" in text
    assert "some of this time may have met the SLA" in text


def test_of_very_many_misses_the_first_are_told_and_the_rest_counted() -> None:
    text = told(one(hour(), tuple(miss(id=f"m{n}") for n in range(25))))

    assert "25 misses" in text
    assert "Miss m19" in text
    assert "Miss m20" not in text
    assert "5 more: see kafka-sla misses" in text


def test_broken_expectations_are_told_the_gravest_first() -> None:
    rules = (result(1, False, "info"), result(2, False, "critical", observed="7 rows", unexpected_rows=7), result(3))

    text = told(validation=rules)

    assert "1 of 3 expectations held" in text
    assert re.search(r"critical .* rule 2 7 rows 7 info .* rule 1", text)


def test_a_report_without_slas_and_validation_says_so() -> None:
    assert "No SLA is configured." in told()
    assert "Nothing was validated in this interval." in told()


def test_hostile_names_are_shown_and_do_nothing() -> None:
    windows = [SlaWindow(HOSTILE, w.window, "unknown", False, HOSTILE, max_latency_ms=30_000) for w in hour()]
    found = miss(worst_group=HOSTILE, worst_topic=HOSTILE, evidence={**miss().evidence, "sentence": HOSTILE})
    broken = result(1, False, expectation=HOSTILE, observed=HOSTILE, table_name=HOSTILE, severity=HOSTILE)

    sla = one(windows, (found,), name=HOSTILE, description=HOSTILE, team=HOSTILE)
    page = html_report(HOUR, [(sla, {"light": b"png", "dark": b"png"})], [broken])

    words = Words(page)
    assert "script" not in words.tags
    assert words.tags.count("img") == 1
    assert "\u202e" not in page
    assert '<script>alert("1")</script>' in words.text


def test_the_calendar_period_reaches_back_before_the_interval(tmp_path: Path) -> None:
    ledger, sla = Ledger(Store.embedded(tmp_path)), promise(period="day")
    whole = Interval(START - timedelta(hours=2), HOUR.end)
    before = [
        SlaWindow(
            w.sla,
            Interval(w.window.start - timedelta(hours=2), w.window.end - timedelta(hours=2)),
            "good",
            True,
            "",
            max_latency_ms=30_000,
        )
        for w in hour()
    ]
    ledger.verdicts.replace(sla, whole, [*before, *hour()])

    found = reported(ledger, sla, HOUR)

    assert (found.within.good_ms, found.period.good_ms) == (34 * 60_000, 94 * 60_000)
    assert sum(time.ms for time in found.judged) == 60 * 60_000


def test_an_interval_longer_than_the_period_keeps_its_own_windows(tmp_path: Path) -> None:
    ledger, sla = Ledger(Store.embedded(tmp_path)), promise(period="day")
    ledger.verdicts.replace(sla, HOUR, hour())

    found = reported(ledger, sla, Interval(START, START + timedelta(days=3)))

    assert (sum(time.ms for time in found.judged), found.period.good_ms) == (60 * 60_000, 0)


def test_thresholds_that_changed_are_told_as_often_as_they_did() -> None:
    windows = [replace(window, max_latency_ms=5_000 if 20 <= n < 40 else 30_000) for n, window in enumerate(hour())]

    assert one(windows).limits == "30 s, then 5 s, then 30 s"
