"""Missing time as the page of coverage words it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from kafka_sla.model.entities import Interval
from kafka_sla.reporting.templates import visible
from kafka_sla.web.pages.views import gap_views
from kafka_sla.web.queries.backfill_commands import judge
from kafka_sla.web.queries.gaps import Missing

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def test_what_is_copied_into_a_form_names_slas_to_the_letter() -> None:
    """Pages replace characters that cannot be seen, also in what is copied."""
    names = ["می\u200cخواهم", "👩\u200d💻", "soft\u00adware"]
    day = Interval(MARCH, MARCH + timedelta(days=1))
    found = Missing(start=day.start, end=day.end, times=[], omitted=0, unjudged=[], remediations=[judge(day, names)])

    (shown,) = gap_views.missing(found, str)["judge"]

    assert names == json.loads(visible(shown["json"]))["slas"]
