"""The overview and a team's home with 300 SLAs: what needs attention is first, what is in order takes a line."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_sla.web.conftest import Asker, store_connection
from tests.kafka_sla.web.large_world import build, names
from tests.kafka_sla.web.world import whole_minute

GROUPS = [group for _, group, _ in names()]
MISSED = [GROUPS[n] for n in (0, 37)]
EXHAUSTED = [GROUPS[n] for n in (74, 111, 148, 296)]
TROUBLED = {GROUPS[n] for n in (0, 37, 74, 111, 148, 185, 222, 259, 296)}


@pytest.fixture(scope="module")
def company(reader: Asker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """The reader of a store with 300 SLAs."""
    config, store = build(tmp_path_factory.mktemp("company"), whole_minute())
    config.write_text(config.read_text() + "store_connection: company_store\n")
    with pytest.MonkeyPatch.context() as environment, store_connection(store, "company_store"):
        environment.setenv("KAFKA_SLA_CONFIG", str(config))
        yield reader


def page(company: Asker, path: str = "/", **query: Any) -> str:
    answer = company.get(path, **query)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def listed(text: str) -> list[str]:
    """The groups of the rows, in order."""
    return [name.split()[0] for name in re.findall(r'<td class="name"><a [^>]*><b>([^<]+)</b>', text)]


def test_open_misses_come_first_then_exhausted_budgets_and_the_rest_is_a_line(company: Asker) -> None:
    text = page(company)
    found = listed(text)

    assert sorted(MISSED) == sorted(found[:2])
    assert set(EXHAUSTED) == set(found[2:6])
    assert TROUBLED == set(found)
    assert "<b>291</b> more with budget left" in text


def test_a_click_lists_all_of_them(company: Asker) -> None:
    assert 300 == len(listed(page(company, **{"all": "true"})))


@pytest.mark.parametrize(
    ("state", "groups"), [("missed", MISSED), ("exhausted", EXHAUSTED), ("unknown", [GROUPS[222]])]
)
def test_a_chip_counts_a_state_and_filters_by_it(company: Asker, state: str, groups: list[str]) -> None:
    (chip,) = re.findall(rf'<a href="[^"]*\?state={state}">.*?<b>(\d+)</b></a>', page(company))

    assert len(groups) == int(chip)
    assert set(groups) == set(listed(page(company, state=state)))


@pytest.mark.parametrize(
    ("words", "count"), [("billing.alerts-authorised-v2", 1), ("BILLING v2", 10), ("fraud", 20), ("nothing such", 0)]
)
def test_search_finds_words_of_group_topic_and_team(company: Asker, words: str, count: int) -> None:
    assert count == len(listed(page(company, q=words)))


def test_sorted_by_budget_the_most_overspent_is_first(company: Asker) -> None:
    assert [GROUPS[37], GROUPS[296], GROUPS[148], GROUPS[74]] == listed(page(company, sort="budget", all="true"))[:4]


def test_sorted_by_name(company: Asker) -> None:
    assert sorted(GROUPS) == listed(page(company, sort="name", all="true"))


def test_grouped_by_team_each_has_a_line_of_counts_and_the_troubled_ones_are_first(company: Asker) -> None:
    text = page(company, by="team")
    groups = re.findall(r'<tr class="group"><th [^>]*><a href="([^"]+)">([^<]+)</a>.*?</tr>', text, re.DOTALL)
    names_of_teams = [name for _, name in groups]

    assert 15 == len(groups)
    assert {"Payments", "Billing"} == set(names_of_teams[:2]), "their misses are open"
    assert TROUBLED == set(listed(text))


def test_the_view_is_in_the_address_and_kept_by_chips(company: Asker) -> None:
    text = page(company, team="Payments", sort="name", q="alerts")

    assert 'name="q" value="alerts"' in text
    assert '<option value="name" selected>' in text
    assert "team=Payments&q=alerts&state=missed&sort=name" in text


def test_every_team_has_a_home_with_all_its_slas_and_misses(company: Asker) -> None:
    assert '<a href="/kafka-sla/teams/Fraud%20%26%20Risk">' in page(company)
    text = page(company, "/teams/Fraud & Risk")

    assert 20 == len(listed(text))
    assert "<h1>Fraud & Risk</h1>" in text
    assert "1 miss in the last 30 days" in page(company, "/teams/Payments")
    assert 404 == company.get("/teams/nobody").status_code


def test_the_page_is_short(company: Asker) -> None:
    text = page(company)

    assert len(re.findall("<tr", text)) < 30
    assert len(text.encode()) < 80_000


def test_figures_that_are_out_of_date_are_said_once_and_at_the_top(company: Asker) -> None:
    text = page(company)

    assert 1 == text.count("Out of date:")
    assert "nothing of prod-eu-central-1 was ever published" in text


def test_a_state_that_there_is_not_is_refused(company: Asker) -> None:
    assert 422 == company.get("/", state="fine").status_code


@pytest.mark.parametrize(("number", "overspent"), [(74, True), (185, False)])
def test_the_page_of_an_sla_draws_how_its_budget_went(company: Asker, number: int, overspent: bool) -> None:
    text = page(company, f"/slas/{GROUPS[number]} within 30 seconds")
    (line,) = re.findall(r'<polyline class="left" points="([^"]+)"', text)
    heights = [float(point.split(",")[1]) for point in line.split()]

    assert heights == sorted(heights), "a budget is only spent"
    assert heights[0] == 0
    assert ("burn-down overspent" in text) == overspent


def test_teams_and_slas_with_numbers_are_listed_by_their_numbers(
    reader: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = (10, 9, 1, 2, 11)
    entries = "".join(f"  - {{name: sla {n}, group: g{n}, topic: t, team: team {n}}}\n" for n in numbers)
    config = tmp_path / "kafka_sla.yml"
    config.write_text(f"clusters: {{prod: {{}}}}\ndefaults: {{cluster: prod, max_latency: 1m}}\nslas:\n{entries}")
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(config))

    text = page(reader, by="team")
    groups = re.findall(r'<tr class="group"><th [^>]*><a [^>]*>([^<]+)</a>', text)
    offered = re.findall(r"<option[^>]*>(team [^<]+)</option>", text)
    slas = re.findall(r'<td class="name"><a [^>]*><b>([^<]+)</b>', page(reader))

    in_order = sorted(numbers)
    assert [f"team {n}" for n in in_order] == groups == offered
    assert [f"sla {n}" for n in in_order] == slas
