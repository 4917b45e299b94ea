"""Every page and form in a real browser: drawn, light and dark, wide and narrow, by mouse and by keyboard.

Not named as the other tests are: `make test` needs no browser, `make browser` names this file."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.airflow_web import PASSWORD, AirflowWeb
from tests.browser.conftest import WAIT_MS, WEEKLY, Opened

ORDERS = "/kafka-sla/slas/orders within 5 minutes"
MISS = "the open miss"
"""Its address is found on the list."""
PAGES = [
    "/kafka-sla/",
    "/kafka-sla/teams/Payments",
    ORDERS,
    "/kafka-sla/misses",
    MISS,
    "/kafka-sla/quality",
    "/kafka-sla/coverage",
    "/kafka-sla/brokers",
    "/kafka-sla/replication",
    "/kafka-sla/unread",
    "/kafka-sla/reports",
]

# Relative luminance and contrast as WCAG 2 defines them; backgrounds are looked for upwards.
CONTRAST = """() => {
    const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const faint = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.getClientRects().length || element.closest("svg, option, .skip, noscript")) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const words = element.textContent.trim().slice(0, 40);
        if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${element.tagName} ${words}`);
    }
    return faint;
}"""


# What reaches out of the window, or of the card that it is in; and cells that lie on others.
CUT = """() => {
    const out = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
    for (const cell of document.querySelectorAll(".slas td, .slas th, .slas td > *")) {
        const [mine, card] = [cell.getBoundingClientRect(), cell.closest(".card").getBoundingClientRect()];
        const next = cell.nextElementSibling && cell.nextElementSibling.getBoundingClientRect();
        const on = cell.matches("td") && next && next.top < mine.bottom - 1 && next.left < mine.right - 1;
        const seen = mine.width && mine.right > 0;
        const beside = on && next.width && next.top >= mine.top && next.left >= mine.left;
        const spills = !cell.matches("td, th") && mine.right > cell.parentElement.getBoundingClientRect().right + 1;
        if (seen && (mine.right > card.right || beside || spills)) out.push(cell.outerHTML.slice(0, 80));
    }
    return [...new Set(out)].slice(0, 5);
}"""


def shown(opened: Opened, path: str, **how: bool) -> Any:
    """The page; that of the open miss by way of the list, which knows its address."""
    if path != MISS:
        return opened(path, **how)
    page = opened("/kafka-sla/misses?state=open", **how)
    page.locator("td.time a").first.click()
    page.wait_for_selector('.charts[data-ready="yes"]')
    return page


def findings(page: Any) -> list[str]:
    """What axe, the accessibility checker, objects to: rule, element, and what to do."""
    return [
        f"{rule['id']}: {node['html'][:160]}: {' '.join(node['failureSummary'].split())}"
        for rule in Axe().run(page).response["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_all_text_can_be_read_and_axe_finds_nothing(opened: Opened, path: str, dark: bool) -> None:
    page = shown(opened, path, dark=dark)

    assert [] == page.evaluate(CONTRAST)
    assert [] == findings(page)
    assert 1 == page.locator("h1").count()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_a_phone(opened: Opened, path: str) -> None:
    page = shown(opened, path, phone=True)

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert [] == findings(page)


def span(page: Any) -> list[str]:
    asked = parse_qs(urlsplit(page.url).query)
    return asked.get("from", []) + asked.get("to", [])


@pytest.mark.parametrize("width", [390, 1240, 1440])
@pytest.mark.parametrize("query", ["", "?by=team", "?all=true"])
def test_the_overview_of_300_slas_fits(chromium: Any, company: AirflowWeb, width: int, query: str) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 900})
    context.set_default_timeout(WAIT_MS)
    context.add_cookies([{"name": "_token", "value": company.token("viewer"), "url": company.address}])
    page = context.new_page()
    page.goto(f"{company.address}/kafka-sla/{query}")

    cut = page.evaluate(CUT)
    context.close()

    assert cut == []


def drag(page: Any, start: float, end: float) -> None:
    """Over the chart of latencies, from one share of its width to another, until the page of that time is there."""
    box, before = page.locator("#latency .u-over").bounding_box(), page.url
    page.mouse.move(box["x"] + box["width"] * start, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, box["y"] + 60, steps=5)
    page.mouse.up()
    page.wait_for_url(lambda url: url != before)
    page.wait_for_selector('.charts[data-ready="yes"]')


def test_dragging_over_a_chart_zooms_to_an_address_of_its_own(opened: Opened) -> None:
    page = opened(ORDERS)

    drag(page, 0.8, 0.95)

    assert [16, 16] == [len(at) for at in span(page)], "whole minutes, as the windows"
    assert page.locator("#span-h").inner_text().startswith(span(page)[0].replace("T", " "))


def test_dragging_over_the_chart_of_a_miss_leads_to_its_sla(opened: Opened) -> None:
    page = shown(opened, MISS)
    sla = page.locator("dd a[href*='/slas/']").first.get_attribute("href")

    drag(page, 0.3, 0.6)

    assert urlsplit(page.url).path == urlsplit(sla).path
    assert page.locator("#span-h").inner_text().startswith(span(page)[0].replace("T", " "))


@pytest.mark.usefixtures("short_windows")
def test_dragging_over_windows_of_seconds_zooms_to_seconds(opened: Opened) -> None:
    page = opened(f"{ORDERS}?from=2026-03-01T10:00&to=2026-03-01T10:02")

    drag(page, 0.25, 0.5)

    start, end = span(page)
    assert "2026-03-01T10:00:29" <= start <= "2026-03-01T10:00:31"
    assert "2026-03-01T10:00:59" <= end <= "2026-03-01T10:01:01"
    assert page.locator("#span-h").inner_text().startswith(span(page)[0].replace("T", " "))


def test_the_keyboard_reads_selects_and_zooms(opened: Opened) -> None:
    page = opened(ORDERS)

    page.locator("#latency").focus()
    page.keyboard.press("End")
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    told = page.locator(".readout").inner_text()
    for _ in range(12):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url("**from=*")

    assert "worst" in told
    assert "p99" in told
    assert 2 == len(span(page))


def test_the_keyboard_zooms_out_as_far_as_the_link_does(opened: Opened) -> None:
    page = opened(f"{ORDERS}?from=2023-01-01&to=2026-01-01")
    link = page.get_by_role("link", name="zoom out").get_attribute("href")

    page.locator("#latency").focus()
    page.keyboard.press("-")
    page.wait_for_url(lambda url: "2026-01-01" not in url)
    page.wait_for_selector('.charts[data-ready="yes"]')
    assert parse_qs(urlsplit(page.url).query) == parse_qs(urlsplit(link).query)

    page.locator("#latency").focus()
    page.keyboard.press("-")
    assert page.get_by_role("link", name="zoom out").count() == 0
    assert parse_qs(urlsplit(page.url).query) == parse_qs(urlsplit(link).query)


def test_values_are_shown_beside_the_cursor(opened: Opened) -> None:
    page = opened(ORDERS)
    box = page.locator("#latency .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + 60)
    page.locator(".tip").wait_for()
    tip = page.locator(".tip").bounding_box()

    assert {"worst", "p99", "consumed"} <= set(page.locator(".tip").inner_text().split())
    assert tip["x"] + tip["width"] <= box["x"] + box["width"], "it is on the side where there is room"


@pytest.mark.parametrize(
    ("zone", "start"), [("Europe/Berlin", "2026-03-01 11:00"), ("Asia/Kolkata", "2026-03-01 15:30")]
)
def test_times_are_in_the_zone_that_airflow_is_set_to(opened: Opened, zone: str, start: str) -> None:
    page = opened(f"{ORDERS}?from=2026-03-01T10:00&to=2026-03-01T12:00")
    page.evaluate("(zone) => localStorage.setItem('timezone', JSON.stringify(zone))", zone)
    page.reload()
    page.wait_for_selector('.charts[data-ready="yes"]')
    first = page.locator("#span-h time").first

    assert first.inner_text().startswith(start)
    assert first.get_attribute("title").startswith("2026-03-01 10:00:00 UTC, ")
    field = page.locator("form[method=get]").get_by_label("From (")
    assert start.replace(" ", "T") == field.input_value()
    assert "2026-03-01 10:00 UTC" == field.get_attribute("title")

    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**from=2026-03-01T10%3A00&to=2026-03-01T12%3A00**")


@pytest.mark.parametrize(
    ("zone", "written", "sent"),
    [
        ("Europe/Berlin", "2026-03-29T01:59", "2026-03-29T00:59"),
        ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00"),
        ("America/St_Johns", "2026-07-01T00:00", "2026-07-01T02:30"),
        ("Pacific/Kiritimati", "2026-01-01T05:00", "2025-12-31T15:00"),
        ("UTC", "2026-03-29T02:30", "2026-03-29T02:30"),
    ],
)
def test_a_time_is_written_as_its_reader_has_it_and_sent_as_utc(
    opened: Opened, zone: str, written: str, sent: str
) -> None:
    page = opened(f"{ORDERS}?from=2026-03-01T10:00&to=2026-03-01T12:00")
    page.evaluate("(zone) => localStorage.setItem('timezone', JSON.stringify(zone))", zone)
    page.reload()

    fields = page.get_by_label("From (").all()
    for field in fields:
        field.evaluate("(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", written)

    assert [sent] * len(fields) == [
        field.evaluate("(field) => new FormData(field.form).get('from')") for field in fields
    ]
    assert len(fields) == 2, "of the period, and of what is excluded afterwards"


@pytest.mark.parametrize("sent", ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T01:30:20"])
def test_what_nobody_changes_is_sent_as_it_came_also_in_the_hour_that_clocks_show_twice(
    opened: Opened, sent: str
) -> None:
    page = opened(f"{ORDERS}?from={sent}&to=2026-10-25T04:00")
    page.evaluate("localStorage.setItem('timezone', JSON.stringify('Europe/Berlin'))")
    page.reload()
    field = page.locator("form[method=get]").get_by_label("From (")

    assert f"2026-10-25T02:{sent[14:]}" == field.input_value()
    assert sent == field.evaluate("(field) => new FormData(field.form).get('from')")
    assert field.evaluate("(field) => field.form.checkValidity()")


def test_a_stranger_comes_back_from_the_login_to_the_page_that_was_asked_for(chromium: Any, web: AirflowWeb) -> None:
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{web.address}/kafka-sla/misses?team=Orders")
        page.get_by_role("link", name="Log in").click()
        page.get_by_label("Username").fill("viewer")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{web.address}/kafka-sla/misses?team=Orders", timeout=WAIT_MS)
        assert page.locator("h1").inner_text() == "Misses"


def test_a_comment_that_was_sent_after_the_session_s_end_is_there_again_after_the_login(
    chromium: Any, web: AirflowWeb
) -> None:
    session = [{"name": "_token", "value": web.token("operator"), "url": web.address}]
    with chromium.new_context() as context:
        context.set_default_timeout(WAIT_MS)
        context.add_cookies(session)
        page = context.new_page()
        page.goto(f"{web.address}/kafka-sla/misses?state=open")
        page.locator("td.time a").first.click()
        context.clear_cookies()
        page.get_by_label("Comment").fill("14:02 deployed\n14:10 rolled back")
        page.get_by_role("button", name="Comment").click()
        page.get_by_role("link", name="Log in").wait_for()
        context.add_cookies(session)
        page.goto(page.url.removesuffix("/notes"))

        assert "14:02 deployed\n14:10 rolled back" == page.get_by_label("Comment").input_value()
        page.get_by_role("button", name="Comment").click()
        page.wait_for_url("**#notes")
        assert "" == page.get_by_label("Comment").input_value()
        assert "14:02 deployed\n14:10 rolled back" in page.locator(".comment").last.inner_text()


def test_an_open_overview_refreshes_itself(opened: Opened) -> None:
    page = opened("/kafka-sla/")
    page.evaluate("document.querySelector('table.slas').dataset.old = 'yes'")
    page.evaluate("document.dispatchEvent(new Event('kafka-sla-refresh'))")
    page.locator("table.slas:not([data-old])").wait_for()
    assert page.locator("#offline").is_hidden()


def test_figures_are_also_a_table(opened: Opened) -> None:
    page = opened(ORDERS)

    page.locator("#figures summary").click()
    page.locator("#figures tbody tr").first.wait_for()

    assert 280 < page.locator("#figures tbody tr").count() < 300
    assert ["From", "Verdict", "Threshold"] == page.locator("#figures th").all_inner_texts()[:3]


def test_the_calendar_control_shows_any_period(opened: Opened) -> None:
    page = opened(ORDERS)

    page.locator("form[method=get]").get_by_label("From (UTC)").fill("2026-03-01T10:00")
    page.locator("form[method=get]").get_by_label("To (UTC)").fill("2026-03-01T12:00")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**from=2026-03-01**")
    page.wait_for_selector('.charts[data-ready="yes"]')

    assert "2026-03-01 10:00 UTC to 2026-03-01 12:00 UTC" == page.locator("#span-h").inner_text()
    assert "Nothing was measured in this time." == page.locator(".status").inner_text()


def test_the_overview_filters_as_soon_as_something_is_chosen(opened: Opened) -> None:
    page = opened("/kafka-sla/")

    page.locator("select[name=team]").select_option("Orders")
    page.wait_for_url("**team=Orders**")

    assert ["orders within 5 minutes"] == page.locator("td.name a").all_inner_texts()


def test_a_miss_is_reached_from_the_list_and_filtered_by_state(opened: Opened) -> None:
    page = opened("/kafka-sla/misses")

    page.get_by_label("State").select_option("open")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**state=open**")
    page.locator("td.time a").first.click()
    page.wait_for_selector('.charts[data-ready="yes"]')

    assert "SLA missed: orders within 5 minutes" == page.locator("h1").inner_text()


def test_a_report_is_read_in_its_frame_and_alone(opened: Opened) -> None:
    page = opened("/kafka-sla/reports")

    page.get_by_label("Digest").select_option(WEEKLY)
    page.wait_for_url("**digest=**")
    page.locator("td.name a").first.click()
    page.wait_for_url("**/reports/*/*")
    heading = page.frame_locator("iframe").get_by_text("payments within 30 seconds").first
    heading.wait_for()
    with page.expect_response("**/document") as told:
        page.get_by_role("link", name="Open it alone").click()

    assert WEEKLY in told.value.text()
    assert page.url.endswith("/document")


def test_nothing_that_a_report_holds_can_run(chromium: Any, web: AirflowWeb) -> None:
    context = chromium.new_context()
    context.add_cookies([{"name": "_token", "value": web.token("viewer"), "url": web.address}])
    titles = []
    for path in ("", "/document"):
        page = context.new_page()
        with page.expect_console_message(lambda told: "Blocked script execution" in told.text):
            page.goto(f"{web.address}/kafka-sla/reports/Gone/month-20260201T0000Z{path}")
        titles.append(page.title())
    context.close()

    assert ["Gone: month from 2026-02-01 00:00 UTC · Kafka SLAs", "Evil"] == titles


def test_a_command_is_copied_by_keyboard(opened: Opened) -> None:
    page = opened("/kafka-sla/coverage?from=2026-03-01T00:00&to=2026-03-04T00:00")

    button = page.get_by_role("button", name="Copy").first
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_text("Copied").or_(page.get_by_text("Selected: press")).first.wait_for()
    page.locator(".remediation summary").first.click()

    assert '"from": "2026-03-01T00:00Z"' in page.locator(".remediation details code").first.inner_text()


def test_airflow_shows_the_pages_in_its_own_frame(opened: Opened) -> None:
    page = opened("/plugin/kafka-sla")
    frame = page.frame_locator("iframe")

    frame.get_by_role("link", name="orders within 5 minutes").click()
    frame.locator('.charts[data-ready="yes"]').wait_for()

    assert "orders within 5 minutes" == frame.locator("h1").inner_text()
    assert "/plugin/kafka-sla/kafka-sla/slas/" in page.url, "Airflow's address names what the frame shows"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_pages_follow_airflows_theme(opened: Opened, theme: str) -> None:
    page = opened("/kafka-sla/misses", dark=theme == "light")
    page.evaluate("(theme) => localStorage.setItem('theme', theme)", theme)

    page.reload()

    assert theme == page.evaluate("document.documentElement.dataset.theme")


def test_a_dag_has_a_tab(opened: Opened) -> None:
    page = opened("/dags/kafka_sla/plugin/kafka-sla-dag")

    page.frame_locator("iframe").get_by_role("link", name="orders within 5 minutes").wait_for()
