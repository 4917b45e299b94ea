"""A browser before Airflow's web server over a small world; `make browser` runs these tests, `make test` does not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.notifications.digest_delivery import make_digest
from tests.browser.airflow_web import AirflowWeb, airflow_web, shown
from tests.kafka_sla.web import large_world
from tests.kafka_sla.web.world import archive, build, whole_minute

WEEKLY = "Payments, weekly"
Opened = Callable[..., Any]
WAIT_MS = float(os.environ.get("BROWSER_WAIT_MS", "30000"))


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a small world that is published beside it."""
    end = whole_minute()
    config, place = build(tmp_path_factory.mktemp("browser") / "world", end, timedelta(hours=6))
    archive(config, place)
    make_digest(load_settings(config), place, WEEKLY, end)
    return config


@pytest.fixture(scope="session")
def web(config: Path) -> Iterator[AirflowWeb]:
    with airflow_web(config.parents[1] / "airflow", shown(config.parent, config)) as found:
        yield found


@pytest.fixture
def short_windows(config: Path) -> Iterator[None]:
    """Windows of five seconds, as the configuration says from now on."""
    before = config.read_text()
    config.write_text(f"{before}window: 5s\n")
    yield
    config.write_text(before)


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowWeb]:
    """A web server over 300 SLAs."""
    home = tmp_path_factory.mktemp("company")
    config, _ = large_world.build(home / "world", whole_minute())
    with airflow_web(home / "airflow", shown(home / "world", config)) as found:
        yield found


def chromium_path() -> str:
    """Where the browser is; an error says how to get one."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not path:
        raise RuntimeError("no Chromium: install the system's package `chromium`, or set CHROMIUM to its path")
    return path


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's Chromium, or the one that CHROMIUM names."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, web: AirflowWeb, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Opens a path as somebody who may see and edit all; what the browser complains about fails the test."""
    problems: list[str] = []
    with _contexts() as contexts:

        def open_page(path: str, *, dark: bool = False, phone: bool = False) -> Any:
            context = chromium.new_context(
                viewport={"width": 390, "height": 800} if phone else {"width": 1280, "height": 900},
                color_scheme="dark" if dark else "light",
            )
            contexts.append(context)
            context.set_default_timeout(WAIT_MS)
            context.add_cookies([{"name": "_token", "value": web.token("operator"), "url": web.address}])
            page = context.new_page()
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda told: problems.extend([told.text] if told.type == "error" else []))
            page.goto(web.address + path)
            if page.locator(".charts").count():
                page.wait_for_selector('.charts[data-ready="yes"]')
            if folder := os.environ.get("BROWSER_PICTURES"):
                Path(folder).mkdir(parents=True, exist_ok=True)
                page.screenshot(path=f"{folder}/{request.node.name.replace('/', '_')}.png", full_page=True)
            return page

        yield open_page
    assert problems == []


@contextmanager
def _contexts() -> Iterator[list[Any]]:
    contexts: list[Any] = []
    try:
        yield contexts
    finally:
        for context in contexts:
            context.close()
