"""When a consumer will have caught up, from published files to the terminal and into the mail of its miss."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from demo.mailbox import mailbox
from kafka_sla.cli.main import main
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.pace_rows import published_catch_ups
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection, Interval, SlaWindow
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.pipeline import steps
from tests.kafka_sla.loads import load, metric_row, span, write

NAME = "orders within 30 seconds of being produced, for billing.alerts-authorised-v2"
CONFIG = f"""\
clusters: {{a: {{}}}}
slas:
  - {{name: "{NAME}", group: payments, topic: orders, max_latency: 30s, for: 2m, objective: 99%,
     recipients: [on-call@example.com]}}
"""
STATUS = ("status", "--config", "kafka_sla.yml", "--store", "kafka_sla_store")
PUBLISHED = span("10:00", "10:20")
STUCK = {"records_lag": 9_000, "backlog_age_ms": 1.2e6, "backlog_age_low_ms": 1.1e6, "backlog_age_high_ms": 1.2e6}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A group that does not move, and its open miss."""
    monkeypatch.chdir(tmp_path)
    Path("kafka_sla.yml").write_text(CONFIG)
    settings, store = load_settings("kafka_sla.yml"), Store.embedded(Path("kafka_sla_store"))
    ledger, sla = Ledger(store), settings.sla(NAME)
    load(Lake(store), ledger, "load", PUBLISHED, **STUCK)
    bad = [
        SlaWindow(NAME, window, "bad", True, "", 1.2e6, 1.1e6, 1.2e6, "payments", "orders", 0, max_latency_ms=30_000)
        for window in PUBLISHED.windows(60_000)
    ]
    ledger.verdicts.replace(sla, PUBLISHED, bad)
    return settings


def test_the_terminal_shows_who_will_not_catch_up(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(STATUS), main([*STATUS, "--json"])) == (0, 0)
    text, _, found = capsys.readouterr().out.partition("\n{")

    assert f"{NAME[:39]}…  never at the pace of the last 14 min" in text
    assert max(map(len, text.splitlines())) <= 100
    (sla,) = json.loads("{" + found)["slas"]
    assert (sla["catch_up"]["state"], sla["catch_up"]["at"]) == ("never", "2026-03-02T10:20:00.000Z")
    assert (sla["catch_up"]["slowest"]["lag"], sla["catch_up"]["text"]) == (
        9_000,
        "never at the pace of the last 14 min",
    )


def test_the_mail_of_an_open_miss_says_so_and_that_of_a_past_time_says_what_was_known_then(
    settings: Settings, tmp_path: Path
) -> None:
    with mailbox(tmp_path / "mail") as box:
        smtp = Connection(
            "smtp",
            "127.0.0.1",
            box.port,
            extra={"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True},
        )
        early = Interval(PUBLISHED.start, PUBLISHED.start + timedelta(minutes=4))
        steps.notify(settings, Store.embedded(Path("kafka_sla_store")), [NAME], early, smtp, None)
        (mail,) = box.mails()
    body = mail.get_body(("plain",))

    assert body is not None
    assert "Caught up: not known: payments orders-0: its lag has not been known for long enough" in (
        body.get_content().replace("\r\n", "\n")
    )


def test_a_damaged_file_costs_the_time_and_not_the_status(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = Path("kafka_sla_store").rglob("consumer_latency/*.parquet")
    path.write_bytes(path.read_bytes()[:-500])

    assert main([*STATUS, "--wide"]) == 0
    assert f"{NAME}  not known: 1 damaged file: run kafka-sla store check" in capsys.readouterr().out


def test_who_has_caught_up_and_who_has_not_in_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier windows are read of the groups that are behind; the others keep their answer."""
    monkeypatch.chdir(tmp_path)
    names = ["billing.alerts-authorised-v2", "orders.enriched-v1"]
    slas = [f"  - {{name: {name}, group: {name}, topic: orders, max_latency: 30s}}\n" for name in names]
    Path("kafka_sla.yml").write_text("clusters: {a: {}}\nslas:\n" + "".join(slas))
    settings, store = load_settings("kafka_sla.yml"), Store.embedded(Path("kafka_sla_store"))
    ledger, lake = Ledger(store), Lake(store)
    ledger.open(writing=True)
    draining = [
        {"group": names[0], "window": window, "records_lag": 6_000 - 300 * minute, "age": 600_000.0}
        for minute, window in enumerate(PUBLISHED.windows(60_000))
    ]
    idle = [{**one, "group": names[1], "records_lag": 0, "age": 0.0} for one in draining]
    rows = [
        metric_row(CONSUMER_LATENCY, "a", 0, one["window"])
        | {"group": one["group"], "records_lag": one["records_lag"]}
        | dict.fromkeys(("backlog_age_ms", "backlog_age_low_ms", "backlog_age_high_ms"), one["age"])
        for one in (*draining, *idle)
    ]
    lake.add_load("load", PUBLISHED, {CONSUMER_LATENCY.name: [write(lake, "load", PUBLISHED, CONSUMER_LATENCY, rows)]})
    ledger.publications.publish(["a"], PUBLISHED, "load", 0)

    found = published_catch_ups(lake, settings.slas, {"a": PUBLISHED.end}, 60_000)

    assert {name: (one.state, one.partitions, one.behind) for name, one in found.items()} == {
        names[0]: ("catching_up", 1, 1),
        names[1]: ("caught_up", 1, 0),
    }
    assert found[names[0]].in_ms == 60_000.0
