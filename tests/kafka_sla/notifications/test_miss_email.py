"""What mails say, as golden files, and what hostile names cannot make them say."""

from __future__ import annotations

from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.ledger.outbox import Notice
from kafka_sla.model.entities import Miss, Sla
from kafka_sla.notifications.miss_email import compose
from tests.kafka_sla.notifications.misses import hour, miss, promise

GOLDEN = Path(__file__).parent / "golden"
RUN = "https://airflow.example.com/dags/kafka_sla/runs/scheduled__2026-03-02T10:00:00+00:00"
HOSTILE = '<script>alert("1")</script>\r\nBcc: all@example.com\u202e'


def mail(kind: Any = "opened", found: Miss | None = None, sla: Sla | None = None, windows: Any = None,
         run_url: str | None = RUN, thread: str = "") -> EmailMessage:  # fmt: skip
    """The mail as its readers get it: written to bytes and read again."""
    notice = Notice(kind, found or miss(end=None if kind == "opened" else miss().end), run_url, thread)
    message = compose(sla or promise(), notice, hour() if windows is None else windows, "SLA <sla@example.com>")
    return message_from_bytes(bytes(message), policy=default)


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def parts(message: EmailMessage) -> list[str]:
    return [p.get_content_type() for p in message.walk()]


@pytest.mark.parametrize("kind", ["opened", "recovered"])
@pytest.mark.parametrize(("body", "suffix"), [("plain", "txt"), ("html", "html")])
def test_mails_are_as_the_golden_files(kind: str, body: str, suffix: str) -> None:
    assert (GOLDEN / f"miss_{kind}.{suffix}").read_text() == part(mail(kind), body)


def test_an_opened_miss_is_told_with_text_html_and_the_plot_inside() -> None:
    found = mail()

    assert parts(found) == ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"]
    assert found["Subject"] == "SLA missed: payments-30s, worst latency 17 min 24 s, threshold 30 s"
    assert (found["From"], found["To"]) == ("SLA <sla@example.com>", "oncall@example.com, lead@example.com")
    assert (found["Auto-Submitted"], found["X-Kafka-Sla-Miss"]) == ("auto-generated", miss().id)


def test_the_plot_is_shown_where_the_text_refers_to_it() -> None:
    found = mail()
    (picture,) = (p for p in found.walk() if p.get_content_type() == "image/png")

    assert f'src="cid:{picture["Content-ID"][1:-1]}"' in part(found, "html")
    assert picture.get_content_disposition() == "inline"


def test_a_recovery_answers_the_mail_that_told_the_miss() -> None:
    opened, recovered = mail(), mail("recovered")

    assert opened["Message-ID"] == recovered["In-Reply-To"] == recovered["References"]
    assert opened["Message-ID"] != recovered["Message-ID"]
    assert recovered["Subject"] == "SLA recovered: payments-30s after 21 min"


def test_a_miss_whose_start_moved_stays_in_the_thread_that_told_it() -> None:
    moved = miss(id="another")

    assert mail(thread="first")["Message-ID"] == mail("recovered", moved, thread="first")["In-Reply-To"]


def test_the_same_notice_makes_the_same_mail() -> None:
    assert mail()["Message-ID"] == mail()["Message-ID"] == f"<kafka-sla.{miss().id}.opened@example.com>"


def test_without_windows_there_is_no_plot_and_no_hole_where_it_would_be() -> None:
    found = mail(windows=[])

    assert parts(found) == ["multipart/alternative", "text/plain", "text/html"]
    assert "cid:" not in part(found, "html")


def test_a_miss_that_is_over_already_when_it_is_first_told_says_so() -> None:
    text = part(mail(found=miss()), "plain")

    assert "Until      2026-03-02 10:21:00 UTC" in text
    assert "Duration   21 min\n" in text


def test_times_are_told_by_the_clock_of_the_sla_too() -> None:
    text = part(mail(sla=promise(time_zone="Europe/Berlin")), "plain")

    assert "Since      2026-03-02 10:00:00 UTC (11:00:00 Europe/Berlin)" in text


def test_doubt_is_told() -> None:
    doubt = "Within the bounds of the measurement, some of its bad windows may have met the SLA."

    assert [doubt in part(mail(found=miss(is_certain=is_certain)), "plain") for is_certain in (True, False)] == [
        False,
        True,
    ]


def test_a_miss_without_evidence_and_run_is_told_all_the_same() -> None:
    found = mail(found=miss(evidence={}), run_url=None, sla=promise(description="", team="", for_ms=0))

    assert "Evidence" not in part(found, "html")
    assert "Airflow" not in part(found, "html") + part(found, "plain")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//x", ""])
def test_only_web_addresses_become_links(url: str) -> None:
    assert "href" not in part(mail(run_url=url), "html")


def test_hostile_names_are_shown_and_do_nothing() -> None:
    bad = miss(worst_group=HOSTILE, worst_topic=HOSTILE, evidence={**miss().evidence, "sentence": HOSTILE})
    sla = promise(name=HOSTILE, description=HOSTILE, team=HOSTILE)

    found = mail(found=replace(bad, cluster=HOSTILE), sla=sla, windows=hour(worst_group=HOSTILE))

    html, text = part(found, "html"), part(found, "plain")
    assert "<script" not in html
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;\N{REPLACEMENT CHARACTER}" in html
    assert None is found["Bcc"]
    assert "\u202e" not in html + text + found["Subject"]
    assert not [line for line in text.splitlines() if line.startswith("Bcc")]
