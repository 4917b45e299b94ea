"""Missing time: what is told of it, and that the commands offered do measure it."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, SlaWindow
from kafka_sla.pipeline.rollup_builder import sum_up
from kafka_sla.tasks.run_plan import Frozen, Request, plan, planned
from kafka_sla.text.timestamps import parse_instant
from kafka_sla.web.queries.backfill_commands import Remediation, backfill, judge, ranges, trigger
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import CONFIGURATION, HOSTILE, UNPUBLISHED

DAY = timedelta(days=1)
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)
KEPT = Frozen(store="kafka_sla_store", configuration="c0ffee")


def days(first: int, last: int) -> Interval:
    """These days of March, the last one included."""
    return Interval(MARCH + (first - 1) * DAY, MARCH + last * DAY)


@pytest.fixture
def context(asgi: Any, tmp_path: Path) -> Any:
    """An empty store of two clusters, at noon of the 8th."""
    from kafka_sla.web.queries.context import Context

    config, store = tmp_path / "kafka_sla.yml", Store.embedded(tmp_path)
    config.write_text(CONFIGURATION)
    return Context(load_settings(config), Ledger(store), Lake(store), store, NOW)


def found(context: Any, span: Interval) -> Any:
    from kafka_sla.web.queries.coverage import published_spans
    from kafka_sla.web.queries.gaps import missing

    return missing(context, span, published_spans(context, span))


def publish(context: Any, cluster: str, span: Interval) -> None:
    context.ledger.publications.publish([cluster], span, f"{cluster} {span}", 0)


def commands(remediations: list[Remediation], *kinds: str) -> list[str]:
    return [remediation.command for remediation in remediations if remediation.kind in kinds]


def newest(reader: Asker) -> datetime:
    """Until when the small world is published."""
    return datetime.fromisoformat(reader.json("/api/v1/slas/payments within 30 seconds")["as_of"])


def test_a_gap_is_told_to_the_minute(reader: Asker) -> None:
    until = newest(reader)
    span = {"from": (until - timedelta(hours=3)).isoformat(), "to": until.isoformat()}
    gaps = [row for row in reader.json("/api/v1/missing", **span)["times"] if row["cluster"] == "dr"]
    start, end = (datetime.fromisoformat(gaps[0][key]) for key in ("start", "end"))

    assert timedelta(minutes=UNPUBLISHED[0] - UNPUBLISHED[1]) == end - start


def test_days_in_a_row_are_one_backfill(context: Any) -> None:
    for cluster in ("prod", "dr"):
        publish(context, cluster, days(4, 4))
        publish(context, cluster, Interval(MARCH + 7 * DAY, NOW))

    assert commands(found(context, days(1, 8)).remediations, "backfill", "trigger") == [
        "airflow backfill create --dag-id kafka_sla_history --from-date 2026-03-01T00:00Z --to-date 2026-03-03T00:00Z",
        "airflow backfill create --dag-id kafka_sla_history --from-date 2026-03-05T00:00Z --to-date 2026-03-07T00:00Z",
    ]


def test_only_clusters_that_lack_something_are_measured(context: Any) -> None:
    publish(context, "prod", days(1, 8))
    publish(context, "dr", days(2, 8))

    (command,) = commands(found(context, days(1, 7)).remediations, "backfill", "trigger")

    assert ["--dag-run-conf", '{"clusters": ["dr"]}'] == shlex.split(command)[-2:]


def test_a_day_that_is_not_over_is_one_run_of_the_live_dag(context: Any) -> None:
    for cluster in ("prod", "dr"):
        publish(context, cluster, Interval(NOW - 12 * timedelta(hours=1), NOW - timedelta(hours=2)))

    (remediation,) = [
        remediation for remediation in found(context, days(8, 8)).remediations if remediation.kind == "trigger"
    ]

    assert ("kafka_sla", "2026-03-08T10:00Z", "2026-03-08T11:45Z") == (
        remediation.dag,
        remediation.form["from"],
        remediation.form["to"],
    )
    assert remediation.command.startswith("airflow dags trigger kafka_sla --conf ")


def test_time_that_is_published_as_unknown_is_listed_and_not_covered(context: Any) -> None:
    publish(context, "prod", days(1, 3))
    for sla in (sla for sla in context.settings.slas if sla.cluster == "prod"):
        windows = [
            SlaWindow(sla.name, at, "good" if at.start < MARCH + DAY else "unknown", False, "", max_latency_ms=1_000)
            for at in days(1, 3).windows(600_000)
        ]
        context.ledger.verdicts.replace(sla, days(1, 3), windows)
        sum_up(sla, context.lake, context.ledger, days(1, 3), 600_000)

    blind = [time for time in found(context, days(1, 3)).times if time.cluster == "prod"]
    shares = {d.day: (d.measured + d.reconstructed, d.unknown) for d in coverage_of(context, days(1, 3))}

    assert [(t.start, t.end, t.published) for t in blind] == [(MARCH + DAY, MARCH + 3 * DAY, True)]
    assert shares == {"2026-03-01": (1.0, 0.0), "2026-03-02": (0.0, 1.0), "2026-03-03": (0.0, 1.0)}


def coverage_of(context: Any, span: Interval) -> Any:
    from kafka_sla.web.queries.coverage import coverage_days, published_spans

    return [d for d in coverage_days(context, span, published_spans(context, span)) if d.cluster == "prod"]


def test_an_sla_that_came_later_is_judged_from_what_is_stored(context: Any) -> None:
    publish(context, "prod", days(1, 5))
    for sla in (sla for sla in context.settings.slas if sla.cluster == "prod"):
        span = days(4, 5) if sla.name.startswith("orders") else days(1, 5)
        windows = [
            SlaWindow(sla.name, window, "good", True, "", max_latency_ms=sla.max_latency_ms)
            for window in span.windows(60_000)
        ]
        context.ledger.verdicts.replace(sla, span, windows, lambda *_: [])
        sum_up(sla, context.lake, context.ledger, span, 60_000)

    answer = found(context, days(1, 5))

    assert [("orders within 5 minutes", MARCH, MARCH + 3 * DAY)] == [(u.sla, u.start, u.end) for u in answer.unjudged]
    (command,) = commands(answer.remediations, "judge")
    assert json.loads(shlex.split(command)[-1]) == {
        "from": "2026-03-01T00:00Z",
        "to": "2026-03-04T00:00Z",
        "facts": "stored",
        "slas": ["orders within 5 minutes"],
    }


def at(day: int, clock: str) -> datetime:
    return MARCH + (day - 1) * DAY + timedelta(hours=int(clock[:2]), minutes=int(clock[3:]))


def test_what_could_not_be_judged_is_named_with_its_reason_and_judged_by_one_run(context: Any) -> None:
    publish(context, "prod", days(1, 8))
    orders, failures = "orders within 5 minutes", context.ledger.failures
    for sla, start, end, reason in (
        (orders, "09:00", "09:05", "a torn file"),
        (orders, "09:05", "09:10", "another one"),
        (orders, "11:00", "11:05", "a third one"),
        ("no SLA any more", "09:00", "09:05", "forgotten"),
    ):
        failures.add_unjudged(sla, Interval(at(8, start), at(8, end)), reason)

    answer = found(context, Interval(at(8, "08:00"), at(8, "11:30")))

    assert [(one.sla, one.start, one.end, one.reason) for one in answer.unjudged] == [
        (orders, at(8, "09:00"), at(8, "09:10"), "another one"),
        (orders, at(8, "11:00"), at(8, "11:05"), "a third one"),
    ]
    offered = [one for one in answer.remediations if one.kind == "judge"]
    assert [(one.start, one.end, one.slas) for one in offered] == [
        (at(8, "09:00"), at(8, "09:10"), [orders]),
        (at(8, "11:00"), at(8, "11:05"), [orders]),
    ]


def test_a_day_that_was_not_wholly_judged_is_named_once_with_the_last_reason(context: Any) -> None:
    publish(context, "prod", days(1, 1))
    for clock in ("09:00", "10:00"):
        failed = Interval(at(1, clock), at(1, clock) + timedelta(minutes=5))
        context.ledger.failures.add_unjudged("orders within 5 minutes", failed, f"torn at {clock}")

    mine = [one for one in found(context, days(1, 2)).unjudged if one.sla == "orders within 5 minutes"]

    assert [(one.start, one.end, one.reason) for one in mine] == [(MARCH, MARCH + DAY, "torn at 10:00")]


def test_the_page_says_why_time_could_not_be_judged(reader: Asker, context: Any) -> None:
    from kafka_sla.tasks.connections import store_of

    ledger, sla = Ledger(store_of("kafka_sla_store")), context.settings.slas[0]
    failed = Interval(at(2, "09:00"), at(2, "09:05"))
    ledger.failures.add_unjudged(sla.name, failed, "no space left on <disk>")
    page = html.unescape(reader.get("/coverage", **{"from": "2026-03-01T12:00", "to": "2026-03-02T12:00"}).text)
    ledger.verdicts.replace(sla, failed, [], lambda *_: [])

    assert "<td>no space left on <disk></td>" in page
    assert "2026-03-02 09:00:00 UTC to 2026-03-02 09:05:00 UTC" in page


def test_every_form_offered_is_one_that_the_dag_accepts(context: Any) -> None:
    publish(context, "dr", Interval(MARCH - 90 * DAY, MARCH))
    context.ledger.failures.add_unjudged(
        "orders within 5 minutes", Interval(at(8, "09:00"), at(8, "09:05")), "a torn file"
    )

    remediations = found(context, Interval(NOW - 100 * DAY, NOW)).remediations

    assert {"backfill", "trigger", "judge"} == {remediation.kind for remediation in remediations}
    for remediation in remediations:
        start, end = parse_instant(remediation.form["from"]), parse_instant(remediation.form["to"])
        request = Request(
            every=DAY,
            watches=False,
            run_after=NOW,
            start=start,
            end=end,
            stored="facts" in remediation.form,
            clusters=tuple(remediation.form.get("clusters", ())),
            slas=tuple(remediation.form.get("slas", ())),
        )
        assert Interval(remediation.start, remediation.end) == planned(plan(context.settings, KEPT, request, NOW))


def test_a_span_is_cut_into_what_one_run_takes() -> None:
    parts = list(ranges((MARCH + n * DAY for n in (*range(40), 50)), 31 * DAY))

    assert [days(1, 31), days(32, 40), days(51, 51)] == parts


@pytest.mark.parametrize("name", ["$(reboot)", "a'; rm -rf /; '", HOSTILE])
def test_names_cannot_break_out_of_a_command(name: str) -> None:
    offered = [backfill(days(1, 2), [name], again=True), trigger(days(1, 1), [name]), judge(days(1, 1), [name])]

    for remediation in offered:
        said = json.loads(shlex.split(remediation.command)[-1])
        assert [name] == said.get("clusters", said.get("slas"))


@pytest.fixture
def runs(asgi: Any) -> Iterator[None]:
    """A run of the history for the 2nd of March that failed."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunType
    from sqlalchemy import delete

    with create_session() as session:
        session.add(
            DagRun(
                dag_id="kafka_sla_history",
                run_id="failed",
                run_type=DagRunType.SCHEDULED,
                logical_date=MARCH + DAY,
                run_after=MARCH + 2 * DAY,
                data_interval=(MARCH + DAY, MARCH + 2 * DAY),
                state=DagRunState.FAILED,
            )
        )
    yield
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.run_id == "failed"))


def test_a_run_that_failed_is_told_and_repeated(context: Any, runs: None) -> None:
    publish(context, "prod", days(1, 8))
    publish(context, "dr", Interval(MARCH, MARCH + DAY))

    answer = found(context, days(1, 3))

    assert [("dr", 1, 0)] == [(t.cluster, t.failed_runs, t.runs_under_way) for t in answer.times]
    assert "--reprocess-behavior completed" in commands(answer.remediations, "backfill")[0]


def test_missing_time_says_why_it_could_not_be_measured(context: Any, runs: None) -> None:
    context.ledger.failures.add(["dr"], Interval(MARCH + DAY, MARCH + 2 * DAY), "measure", "no space left on <disk>")

    answer = found(context, days(1, 3))

    assert {"no space left on <disk>", None} == {t.reason for t in answer.times}
    assert [t.cluster for t in answer.times if t.reason] == ["dr"]


def test_the_page_says_why_time_could_not_be_measured(reader: Asker) -> None:
    from kafka_sla.tasks.connections import store_of

    failures, second = Ledger(store_of("kafka_sla_store")).failures, Interval(MARCH + DAY, MARCH + 2 * DAY)
    failures.add(["prod"], second, "measure", "no space left on <disk>")
    page = reader.get("/coverage", **{"from": "2026-03-01", "to": "2026-03-04"}).text
    failures.forget(["prod"], second)

    assert "<td>no space left on &lt;disk&gt;</td>" in page


def test_the_page_offers_the_command_and_the_json_of_the_form(reader: Asker) -> None:
    page = html.unescape(reader.get("/coverage", **{"from": "2026-03-01", "to": "2026-03-04"}).text)

    assert '<code>{"from": "2026-03-01T00:00Z", "to": "2026-03-04T00:00Z"}</code>' in page
    # The tests' Airflow is on SQLite, which cannot create backfills: the page says so and offers what works there.
    assert "No backfills here" in page
    assert """airflow dags trigger kafka_sla_history --conf '{"from": "2026-03-01T00:00Z",""" in page
    assert "airflow backfill create" not in page


def test_where_airflow_can_backfill_the_backfill_is_offered(reader: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sla.web.queries.airflow_runs.backfills_possible", lambda: True)
    page = html.unescape(reader.get("/coverage", **{"from": "2026-03-01", "to": "2026-03-04"}).text)

    assert "--from-date 2026-03-01T00:00Z --to-date 2026-03-03T00:00Z" in page
    assert "No backfills here" not in page


def test_a_time_that_is_all_published_needs_no_command(reader: Asker) -> None:
    until = newest(reader)
    span = {"from": (until - timedelta(minutes=90)).isoformat(), "to": until.isoformat()}
    page = reader.get("/coverage", **span).text

    assert "Everything in this time is published" in page
    assert "airflow backfill" not in page


def test_a_span_that_is_too_long_is_refused(reader: Asker) -> None:
    assert "100 days" in reader.get("/api/v1/missing", **{"from": "2024-01-01"}).json()["detail"]
