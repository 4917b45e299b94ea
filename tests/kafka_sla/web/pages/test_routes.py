"""The pages as a browser without JavaScript gets them."""

from __future__ import annotations

import html
import os
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import HOSTILE

ORDERS = "orders within 5 minutes"
PAGES = [
    "/",
    "/teams/Payments",
    f"/teams/{HOSTILE}",
    "/slas/orders within 5 minutes",
    f"/slas/{HOSTILE}",
    "/misses",
    "/quality",
    "/coverage",
    "/brokers",
    "/replication",
    "/unread",
    "/reports",
    "/reports/Gone/month-20260201T0000Z",
    "/dags/kafka_sla",
    "/dags/other",
]


class Elements(HTMLParser):
    """Tags with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_holds_nothing_that_its_policy_forbids(reader: Asker, path: str) -> None:
    found = Elements(reader.get(path).text)

    assert all(script.get("src", "").startswith("/kafka-sla/static/") for script in found.all("script"))  # type: ignore[union-attr]
    assert [] == [name for name, attributes in found.found if "style" in attributes]
    assert [] == [name for name, attributes in found.found if any(key.startswith("on") for key in attributes)]


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_text(reader: Asker, path: str) -> None:
    page = reader.get(path).text

    assert HOSTILE not in page
    assert "alert(" not in re.sub(r"&lt;script&gt;alert\(&#39;x&#39;\)&lt;/script&gt;", "", page)


@pytest.mark.parametrize("path", PAGES)
def test_every_link_and_file_of_a_page_leads_somewhere(reader: Asker, path: str) -> None:
    found = Elements(reader.get(path).text)
    links = {str(a.get("href")) for a in found.all("a")} | {str(s.get("src")) for s in found.all("script")}
    own = sorted(link for link in links if link.startswith("/kafka-sla/") and "/api/" not in link)

    assert own
    assert [] == [link for link in own if reader.get(link.removeprefix("/kafka-sla")).status_code != 200]


def test_open_misses_are_first_and_every_state_has_a_word(reader: Asker) -> None:
    page = reader.get("/").text
    words = re.findall(r'<span class="badge (\w+)"><span aria-hidden="true">.</span> ([\w ]+)</span>\s*</?\w', page)

    assert "orders within 5 minutes" in re.findall(r'<td class="name"><a [^>]+><b>([^<]+)</b></a>', page)[0]
    assert {("missed", "missed"), ("met", "met"), ("excluded", "excluded"), ("unknown", "unknown")} <= set(words)


def test_a_miss_is_a_page_of_its_own(reader: Asker) -> None:
    (miss,) = reader.json("/api/v1/misses", state="open")
    page = html.unescape(reader.get(f"/misses/{miss['id']}").text)

    assert f"<h1>SLA missed: {ORDERS}</h1>" in page
    assert miss["evidence"]["sentence"] in page
    assert "every record is consumed within 5 min" in page


def test_the_error_budget_s_chart_says_in_whole_percent_how_much_of_the_period_is_over(reader: Asker) -> None:
    assert re.search(r"is left after \d+ % of the month", reader.get(f"/slas/{ORDERS}").text)


def test_an_sla_shows_any_period_and_links_to_it(reader: Asker) -> None:
    page = reader.get(f"/slas/{ORDERS}", **{"from": "2026-03-01T10:00", "to": "2026-03-01T12:00"}).text

    assert "2026-03-01 10:00:00 UTC to 2026-03-01 12:00:00 UTC" in page
    assert "?from=2026-03-01T10%3A00&amp;to=2026-03-01T12%3A00" in page
    assert "No miss in this time" in page


def test_a_part_of_a_second_has_an_address_too(reader: Asker) -> None:
    page = reader.get(f"/slas/{ORDERS}", **{"from": "2026-11-28T05:00:00.2", "to": "2026-11-28T05:00:00.8"}).text
    (here,) = re.findall(r'class="permalink" href="([^"]+)"', page)

    assert 200 == reader.get(f"/slas/{ORDERS}{html.unescape(here)}").status_code


@pytest.mark.parametrize(
    ("start", "to"),
    [("2024-01-01", "2026-01-01"), ("2021-01-02", "2026-01-05"), ("1970-01-01", "1970-01-02"), ("2026-01-01", "ahead")],
    ids=["two years", "all that may be asked for", "first day", "a year ahead"],
)
def test_whatever_an_sla_shows_what_lies_around_it_can_be_shown_too(reader: Asker, start: str, to: str) -> None:
    to = (datetime.now(UTC) + timedelta(days=365)).isoformat()[:19] if to == "ahead" else to
    page = reader.get(f"/slas/{ORDERS}", **{"from": start, "to": to}).text
    around = neighbours(page)

    assert around
    assert {name: reader.get(f"/slas/{ORDERS}{link}").status_code for name, link in around.items()} == dict.fromkeys(
        around, 200
    )


def test_zooming_out_ends_with_the_longest_time_that_may_be_asked_for(reader: Asker) -> None:
    """Each time what was shown is shown, and more, until there is no more."""
    link, shown, steps = "?from=2025-12-01T10:00&to=2026-02-01T12:00", timedelta(0), 0
    while link:
        asked = parse_qs(link[1:])
        start, end = (datetime.fromisoformat(asked[name][0]) for name in ("from", "to"))
        assert end - start > shown
        shown, steps = end - start, steps + 1
        link = neighbours(reader.get(f"/slas/{ORDERS}{link}").text).get("zoom out", "")

    assert (shown, steps) == (timedelta(days=5 * 366), 5)


def neighbours(page: str) -> dict[str, str]:
    """What lies around the time that the page of an SLA shows: name and link."""
    links = re.findall(r'<a href="([^"]+)">(earlier|later|zoom out)</a>', page)
    return {name: html.unescape(link) for link, name in links}


def test_forms_keep_what_was_chosen(reader: Asker) -> None:
    page = reader.get("/misses", team="Orders", state="open").text

    assert '<option value="Orders" selected>Orders</option>' in page
    assert '<option value="open" selected>open</option>' in page


UNSEEN = ("تیم می\u200cخواهم", "टीम क्\u200dष", "👩\u200d💻 crew", "\u200fצוות", "soft\u00adware", "two  blanks")
"""Names that need characters that cannot be seen, or blanks that a browser would join."""


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration with such names of SLAs, groups and teams."""
    config = Path(os.environ["KAFKA_SLA_CONFIG"])
    known = yaml.safe_load(config.read_text())
    ours = [{"name": n, "group": n, "team": n, "topic": "orders", "max_latency": "1m"} for n in UNSEEN]
    mine = config.with_name("unseen.yml")
    mine.write_text(yaml.safe_dump({**known, "slas": [*known["slas"], *ours]}, allow_unicode=True))
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(mine))


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("name", UNSEEN)
def test_what_a_form_offers_and_keeps_are_names_to_the_letter(reader: Asker, name: str) -> None:
    offered = [a.get("value") for a in Elements(reader.get("/misses").text).all("option")]
    searched = [a.get("value") for a in Elements(reader.get("/", q=name).text).all("input")]
    kept = [Elements(reader.get(path, sla=name).text).all("input") for path in ("/replication", "/unread")]

    assert 3 == offered.count(name), "as SLA, group and team"
    assert None not in offered
    assert name in searched
    assert [True, True] == [name in [field.get("value") for field in fields] for fields in kept]


def test_strangers_with_a_browser_are_shown_the_way_to_the_login(stranger: Asker) -> None:
    answer = stranger.client.get("/kafka-sla/misses?team=Orders", headers={"accept": "text/html"})

    assert 401 == answer.status_code
    assert '/auth/login?next=%2Fkafka-sla%2Fmisses%3Fteam%3DOrders"' in answer.text


def test_who_logged_out_while_writing_logs_in_to_the_page_of_the_form(stranger: Asker) -> None:
    page = "http://testserver/kafka-sla/misses/0badcafe"
    answer = stranger.client.post(f"{page}/notes", headers={"accept": "text/html", "referer": page})

    assert 401 == answer.status_code
    assert '/auth/login?next=http%3A%2F%2Ftestserver%2Fkafka-sla%2Fmisses%2F0badcafe"' in answer.text


def test_a_session_that_airflow_does_not_know_any_more_is_shown_the_way_to_the_login(stranger: Asker) -> None:
    """Airflow answers 403 to it, as to a user without the right."""
    answer = stranger.client.get(
        "/kafka-sla/misses", headers={"accept": "text/html", "authorization": "Bearer signed.by.another"}
    )

    assert 403 == answer.status_code
    assert "Please log in" in answer.text
    assert "/auth/login?next=" in answer.text


def test_who_may_not_is_told_what(reader: Asker, outsider: Asker) -> None:
    headers = {"accept": "text/html", "authorization": f"Bearer {outsider.token}"}
    seen = outsider.client.get("/kafka-sla/misses", headers=headers).text
    headers["authorization"] = f"Bearer {reader.token}"
    written = reader.client.post("/kafka-sla/misses/0badcafe/notes", headers=headers).text

    assert "<h1>You may not see this</h1>\n<p>It needs the right to read the DAG kafka_sla in Airflow.</p>" in seen
    assert "<h1>You may not do this</h1>\n<p>It needs the right to edit the DAG kafka_sla in Airflow.</p>" in written
    assert "/auth/login" not in seen + written


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/nowhere", 404, "<h1>Not found</h1>"),
        (
            "/misses?state=perhaps",
            422,
            "<p>State: Input should be &#39;&#39;, &#39;open&#39;, &#39;recovered&#39;, &#39;excluded&#39; or"
            " &#39;removed&#39;.</p>",
        ),
        ("/brokers?broker=one", 422, "<h1>A parameter is not valid</h1>"),
        ("/misses/a%00b", 400, "<p>The address holds a NUL, which no name has.</p>"),
        ("/slas/orders?from=%00", 400, "holds a NUL"),
        ("/misses?to=9990-01-01&from=9989-01-01", 400, "more than a year ahead"),
    ],
)
def test_people_are_told_on_a_page_what_cannot_be_answered(reader: Asker, path: str, status: int, told: str) -> None:
    as_people = {"accept": "text/html,*/*", "authorization": f"Bearer {reader.token}"}
    page = reader.client.get(f"/kafka-sla{path}", headers=as_people)
    answer = reader.client.get(f"/kafka-sla{path}", headers=as_people | {"accept": "*/*"})

    assert (status, True) == (page.status_code, told in page.text)
    assert (status, True) == (answer.status_code, bool(answer.json()["detail"]))


def test_errors_of_several_lines_are_shown_line_by_line(reader: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Path(os.environ["KAFKA_SLA_CONFIG"])
    wrong = config.with_name("wrong.yml")
    wrong.write_text(config.read_text() + "window: soon\ninterval: later\n")
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(wrong))
    page = reader.client.get(
        "/kafka-sla/", headers={"accept": "text/html", "authorization": f"Bearer {reader.token}"}
    ).text

    assert re.search(r"window: .*<br>.*interval: ", page)
    assert "\N{REPLACEMENT CHARACTER}" not in page


def test_a_defect_is_told_as_one_and_leaves_the_headers_strict(
    reader: Asker, asgi: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.testclient import TestClient

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("of a day without hours")

    monkeypatch.setattr("kafka_sla.web.pages.routes.overview", broken)
    headers = {"accept": "text/html", "authorization": f"Bearer {reader.token}"}
    answer = TestClient(asgi, raise_server_exceptions=False).get("/kafka-sla/", headers=headers)

    assert (500, True) == (answer.status_code, "This is a defect of kafka_sla (ZeroDivisionError)" in answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "of a day without hours" not in answer.text


def test_a_tab_of_a_dag_that_measures_nothing_says_so(reader: Asker) -> None:
    assert "measures no SLA" in reader.get("/dags/other").text


@pytest.mark.parametrize("path", PAGES)
def test_no_two_landmarks_of_a_page_have_one_name(reader: Asker, path: str) -> None:
    found = Elements(reader.get(path).text).found
    marks = [a for tag, a in found if tag in ("nav", "section") or a.get("role") == "region"]
    names = [a.get("aria-label") or a.get("aria-labelledby") for a in marks]
    named = [name for name in names if name]

    assert sorted(set(named)) == sorted(named)


def test_a_group_is_chosen_by_the_name_that_the_page_shows(reader: Asker) -> None:
    options = re.findall(r"<option[^>]*>([^<]+)</option>", reader.get("/").text)
    page = reader.get("/", group="billing.alerts-authorised-v2").text

    assert {"billing.alerts-authorised-v2", "payments-service", "search-index.*"} <= set(options)
    assert "billing by night" in page
    assert "No SLA fits" not in page


def test_the_sla_page_names_its_group_and_topic_as_they_were_written(reader: Asker) -> None:
    assert "Group billing.alerts-authorised-v2, topic payments, cluster" in reader.get("/slas/billing by night").text


def test_a_miss_is_exported_as_one_file_that_needs_nothing_else(reader: Asker) -> None:
    (miss,) = reader.json("/api/v1/misses", state="open")
    answer = reader.get(f"/misses/{miss['id']}/document")
    found = Elements(answer.text)

    assert answer.headers["content-disposition"] == f'attachment; filename="miss-{miss["id"]}.html"'
    assert html.escape(miss["evidence"]["sentence"]) in answer.text
    assert {"data:image/png;base64"} == {str(image["src"]).partition(",")[0] for image in found.all("img")}
    assert [] == found.all("script") + found.all("link")
    assert f"http://airflow.example:8080/kafka-sla/misses/{miss['id']}" in {a["href"] for a in found.all("a")}


@pytest.mark.parametrize("where", ["of ours", "of Airflow"])
def test_links_for_elsewhere_are_of_the_address_that_people_use_not_of_the_one_behind_the_proxy(
    reader: Asker, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (miss,) = reader.json("/api/v1/misses", state="open")
    config = Path(os.environ["KAFKA_SLA_CONFIG"])
    if where == "of ours":
        ours = config.with_name("with_base_url.yml")
        ours.write_text(config.read_text() + "base_url: https://airflow.corp.example/data/\n")
        monkeypatch.setenv("KAFKA_SLA_CONFIG", str(ours))
    else:
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.corp.example/data")
    mine = f"https://airflow.corp.example/data/kafka-sla/misses/{miss['id']}"

    assert f"<code>{mine}</code>" in reader.get(f"/misses/{miss['id']}").text
    assert mine in {a["href"] for a in Elements(reader.get(f"/misses/{miss['id']}/document").text).all("a")}


@pytest.mark.parametrize("path", ["/unread", "/brokers", "/replication", "/coverage", "/quality"])
def test_every_page_with_a_period_offers_presets_and_keeps_what_was_chosen(reader: Asker, path: str) -> None:
    links = [str(a.get("href")) for a in Elements(reader.get(path).text).all("a")]
    presets = [link for link in links if link.startswith("?from=")]
    kept = [str(a.get("href")) for a in Elements(reader.get("/misses", team="Orders").text).all("a")]

    assert len(presets) >= 4
    assert [] == [link for link in presets if reader.get(f"{path}{html.unescape(link)}").status_code != 200]
    assert len([link for link in kept if link.startswith("?team=Orders&from=")]) >= 5


def test_figures_that_are_out_of_date_are_announced_once(reader: Asker) -> None:
    assert "Out of date" not in reader.get("/").text


def test_coverage_has_a_row_a_cluster_and_a_cell_a_day_that_leads_to_what_is_missing(reader: Asker) -> None:
    text = reader.get("/coverage").text
    found = Elements(text)
    cells = [a for a in found.all("svg") if a.get("role") == "img"]
    links = [str(a["href"]) for a in found.all("a") if str(a.get("href")).startswith("/kafka-sla/coverage?from=")]

    assert len(cells) in (2 * 31, 2 * 32)
    assert all(cell["aria-label"] for cell in cells)
    assert any("T00%3A00&to=" in link for link in links)
    assert ["What to run", "Which time"] == re.findall(r'<h2 id="(?:run|times)-h"[^>]*>([^<]+)', text)


def test_the_page_of_a_miss_offers_its_link_to_copy(reader: Asker) -> None:
    (miss, *_) = reader.json("/api/v1/misses")

    assert (
        f"<code>http://airflow.example:8080/kafka-sla/misses/{miss['id']}</code>"
        in reader.get(f"/misses/{miss['id']}").text
    )


def test_the_former_page_of_missing_time_leads_to_coverage_with_its_period(reader: Asker) -> None:
    asked = {"from": "2026-03-01", "to": "2026-03-04", "path": "anything"}
    headers = {"Authorization": f"Bearer {reader.token}"}
    answer = reader.client.get("/kafka-sla/missing", params=asked, headers=headers, follow_redirects=False)

    assert 308 == answer.status_code
    assert "/kafka-sla/coverage?from=2026-03-01&to=2026-03-04&path=anything" == answer.headers["location"]
