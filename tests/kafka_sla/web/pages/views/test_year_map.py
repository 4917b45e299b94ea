"""The calendar of an SLA's last year: which level each day has, and where it leads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, Rollup
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.pages.test_routes import ORDERS, Elements
from tests.kafka_sla.web.world import CONFIGURATION

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), 60_000
NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
"""A Wednesday."""


@pytest.fixture
def context(asgi: Any, tmp_path: Path) -> Any:
    from kafka_sla.web.queries.context import Context

    config, store = tmp_path / "kafka_sla.yml", Store.embedded(tmp_path)
    config.write_text(CONFIGURATION)
    ledger = Ledger(store)
    ledger.open(writing=True)
    return Context(load_settings(config), ledger, Lake(store), store, NOW)


def judge(context: Any, days_ago: int, **first_hour: int) -> None:
    """A day that was good but for its first hour."""
    start = NOW.replace(hour=0) - days_ago * DAY
    hours = [Rollup(Interval(start, start + HOUR), **first_hour)]
    hours += [Rollup(Interval(at := start + n * HOUR, at + HOUR), good_ms=HOUR_MS) for n in range(1, 24)]
    context.ledger.rollups.replace(ORDERS, Interval(start, start + DAY), hours, HOUR_MS)


def drawn(context: Any) -> Any:
    from kafka_sla.web.pages.views.year_map import year_map

    return year_map(context, next(sla for sla in context.settings.slas if sla.name == ORDERS))


def test_a_day_is_as_bad_as_its_share_of_bad_time_and_the_objective_say(context: Any) -> None:
    judge(context, 5, good_ms=HOUR_MS)
    judge(context, 4, good_ms=50 * MINUTE, bad_ms=10 * MINUTE)
    judge(context, 3, good_ms=40 * MINUTE, bad_ms=20 * MINUTE)
    judge(context, 2, bad_ms=5 * HOUR_MS)
    judge(context, 1, unknown_ms=HOUR_MS)

    year = drawn(context)

    assert ["never", "good", "slight", "below", "far-below", "good", "never"] == [
        cell["level"] for cell in year["cells"][-7:]
    ]
    assert "2026-03-08: 98.611 % attained, 20 min bad" == year["cells"][-4]["text"]
    assert "1 h unknown" in year["cells"][-2]["text"]
    assert "5 days judged in the last year, 2 of them below the objective" == year["text"]


@pytest.mark.parametrize("kind", ["excluded", "unknown"])
def test_a_day_without_good_or_bad_time_says_why(context: Any, kind: str) -> None:
    start = NOW.replace(hour=0) - DAY
    day = [Rollup(Interval(start, start + DAY), **{f"{kind}_ms": DAY_MS})]
    context.ledger.rollups.replace(ORDERS, Interval(start, start + DAY), day, HOUR_MS)

    assert kind == drawn(context)["cells"][-2]["level"]


def test_weeks_are_columns_from_monday_to_sunday_and_the_newest_is_the_last(context: Any) -> None:
    year = drawn(context)

    assert 52 * 7 + 3 == len(year["cells"])
    assert (0, 0) == (year["cells"][0]["x"], year["cells"][0]["y"])
    assert (52 * 14, 2 * 14) == (year["cells"][-1]["x"], year["cells"][-1]["y"])
    assert "2026-03-11" in year["cells"][-1]["text"]
    assert 11 <= len(year["months"]) <= 13


def test_a_bad_day_leads_to_its_charts_and_others_lead_nowhere(reader: Asker) -> None:
    page = reader.get(f"/slas/{ORDERS}").text
    found = Elements(page[page.index("scroll newest year") : page.index("key year")])
    links = [str(a["href"]) for a in found.all("a")]

    assert 1 <= len(links) <= 2
    assert "T00%3A00&to=" in links[0]
    assert len(found.all("title")) == len(found.all("rect")) > 52 * 7
    assert 200 == reader.get(f"/slas/{ORDERS}{links[0]}").status_code
