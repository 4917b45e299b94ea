"""The archive of digests in the pages: what is listed, and that nothing of a page can run."""

from __future__ import annotations

import html
import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.reporting.archive import archive_path
from kafka_sla.reporting.digest_schedule import period_of
from tests.kafka_sla.web.conftest import Asker, Served
from tests.kafka_sla.web.world import EVIL, HOSTILE

GONE = "/reports/Gone/month-20260201T0000Z"
WEEKLY = "Payments, weekly"


def test_every_page_is_listed_by_period_the_newest_first(reader: Asker) -> None:
    rows = reader.json("/api/v1/reports")

    assert sorted((row["start"] for row in rows), reverse=True) == [row["start"] for row in rows]
    assert {(WEEKLY, "9 to 15 March 2026"), (HOSTILE, "Wednesday 4 March 2026"), ("Gone", "month from 2026-02-01")} <= {
        (row["digest"], row["period"].removesuffix(" 00:00 UTC")) for row in rows
    }
    assert 5 == len(rows), "what no digest wrote is not listed"


def test_digests_and_teams_can_be_chosen(reader: Asker) -> None:
    assert {WEEKLY} == {row["digest"] for row in reader.json("/api/v1/reports", team="Payments")}
    assert ["Gone"] == [row["digest"] for row in reader.json("/api/v1/reports", digest="Gone")]
    assert "9 to 15 March" not in reader.get("/reports", digest="Gone").text


def test_a_page_is_shown_in_a_frame_and_can_be_downloaded(reader: Asker) -> None:
    row = reader.json("/api/v1/reports", digest=WEEKLY)[0]
    page = reader.get(row["page"].removeprefix("/kafka-sla")).text
    file = reader.get(row["document"].removeprefix("/kafka-sla"), download="true")

    assert f'src="{row["document"]}" sandbox title=' in page
    assert "A digest of 2026-03-08T23:00" in file.text
    assert re.search(r'attachment; filename="[\w.-]+\.html"', file.headers["content-disposition"])


def test_a_page_that_holds_a_script_is_locked_up(reader: Asker) -> None:
    answer = reader.get(f"{GONE}/document")
    policy = answer.headers["content-security-policy"].split("; ")

    assert EVIL == answer.text, "it is shown as it was mailed"
    assert {"sandbox", "default-src 'none'", "form-action 'none'", "frame-ancestors 'self'"} <= set(policy)
    assert not [rule for rule in policy if "script" in rule or "allow-" in rule]
    assert "nosniff" == answer.headers["x-content-type-options"]


def test_sending_again_starts_as_a_preview_of_that_period(reader: Asker) -> None:
    row = reader.json("/api/v1/reports", digest=WEEKLY)[0]
    page = html.unescape(reader.get(row["page"].removeprefix("/kafka-sla")).text)
    (command,) = re.findall(r"<code>(airflow dags trigger kafka_sla_report .*)</code>", page)

    assert {"digest": WEEKLY, "day": "2026-03-09", "send_to": "preview", "preview_to": "you@example.com"} == json.loads(
        shlex.split(command)[-1]
    )
    assert 'href="/dags/kafka_sla_report"' in page


def test_what_is_copied_to_send_again_names_the_digest_to_the_letter(
    reader: Asker, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "گزارش می\u200cخواهم"
    config = served.config.with_name("unseen_digest.yml")
    config.write_text(served.config.read_text() + f'  - {{name: "{name}", every: day}}\n')
    (digest,) = [one for one in load_settings(config).digests if one.name == name]
    path = Path(archive_path(served.store, digest, period_of(digest, datetime(2026, 3, 4, tzinfo=UTC))))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("<!DOCTYPE html><title>Digest</title>")
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(config))
    page = html.unescape(reader.get(f"/reports/{path.parent.name}/{path.stem}").text)
    path.unlink()

    assert name == json.loads(re.findall(r'<code>(\{"digest".*\})</code>', page)[0])["digest"]


def test_a_digest_that_left_the_configuration_is_kept_and_not_sent(reader: Asker) -> None:
    page = reader.get(GONE).text

    assert "cannot be sent again" in page
    assert "airflow dags trigger" not in page


@pytest.mark.parametrize(
    "path", ["Gone/notes", "Gone/month-20260101T0000Z", "../kafka_sla/x", "%2e%2e/week-20260302T0000Z", "Gone/..%2fx"]
)
def test_only_pages_of_the_archive_are_read(reader: Asker, path: str) -> None:
    assert 404 == reader.get(f"/reports/{path}/document").status_code
