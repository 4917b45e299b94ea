"""Who reads an SLA's partitions, who leads them, and the links between brokers, flows and SLAs."""

from __future__ import annotations

import html
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.pages.test_routes import ORDERS, Elements
from tests.kafka_sla.web.world import HOSTILE

PAYMENTS = "payments within 30 seconds"


def until(reader: Asker) -> dict[str, str]:
    """The newest time that the small world knows."""
    return {"to": reader.json(f"/api/v1/slas/{PAYMENTS}")["as_of"]}


def earlier(reader: Asker, minutes: int) -> dict[str, str]:
    at = datetime.fromisoformat(until(reader)["to"]) - timedelta(minutes=minutes)
    return {"from": (at - timedelta(hours=1)).isoformat(), "to": at.isoformat()}


def answer(reader: Asker, sla: str, **span: str) -> Any:
    return reader.json(f"/api/v1/slas/{sla}/readers", **(span or until(reader)))


def test_each_member_has_its_host_partitions_and_worst_latency_the_latest_first(reader: Asker) -> None:
    members = answer(reader, PAYMENTS)["members"]

    assert {("payments-1", "10.0.4.11", 2), ("payments-2", "10.0.4.12", 2), ("payments-3", "10.0.4.13", 2)} == {
        (member["client"], member["host"], member["partitions"]) for member in members
    }
    latencies = [member["worst_latency_ms"] for member in members]
    assert latencies == sorted(latencies, reverse=True)
    assert {0} == {member["late_partitions"] for member in members}


def test_members_that_lag_are_told_from_those_that_do_not(reader: Asker) -> None:
    members = {member["client"]: member for member in answer(reader, ORDERS)["members"]}

    assert 6 == members["orders-1"]["late_partitions"], "the first partitions are the latest"
    assert members["orders-1"]["worst_latency_ms"] > members["orders-2"]["worst_latency_ms"]
    assert "orders-0" == members["orders-1"]["worst_partition"]
    assert (0, None) == (members[HOSTILE]["partitions"], members[HOSTILE]["worst_latency_ms"])


def test_partitions_that_nobody_reads_are_named(reader: Asker) -> None:
    assert ["orders-11"] == answer(reader, ORDERS)["not_assigned"]
    assert [] == answer(reader, PAYMENTS)["not_assigned"]


def test_the_brokers_that_lead_its_partitions_have_their_latency(reader: Asker) -> None:
    brokers = answer(reader, ORDERS)["brokers"]

    assert [(1, 4), (2, 4), (3, 4)] == [(one["broker"], one["partitions"]) for one in brokers]
    assert max(one["worst_latency_ms"] for one in brokers) == answer(reader, ORDERS)["members"][0]["worst_latency_ms"]


def test_without_snapshots_nobody_is_known(reader: Asker) -> None:
    found = answer(reader, "clicks in Berlin")

    assert ([], [], None) == (found["members"], found["brokers"], found["seen_at"])


def test_time_that_is_over_is_answered_by_the_snapshots_of_then(reader: Asker) -> None:
    span = earlier(reader, 90)
    found = answer(reader, ORDERS, **span)

    seen = datetime.fromisoformat(span["to"]) - datetime.fromisoformat(found["seen_at"])
    assert timedelta() < seen <= timedelta(minutes=5)
    assert 0 == sum(member["late_partitions"] for member in found["members"]), "before it was late"


def test_the_page_of_an_sla_says_which_member_lags_and_leads_to_what_it_depends_on(reader: Asker) -> None:
    page = reader.get(f"/slas/{ORDERS}", **earlier(reader, 0)).text
    links = {str(a.get("href")) for a in Elements(page).all("a")}

    assert "<b>Both members are above the threshold.</b>" in page
    assert "No member reads orders-11." in page
    assert HOSTILE not in page
    assert {"/kafka-sla/unread?sla=orders+within+5+minutes", "/kafka-sla/brokers?cluster=prod"} <= links


def test_a_broker_leads_to_the_slas_that_read_from_it(reader: Asker) -> None:
    links = [str(a.get("href")) for a in Elements(reader.get("/brokers").text).all("a")]
    (second,) = [link for link in links if link.endswith("cluster=prod&broker=2")]
    page = reader.get("/brokers", cluster="prod", broker="2").text
    named = {str(a.get("href")) for a in Elements(page).all("a")}

    assert 200 == reader.get(second.removeprefix("/kafka-sla")).status_code
    assert {f"/kafka-sla/slas/{name.replace(' ', '%20')}" for name in (ORDERS, PAYMENTS)} <= named
    assert "(4 partitions)" in page
    assert "(2 partitions)" in page


def test_a_broker_leads_to_its_slas_at_the_time_that_is_shown(reader: Asker) -> None:
    span = earlier(reader, 30)
    links = [str(a.get("href")) for a in Elements(reader.get("/brokers", **span).text).all("a")]
    (second,) = [link for link in links if link.endswith("cluster=prod&broker=2")]
    page = reader.get(second.removeprefix("/kafka-sla")).text
    fields = {str(a["name"]): a.get("value") for a in Elements(page).all("input")}

    assert "(4 partitions)" in page
    assert ("prod", "2") == (fields["cluster"], fields["broker"]), "Show keeps them"
    assert [span["from"][:16], span["to"][:16]] == [str(fields[name])[:16] for name in ("from", "to")]


def test_a_flow_leads_to_the_slas_that_read_its_topic(reader: Asker) -> None:
    page = reader.get("/replication").text
    named = {str(a.get("href")) for a in Elements(page).all("a")}

    assert {f"/kafka-sla/slas/{name.replace(' ', '%20')}" for name in (ORDERS, PAYMENTS)} <= named
    assert {"/kafka-sla/brokers?cluster=prod", "/kafka-sla/brokers?cluster=dr"} <= named


@pytest.fixture
def many_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration with SLAs that name the replicated topic, or its copy, by patterns; and two that only seem to."""
    config = Path(os.environ["KAFKA_SLA_CONFIG"])
    known = yaml.safe_load(config.read_text())
    named = [("prod", f"wide {n}", "ord*") for n in range(4)] + [("dr", f"copy {n}", "prod.o*") for n in range(2)]
    named += [("prod", "orders of others", "none"), ("dr", "another orders", "orders")]
    ours = [{"name": n, "cluster": c, "group": n, "topic": t, "max_latency": "1m"} for c, n, t in named]
    mine = config.with_name("many_readers.yml")
    mine.write_text(yaml.safe_dump({**known, "slas": [*known["slas"], *ours]}))
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(mine))


@pytest.mark.usefixtures("many_readers")
def test_a_flow_with_many_slas_leads_to_all_of_them_on_either_side(reader: Asker) -> None:
    page = reader.get("/replication").text
    links = dict(re.findall(r'<a href="/kafka-sla(/[^"]+)">(all \d+ of \w+)</a>', page))
    found = {
        words: {row["name"] for row in reader.json(f"/api/v1/slas{html.unescape(link[1:])}")}
        for link, words in links.items()
    }

    assert "and 4 more: " in page
    assert {"all 5 of prod": {ORDERS, *(f"wide {n}" for n in range(4))}, "all 2 of dr": {"copy 0", "copy 1"}} == found
    for link in links:
        listed = reader.get(html.unescape(link)).text
        assert "/slas/another%20orders" not in listed
        assert 'type="hidden" name="topic"' in listed, "the filter keeps it"


@pytest.mark.parametrize(("path", "other"), [("/replication", PAYMENTS), ("/unread", "payments-service")])
def test_a_page_may_be_about_one_sla(reader: Asker, path: str, other: str) -> None:
    whole, mine = reader.get(path).text, reader.get(path, sla=ORDERS).text

    assert other in whole
    assert other not in mine
    assert "orders" in mine
    assert 404 == reader.get(path, sla="nothing").status_code
