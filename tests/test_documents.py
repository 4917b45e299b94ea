"""The documents agree with the code: links lead somewhere, commands exist, tables of keys are complete."""

from __future__ import annotations

import re
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.cli.console.arguments import parser
from kafka_sla.config.settings import load_settings
from kafka_sla.sla.root_cause.context import Surroundings
from kafka_sla.sla.root_cause.evidence import Evidence
from tests.stories.describe import render_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_anchor_inside_the_repository_is_a_heading(page: Path) -> None:
    found = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", page.read_text())

    assert [link for link in found if link[1] not in _anchors(page.parent / link[0] if link[0] else page)] == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text()
    shown = set(re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE))

    assert shown <= targets
    for line in re.findall(r"(?:^|`)kafka-sla ((?:--?\w|[a-z])[^`\n#→|]*)", text, re.MULTILINE):
        _parse(re.split(r"\s{3}| \[", line)[0])  # without remarks, which three spaces set off, and [optional] words


def _parse(line: str) -> None:
    """What argparse makes of a command line in a document, `…` and capitals standing for values."""
    words = re.findall(r'"[^"]*"|\S+', line.replace("…", "2026-11-01").replace(" T ", " 2026-11-01 "))
    words = [
        {"TABLE": "consumer_latency", "T": "2026-11-01", "TIME": "2026-11-01"}.get(word, word.strip('"'))
        for word in words
    ]
    known = set(re.findall(r"^    ([a-z][\w-]+)", parser().format_help(), re.MULTILINE))
    command = next(word for word in words if word in known)  # StopIteration: no such command
    if len(words) > 1 and (command != "export" or len(words) > 2):
        parser().parse_args(words)


def test_every_key_of_the_evidence_is_explained() -> None:
    page = (ROOT / "docs/reference/sla_misses.md").read_text()

    assert [key for key in ("cause", "sentence", *(f.name for f in _figures())) if f"`{key}`" not in page] == []


def _figures() -> list[Field[Any]]:
    return [f for f in (*fields(Evidence), *fields(Surroundings)) if f.name != "around"]


def test_the_page_of_stories_is_up_to_date() -> None:
    assert (ROOT / "docs/reference/stories.md").read_text() == render_page(), "run `make docs`"


def test_every_dag_that_is_named_exists() -> None:
    text = "\n".join(page.read_text() for page in PAGES)

    assert {dag for dag in re.findall(r"--dag-id (\w+)", text) if not (ROOT / f"dags/{dag}.py").is_file()} == set()


def test_the_tour_visits_every_promise_of_the_demonstration() -> None:
    tour = (ROOT / "docs/how-to/tour.md").read_text()

    assert [sla.name for sla in load_settings(ROOT / "demo/kafka_sla.yml").slas if f"`{sla.name}`" not in tour] == []
