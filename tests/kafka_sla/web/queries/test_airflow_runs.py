"""Airflow's runs and the pages: which run computed a piece, and what a run's tab shows."""

from __future__ import annotations

import html
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from starlette.requests import Request

from tests.kafka_sla.web.conftest import Asker

PAYMENTS = "payments within 30 seconds"


@pytest.fixture(scope="module")
def piece(asgi: Any) -> Any:
    """What was published of the cluster prod: one piece."""
    from kafka_sla.model.entities import EVERYTHING
    from kafka_sla.web.queries.context import open_context

    request = Request({"type": "http", "state": {}})
    (found,) = [one for one in open_context(request).ledger.queries.publications(EVERYTHING) if one.cluster == "prod"]
    return found


@pytest.fixture(scope="module", autouse=True)
def runs(piece: Any) -> Iterator[None]:
    """A manual run whose form asked for just this time, under way when it was published; and one of other time."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    form = {"from": piece.interval.start.isoformat(), "to": piece.interval.end.isoformat()}
    with create_session() as session:
        session.add(_run("asked+for", piece, conf=form))
        session.add(_run("waits", piece, conf=form, state="queued"))
        start = piece.interval.start
        session.add(_run("other", piece, logical_date=start, data_interval=(start, start + timedelta(hours=1))))
    yield
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id == "kafka_sla"))


def _run(run_id: str, piece: Any, state: str = "success", **values: Any) -> Any:
    from airflow.models.dagrun import DagRun
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    about: datetime = piece.published_at
    run = DagRun(
        dag_id="kafka_sla",
        run_id=run_id,
        run_type=DagRunType.MANUAL,
        run_after=about,
        start_date=None if state == "queued" else about - timedelta(minutes=1),
        state=DagRunState(state),
        triggered_by=DagRunTriggeredByType.TEST,
        **values,
    )
    run.end_date = about + timedelta(minutes=1)
    return run


def test_a_piece_links_to_the_run_that_published_it(reader: Asker) -> None:
    page = html.unescape(reader.get(f"/slas/{PAYMENTS}").text)

    assert '<a href="/dags/kafka_sla/runs/asked%2Bfor" data-airflow>kafka_sla: asked+for</a>' in page
    assert "kafka_sla: other" not in page


@pytest.fixture
def without_its_run(piece: Any) -> Iterator[None]:
    """The run that published the piece is none that measured just this time: maintenance made it of several pieces."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import update

    asked = update(DagRun).where(DagRun.run_id == "asked+for")
    with create_session() as session:
        session.execute(asked.values(start_date=piece.published_at + timedelta(days=1)))
    yield
    with create_session() as session:
        session.execute(asked.values(start_date=piece.published_at - timedelta(minutes=1)))


@pytest.mark.usefixtures("without_its_run")
def test_a_piece_that_was_made_of_many_links_to_the_runs_that_measured_them(reader: Asker, piece: Any) -> None:
    page = html.unescape(reader.get(f"/slas/{PAYMENTS}").text)

    assert '<a href="/dags/kafka_sla/runs/other" data-airflow>kafka_sla: other</a>' in page
    assert "kafka_sla: asked" not in page
    ended = piece.interval.start + timedelta(hours=1)
    assert f'<td class="time">{ended:%Y-%m-%d %H:%M:%S} UTC</td>' in page


def test_the_tab_of_a_run_shows_what_it_judged(reader: Asker, piece: Any) -> None:
    whole = reader.get("/dags/kafka_sla/runs/asked%2Bfor").text
    part = reader.get("/dags/kafka_sla/runs/other").text

    assert f"{piece.interval.start:%Y-%m-%d %H:%M:%S} UTC to {piece.interval.end:%Y-%m-%d %H:%M:%S} UTC" in whole
    assert "180</td>" in whole, "every window of the SLA in maintenance is excluded"
    assert "60</td>" in part


def test_the_tab_of_a_run_that_waits_says_that_it_has_judged_nothing_yet(reader: Asker) -> None:
    done, waits = (reader.get(f"/dags/kafka_sla/runs/{run}").text for run in ("asked%2Bfor", "waits"))

    assert "<h1>What this run judged</h1>" in done
    assert "<h1>What this run will judge</h1>" in waits
    assert "as they were judged before: the run is queued" in waits


def test_a_run_that_airflow_does_not_know_is_not_found(reader: Asker) -> None:
    assert 404 == reader.get("/dags/kafka_sla/runs/nothing").status_code


@pytest.fixture(
    params=[
        ("2026-11-28T05:00Z", "2026-11-28T04:00Z", "exchange them?"),
        ("2026-11-28T05:00Z", "2026-11-28T05:00Z", "must be after From"),
        ("2026-11-31T00:00Z", "2026-12-01T00:00Z", "From (2026-11-31T00:00Z) is not a time"),
        ("2026-03-01T00:00Z", "9998-12-31T00:00Z", "is in the future"),
    ],
    ids=["exchanged", "equal", "no such day", "far ahead"],
)
def wrong(request: pytest.FixtureRequest, piece: Any) -> Iterator[str]:
    """A manual run that failed because its form asked for a time that cannot be; and what is wrong with it."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    start, end, words = request.param
    conf, at = {"from": start, "to": end}, piece.interval.start + timedelta(minutes=1)
    with create_session() as session:
        session.add(_run("wrong", piece, "failed", conf=conf, logical_date=at, data_interval=(at, piece.interval.end)))
    yield words
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.run_id == "wrong"))


def test_a_run_whose_form_asks_for_a_time_that_cannot_be_says_so_on_its_tab(reader: Asker, wrong: str) -> None:
    answer = reader.get("/dags/kafka_sla/runs/wrong")
    page = html.unescape(answer.text)

    assert (200, True) == (answer.status_code, wrong in page)
    assert "the run's From and To are wrong" in page
    assert "Windows per verdict" not in page


def test_a_run_whose_form_asks_for_a_time_that_cannot_be_is_of_no_time(reader: Asker, wrong: str, piece: Any) -> None:
    (miss, *_) = reader.json("/api/v1/misses")
    span = {"from": (piece.interval.start - timedelta(hours=1)).isoformat(), "to": piece.interval.end.isoformat()}
    paths = ("/coverage", f"/slas/{PAYMENTS}", f"/misses/{miss['id']}")

    assert dict.fromkeys(paths, 200) == {path: reader.get(path).status_code for path in paths}
    gaps = reader.json("/api/v1/missing", **span)["times"]
    assert gaps
    assert {0} == {gap["failed_runs"] for gap in gaps}, wrong
    assert "kafka_sla: wrong" not in reader.get(f"/slas/{PAYMENTS}").text
