"""A consumer that misses its SLA hundreds of times, and one that has missed its own for weeks and has not recovered."""

from __future__ import annotations

import csv
import html
import io
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from tests.kafka_sla.web.conftest import Asker, asker, store_connection
from tests.kafka_sla.web.large_world import MINUTE, window
from tests.kafka_sla.web.world import whole_minute

FLAPPING, STUCK = "payments-eu.authorised-v2 within 30 seconds", "@billing nightly-export.v1 in time"
CONFIGURATION = f"""
clusters: {{prod-eu-central-1: {{}}}}
defaults: {{max_latency: 30s, for: 1m, team: Payments}}
store_connection: many_misses_store
window: 30s
slas:
  - {{name: {FLAPPING}, group: payments-eu.authorised-v2, topic: payments}}
  - {{name: "{STUCK}", group: billing.nightly-export-v1, topic: exports}}
"""
WEEKS = timedelta(days=20)
FLAPS = 701
HALF_A_MINUTE = timedelta(seconds=30)


@pytest.fixture(scope="module")
def months(reader: Asker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """The reader of that store."""
    folder, now = tmp_path_factory.mktemp("many"), whole_minute()
    config, store = folder / "kafka_sla.yml", Store.embedded(folder / "store")
    config.write_text(CONFIGURATION)
    ledger = Ledger(store)
    ledger.open(writing=True)
    flapping, stuck = load_settings(config).slas
    since = now - 2 * FLAPS * MINUTE - HALF_A_MINUTE
    fates = {
        flapping: [window(flapping, since + n * MINUTE, "good" if n % 2 else "bad") for n in range(2 * FLAPS)],
        stuck: [window(stuck, now - WEEKS + n * MINUTE, "bad") for n in range(3)],
    }
    for sla, windows in fates.items():
        span = Interval(windows[0].window.start, windows[-1].window.end)
        ledger.verdicts.replace(sla, span, windows)
    with pytest.MonkeyPatch.context() as environment, store_connection(store, "many_misses_store"):
        environment.setenv("KAFKA_SLA_CONFIG", str(config))
        yield reader


def page(months: Asker, path: str, **query: Any) -> str:
    answer = months.get(path, **query)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def test_an_open_miss_is_listed_before_hundreds_of_newer_ones(months: Asker) -> None:
    listed = re.findall(r'<td class="name"><a href="/kafka-sla/slas/[^"]*">([^<]+)</a>', page(months, "/misses"))

    assert [STUCK, FLAPPING, FLAPPING] == listed[:3]
    assert [STUCK, FLAPPING] == [miss["sla"] for miss in months.json("/api/v1/misses", **week_of(months), most=2)]


def week_of(months: Asker) -> dict[str, str]:
    """A time that the miss of weeks overlaps, though it began long before."""
    now = whole_minute()
    return {"from": (now - timedelta(days=7)).isoformat(), "to": now.isoformat()}


def test_all_misses_are_counted_though_only_some_are_shown(months: Asker) -> None:
    assert "100 of 702, open ones first" in page(months, "/misses")
    assert "701 misses in this time" in page(months, f"/slas/{FLAPPING}", **week_of(months))
    team = page(months, "/teams/Payments")
    assert "702 misses in the last 30 days" in team
    assert "10 of them, open ones first" in team
    assert 500 == len(months.json("/api/v1/misses", **week_of(months)))


def test_what_has_left_the_configuration_open_is_not_before_all_others_for_ever(months: Asker) -> None:

    config = Path(os.environ["KAFKA_SLA_CONFIG"])
    text = config.read_text()
    config.write_text(text.partition(f'  - {{name: "{STUCK}"')[0])
    try:
        found = months.json("/api/v1/misses", **week_of(months), most=3)
        assert [FLAPPING] * 3 == [miss["sla"] for miss in found]
        assert 702 == len(months.json("/api/v1/misses", **week_of(months), most=1000))
    finally:
        config.write_text(text)


def test_time_between_whole_minutes_is_excluded_as_it_is(months: Asker, asgi: Any) -> None:
    operator = asker(asgi, "OP")
    miss = months.json("/api/v1/misses", sla=FLAPPING, state="recovered", most=1)[0]
    (link,) = map(
        urlsplit, re.findall(r'<a href="/kafka-sla(/slas/[^"]+)#exclusions">', page(operator, f"/misses/{miss['id']}"))
    )
    fields = re.findall(
        r'name="(from|to)" value="([^"]+)" step="1" required',
        page(operator, unquote(link.path), **dict(parse_qsl(link.query))),
    )[-2:]
    headers = {"Authorization": f"Bearer {operator.token}"}
    path = f"/kafka-sla/slas/{FLAPPING}/exclusions"
    answer = operator.client.post(
        path, data={**dict(fields), "reason": "replay"}, headers=headers, follow_redirects=False
    )

    assert [f"{value}Z" for _, value in fields] == [miss["start"], miss["end"]]
    assert all(value.endswith(":30") for _, value in fields)
    assert quote(fields[0][1], safe="") in answer.headers["location"]
    (one,) = months.json("/api/v1/exclusions")
    assert [one["start"], one["end"]] == [miss["start"], miss["end"]]


def test_a_name_that_a_spreadsheet_would_compute_is_text_in_a_csv_and_as_it_is_elsewhere(months: Asker) -> None:
    table, span = "/api/v1/tables/sla_misses", {"from": (whole_minute() - 2 * WEEKS).isoformat()}
    names = {row["sla"] for row in csv.DictReader(io.StringIO(months.get(table, **span).text))}

    assert {f"'{STUCK}", FLAPPING} == names
    assert {STUCK, FLAPPING} == {row["sla"] for row in months.json(table, **span, format="json")}
