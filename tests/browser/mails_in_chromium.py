"""Mails and digests in a real browser: all text can be read on a light screen, on a dark one and on paper."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Digest, FreshnessAlert, Interval
from kafka_sla.notifications.digest_email import digest_page
from kafka_sla.notifications.incident_email import compose as compose_several
from kafka_sla.notifications.late_run_email import LateRun, late_mail
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import IncidentNotice, Notice, NoticeKind
from kafka_sla.reporting.digest import tell
from kafka_sla.reporting.digest_schedule import period_of
from tests.browser.pages_in_chromium import CONTRAST, findings
from tests.browser.picture_world import mail_page
from tests.kafka_sla.notifications.incidents import RUN, slas, slow
from tests.kafka_sla.notifications.misses import START, hour, miss, promise
from tests.kafka_sla.notifications.test_digest_delivery import settings
from tests.kafka_sla.reporting.test_digest import judged
from tests.kafka_sla.reporting.test_report import written

SENDER = "sla@example.com"
MEDIA: dict[str, dict[str, Any]] = {
    "light": {"media": "screen", "color_scheme": "light"},
    "dark": {"media": "screen", "color_scheme": "dark"},
    "paper": {"media": "print", "color_scheme": "light"},
    "paper of a dark screen": {"media": "print", "color_scheme": "dark"},
}

PAPER = {"light": (255, 255, 255), "dark": (33, 36, 40)}
CORNERS = """
async () => {
  const seen = [...document.images].filter((image) => image.offsetHeight > 0)
  await Promise.all(seen.map((image) => image.decode()))
  return seen.map((image) => {
    const canvas = document.createElement("canvas").getContext("2d")
    canvas.drawImage(image, 0, 0)
    return [...canvas.getImageData(2, 2, 1, 1).data].slice(0, 3)
  })
}
"""
"""Red, green and blue of a corner of each picture that is seen."""


def told(kind: NoticeKind, folder: Path) -> str:
    return mail_page(compose(promise(), Notice(kind, miss(), "https://airflow.example.com/run"), hour(), SENDER))


def late(folder: Path) -> str:
    run = LateRun("kafka_sla", "scheduled", Interval(START, START + timedelta(minutes=5)), "failed", "https://a.b/run")
    return mail_page(
        late_mail(FreshnessAlert(("ops@example.com",), 900_000), run, {"eu": START, "us": None}, None, SENDER)
    )


def digest(folder: Path) -> str:
    ledger, asked = Ledger(Store.embedded(folder)), settings()
    for sla in asked.slas:
        judged(ledger, sla)
    daily = Digest("Daily", "day", asked.digests[0].at)
    return digest_page(tell(ledger, daily, list(asked.slas), period_of(daily, START)))


def several(kind: NoticeKind) -> str:
    known = slas(5)
    misses = [slow(sla, end=kind == "recovered") for sla in known]
    notices = tuple(Notice(kind, found, RUN) for found in misses)
    found = IncidentNotice(kind, "mail", "i1", notices[:3], notices[3:], 5)
    return mail_page(compose_several({sla.name: sla for sla in known}, found, SENDER))


WRITTEN = {
    "several missed": lambda _: several("opened"),
    "several recovered": lambda _: several("recovered"),
    "missed": lambda folder: told("opened", folder),
    "recovered": lambda folder: told("recovered", folder),
    "late": late,
    "digest": digest,
    "report": written,
}


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("kind", WRITTEN)
def test_all_text_can_be_read(chromium: Any, tmp_path: Path, kind: str, media: str) -> None:
    page = chromium.new_page(viewport={"width": 720, "height": 900})
    page.emulate_media(**MEDIA[media])

    page.set_content(WRITTEN[kind](tmp_path))

    assert [] == page.evaluate(CONTRAST)
    assert [] == findings(page)
    page.close()


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("kind", ["missed", "digest", "report"])
def test_its_plot_is_the_one_for_the_screen_that_shows_it(chromium: Any, tmp_path: Path, kind: str, media: str) -> None:
    page = chromium.new_page(viewport={"width": 720, "height": 900})
    page.emulate_media(**MEDIA[media])

    page.set_content(WRITTEN[kind](tmp_path))

    corners = {tuple(corner) for corner in page.evaluate(CORNERS)}
    assert corners == {PAPER["dark" if media == "dark" else "light"]}
    page.close()


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_mail_fits_a_phone(chromium: Any, tmp_path: Path, kind: str) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 800})

    page.set_content(WRITTEN[kind](tmp_path))

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
