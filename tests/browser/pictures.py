"""`python -m tests.browser.pictures [FOLDER]`: the pictures of README and docs, drawn from a small world.

Pages, grid and form are those of a real Airflow, whose runs measured imported facts; mails are what a mail server got.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from demo.airflow_client import AirflowClient
from tests.browser.conftest import chromium_path
from tests.browser.picture_world import World, world

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
_COLOURS = 256
"""Enough for text and charts, at a fifth of the bytes."""
_HEIGHT = 1_200
"""Longer pages are cut: nobody reads them in a README."""


Pages = Mapping[str, Callable[[Page, AirflowClient], None]]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with world() as found, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        for dark in (False, True):
            _mails(browser, found, folder, dark)
        _pages(browser, found, folder, _PAGES)
        _pages(browser, found, folder, {"sla": _sla}, suffix="-dark", dark=True)
        _pages(browser, found, folder, {"miss": _miss}, suffix="-phone", width=390)
        browser.close()


def _mails(browser: Any, found: World, folder: Path, dark: bool) -> None:
    context = browser.new_context(
        viewport={"width": 720, "height": 600}, color_scheme="dark" if dark else "light", device_scale_factor=1
    )
    page = context.new_page()
    for name, html in found.mails.items():
        page.set_content(html)
        _keep(page, folder / f"{name}{'-dark' if dark else ''}.png")
    context.close()


def _pages(
    browser: Any, found: World, folder: Path, pages: Pages, *, suffix: str = "", width: int = 1440, dark: bool = False
) -> None:
    """As somebody in Berlin sees them."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light", timezone_id="Europe/Berlin"
    )
    context.set_default_timeout(60_000)
    context.add_cookies([{"name": "_token", "value": found.client.token(), "url": found.client.address}])
    page = context.new_page()
    for name, show in pages.items():
        show(page, found.client)
        _keep(page, folder / f"{name}{suffix}.png")
    context.close()


def _overview(page: Page, client: AirflowClient) -> None:
    page.goto(f"{client.address}/plugin/kafka-sla")
    page.frame_locator("iframe").get_by_role("link", name="payments within 30 seconds").first.wait_for()
    page.wait_for_load_state("networkidle")


def _sla(page: Page, client: AirflowClient) -> None:
    page.goto(f"{client.address}/kafka-sla/slas/payments within 30 seconds")
    page.wait_for_selector('.charts[data-ready="yes"]')


def _miss(page: Page, client: AirflowClient) -> None:
    page.goto(f"{client.address}/kafka-sla/misses?state=open")
    page.locator("td.time a").first.click()
    page.wait_for_selector('.charts[data-ready="yes"]')


def _coverage(page: Page, client: AirflowClient) -> None:
    page.goto(f"{client.address}/kafka-sla/coverage")


def _grid(page: Page, client: AirflowClient) -> None:
    newest, *_ = client.runs("kafka_sla")
    page.goto(f"{client.address}/dags/kafka_sla/runs/{quote(newest, safe='')}")
    page.get_by_text("evaluate").first.wait_for()
    page.wait_for_load_state("networkidle")


def _form(page: Page, client: AirflowClient) -> None:
    page.set_viewport_size({"width": 1280, "height": 1_150})
    page.goto(f"{client.address}/dags/kafka_sla")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_role("button", name="Which time").click()
    page.wait_for_timeout(1_000)  # it unfolds
    page.wait_for_load_state("networkidle")


_PAGES: Pages = {
    "overview": _overview,
    "sla": _sla,
    "miss": _miss,
    "coverage": _coverage,
    "grid": _grid,
    "trigger-form": _form,
}


def _keep(page: Page, path: Path) -> None:
    """What the browser shows, with few colours."""
    picture = Image.open(BytesIO(page.screenshot(full_page=True)))
    width, height = picture.size
    cut = picture.convert("RGB").crop((0, 0, width, min(height, _HEIGHT)))
    small = cut.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)  # keeps rare colours
    small.save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1024} KB", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
