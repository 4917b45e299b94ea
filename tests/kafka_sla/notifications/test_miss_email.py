"""What mails say, as golden files, and what hostile names cannot make them say."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.cli.console.arguments import parser
from kafka_sla.ledger.triage import Note
from kafka_sla.model.entities import Miss, Sla
from kafka_sla.notifications.miss_context import Surroundings
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import Notice
from kafka_sla.sla.attainment import attainment_in
from kafka_sla.sla.periods import period_until
from tests.kafka_sla.notifications.misses import hour, miss, promise

GOLDEN = Path(__file__).parent / "golden"
RUN = "https://airflow.example.com/dags/kafka_sla/runs/scheduled__2026-03-02T10:00:00+00:00"
HOSTILE = '<script>alert("1")</script>\r\nBcc: all@example.com\u202e'


def mail(
    kind: Any = "opened",
    found: Miss | None = None,
    sla: Sla | None = None,
    windows: Any = None,
    run_url: str | None = RUN,
    thread: str = "",
    around: Surroundings | None = None,
) -> EmailMessage:
    """The mail as its readers get it: written to bytes and read again."""
    notice = Notice(kind, found or miss(end=None if kind == "opened" else miss().end), run_url, thread)
    windows = hour() if windows is None else windows
    message = compose(sla or promise(), notice, windows, "SLA <sla@example.com>", around or beside())
    return message_from_bytes(bytes(message), policy=default)


def beside(*others: Miss) -> Surroundings:
    """The month of that hour, and what else was missed."""
    at = hour()[-1].window.end
    return Surroundings(attainment_in(promise(), hour(), period_until(promise(), at), at), others)


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

    assert parts(found) == [
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "image/png",
    ]
    assert found["Subject"] == "SLA missed: payments-30s, worst latency 17 min 24 s, threshold 30 s"
    assert (found["From"], found["To"]) == ("SLA <sla@example.com>", "oncall@example.com, lead@example.com")
    assert (found["Auto-Submitted"], found["X-Kafka-Sla-Miss"]) == ("auto-generated", miss().id)


def test_the_plot_is_shown_where_the_text_refers_to_it() -> None:
    found = mail()
    light, dark = (p for p in found.walk() if p.get_content_type() == "image/png")
    html = part(found, "html")

    for name, picture in (("light", light), ("dark", dark)):
        row = html.partition(f'<tr class="{name}"')[2].partition("</tr>")[0]
        assert f'src="cid:{picture["Content-ID"][1:-1]}"' in row
        assert picture.get_content_disposition() == "inline"
    assert light.get_content() != dark.get_content()


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

    assert "since 2026-03-02 11:00:00 Europe/Berlin (2026-03-02 10:00:00 UTC)" in text.splitlines()[0]
    assert "Since      2026-03-02 11:00:00 Europe/Berlin (2026-03-02 10:00:00 UTC)" in text


def test_doubt_is_told() -> None:
    doubt = "Within the bounds of the measurement, some of this time may have met the SLA."

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


def test_no_subject_begins_with_an_empty_line() -> None:
    folded = {}
    for length in range(1, 100):
        name = ("billing.alerts-authorised-v2 " * 4)[:length].strip()
        raw = bytes(compose(promise(name=name), Notice("opened", miss(end=None)), [], "sla@example.com"))
        folded[name] = raw.partition(b"Subject:")[2].partition(b"\r\n")[0].strip()
        assert name in message_from_bytes(raw, policy=default)["Subject"]

    assert [] == [name for name, first in folded.items() if not first]


def test_the_first_line_says_what_and_since_when_the_second_why() -> None:
    first, second, *_ = part(mail(), "plain").splitlines()

    assert first == (
        "SLA MISSED: payments-30s since 2026-03-02 10:00:00 UTC (21 min so far): "
        "worst latency 17 min 24 s, threshold 30 s."
    )
    assert second == miss().evidence["sentence"]


def test_links_lead_to_the_runbook_the_miss_and_the_sla() -> None:
    sla = promise(name="billing.alerts v2", runbook="https://wiki.example.com/payments")
    found = mail(sla=sla, run_url="https://airflow.example.com/team/dags/kafka_sla/runs/x")

    links = re.findall(r'href="([^"]+)"', part(found, "html"))
    assert links == [
        "https://wiki.example.com/payments",
        f"https://airflow.example.com/team/kafka-sla/misses/{miss().id}",
        "https://airflow.example.com/team/kafka-sla/slas/billing.alerts%20v2",
        "https://airflow.example.com/team/dags/kafka_sla/runs/x",
    ]
    assert all(link in part(found, "plain") for link in links)


def test_the_cost_is_bad_time_of_the_budget_and_late_records() -> None:
    for kind, words in (("opened", "Cost so far: "), ("recovered", "It cost ")):
        text = part(mail(kind), "plain")
        assert f"{words}21 min of the 44 min 38 s error budget of the month; 23 min 38 s left. 18,900 records" in text


def test_an_overspent_budget_is_said() -> None:
    at = hour()[-1].window.end
    day = promise(period="day")
    period = attainment_in(day, hour(), period_until(day, at), at)

    assert "overspent by 19 min 34 s" in part(mail(sla=day, around=Surroundings(period)), "plain")


def test_other_slas_that_are_missed_are_named_nearest_first() -> None:
    others = [
        miss(sla="clicks", worst_group="sessionizer", worst_topic="clicks"),
        miss(sla="ledger within 5 s", worst_group="ledger", worst_topic="orders"),
        miss(sla="payments by night"),
        miss(sla="elsewhere", cluster="backup"),
        miss(),
    ]

    text = part(mail(around=beside(*others)), "plain")

    assert "Also missed: payments by night (same group), ledger within 5 s (same topic), clicks (same cluster)." in text
    assert "Also missed" not in part(mail(), "plain")


def test_a_comment_keeps_its_lines_and_makes_nothing_else_of_the_mail() -> None:
    noted = Note("comment", "on-call", "14:02 deployed\r\n14:10 <b>rolled</b> back\u202e", miss().start)
    message = mail(around=replace(beside(), notes=(noted,)))

    assert "14:02 deployed\n  14:10 <b>rolled</b> back\N{REPLACEMENT CHARACTER}" in part(message, "plain")
    assert "14:02 deployed<br>14:10 &lt;b&gt;rolled&lt;/b&gt; back\N{REPLACEMENT CHARACTER}" in part(message, "html")


@pytest.mark.parametrize("name", ["billing's alerts", "-payments.eu $HOME", "--json"])
def test_the_commands_to_look_further_can_be_typed(name: str) -> None:
    sla = promise(name=name)
    text = part(mail(sla=sla), "plain")
    typed = next(line.strip() for line in text.splitlines() if line.strip().startswith("kafka-sla misses"))

    asked = parser().parse_args(shlex.split(typed)[1:])

    assert (asked.sla, asked.start) == (name, miss().start - timedelta(minutes=30))


def test_a_miss_that_is_no_longer_judged_is_not_called_recovered() -> None:
    found = mail("recovered", found=miss(state="excluded", end_reason="no longer judged: maintenance: broker upgrade"))

    assert str(found["Subject"]) == "SLA no longer judged: payments-30s after 21 min"
    for kind in ("plain", "html"):
        text = part(found, kind)
        assert "No longer judged: maintenance: broker upgrade." in text
        assert "SLA recovered" not in text and "RECOVERED" not in text and "met again" not in text
