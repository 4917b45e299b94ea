"""The pages: server-rendered HTML over the same answers as the API. Decides what a page shows, computes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from kafka_sla.model.entities import Interval
from kafka_sla.text.formatting import moment
from kafka_sla.web.api import routes
from kafka_sla.web.api.params import Chosen, Filter, Here, Promise, Span
from kafka_sla.web.pages import broker_views, date_ranges, gap_views, view_models
from kafka_sla.web.pages.response import Page, page
from kafka_sla.web.queries import airflow_runs, coverage, gaps, other_metrics
from kafka_sla.web.queries.overview import attainments, overview

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
Paper = Annotated[Page, Depends(page)]
BEFORE, AFTER = timedelta(minutes=30), timedelta(minutes=15)
"""What a miss's page shows of the time around it."""
SHOWN_MISSES = 100
RECENT = timedelta(hours=6)


@router.get("/")
def overview_page(here: Here, chosen: Chosen, paper: Paper) -> Response:
    rows = overview(here, chosen.chosen(here.settings))
    return paper.html(
        "overview", title="SLAs now", slas=[view_models.now(row, paper.link) for row in rows],
        counts=view_models.counts(rows), choices=view_models.choices(here.settings), chosen=chosen,
        as_of=moment(here.now),
    )  # fmt: skip


@router.get("/slas/{sla:path}")
def sla_page(here: Here, sla: Promise, span: Span, paper: Paper) -> Response:
    (row,) = overview(here, [sla])
    misses = routes.found_misses(here, Filter(sla=sla.name), span, "")
    return paper.html(
        "sla", title=sla.name, sla=view_models.now(row, paper.link), promise=view_models.promise(sla),
        reached=_reached(here, sla, span), span=date_ranges.shown(span),
        periods=date_ranges.choices(span, sla, here.now),
        misses=[view_models.miss(miss, paper.link) for miss in misses[:SHOWN_MISSES]], all_misses=len(misses),
        pieces=airflow_runs.pieces(here, sla.cluster, span, paper.airflow),
    )  # fmt: skip


def _reached(here: Here, sla: Promise, span: Span) -> list[dict[str, Any]]:
    """The calendar period at the end of what is shown; nothing when it is the one that the page's head shows."""
    found = attainments(here.ledger, [(sla, span.end)]).get(sla.name)
    return view_models.period_facts(sla, found) if found and found.period.end <= here.now else []


@router.get("/misses")
def misses_page(here: Here, chosen: Chosen, paper: Paper, request: Request, state: routes.State = "") -> Response:
    span = date_ranges.asked(request, here.now, timedelta(days=30))
    rows = routes.found_misses(here, chosen, span, state)
    return paper.html(
        "misses", title="Misses", misses=[view_models.miss(row, paper.link) for row in rows[:SHOWN_MISSES]],
        all_misses=len(rows), choices=view_models.choices(here.settings), chosen=chosen, state=state,
        span=date_ranges.shown(span),
    )  # fmt: skip


@router.get("/misses/{miss_id}")
def miss_page(here: Here, miss_id: str, paper: Paper) -> Response:
    found = routes.find_miss(here, miss_id)
    answer = routes.one_miss(here, miss_id)
    sla = next((sla for sla in here.settings.slas if sla.name == found.sla), None)
    newest = here.ledger.queries.newest_verdicts([found.sla])
    until = found.end or (newest[found.sla].end if found.sla in newest else found.opened_at)
    around = Interval(found.start - BEFORE, until + AFTER)
    return paper.html(
        "miss", title=f"{'SLA recovered' if found.end else 'SLA missed'}: {found.sla}",
        miss=view_models.miss(answer, paper.link), promise=view_models.promise(sla) if sla else None,
        figures=view_models.evidence(found), span=date_ranges.shown(around),
        pieces=airflow_runs.pieces(here, found.cluster, Interval(found.start, until), paper.airflow),
    )  # fmt: skip


@router.get("/quality")
def quality_page(here: Here, paper: Paper, request: Request) -> Response:
    span = date_ranges.asked(request, here.now, timedelta(days=7))
    rows, broken = routes.quality(here), routes.broken(here, span)
    return paper.html(
        "quality", title="Data quality", tables=view_models.validated(rows, here),
        broken=[view_models.expectation(row, here) for row in broken], span=date_ranges.shown(span),
    )  # fmt: skip


@router.get("/coverage")
def coverage_page(here: Here, paper: Paper, request: Request) -> Response:
    span = date_ranges.asked(request, here.now, timedelta(days=31))
    days = coverage.coverage_days(here, span)
    return paper.html("coverage", title="Coverage", days=view_models.coverage(days), span=date_ranges.shown(span))


@router.get("/missing")
def missing_page(here: Here, paper: Paper, request: Request) -> Response:
    span = date_ranges.asked(request, here.now, timedelta(days=31))
    found = gap_views.missing(gaps.missing(here, span), paper.airflow)
    return paper.html(
        "missing", title="Missing time", found=found, span=date_ranges.shown(span), paused=airflow_runs.paused(),
        backfills=airflow_runs.backfills_possible(),
    )  # fmt: skip


@router.get("/brokers")
def brokers_page(here: Here, paper: Paper, request: Request) -> Response:
    span = date_ranges.asked(request, here.now, RECENT)
    rows = other_metrics.pairs(here, span)
    return paper.html("brokers", title="Brokers", clusters=broker_views.meshes(rows), span=date_ranges.shown(span),
                      since=broker_views.since(rows, span))  # fmt: skip


@router.get("/replication")
def replication_page(here: Here, paper: Paper, request: Request) -> Response:
    span = date_ranges.asked(request, here.now, RECENT)
    rows = other_metrics.flows(here, span)
    return paper.html("replication", title="Replication", flows=[broker_views.flow(row) for row in rows],
                      span=date_ranges.shown(span), since=broker_views.since(rows, span))  # fmt: skip


@router.get("/unread")
def unread_page(here: Here, paper: Paper, request: Request) -> Response:
    span = date_ranges.asked(request, here.now, RECENT)
    rows = other_metrics.unread(here, span)
    return paper.html("unread", title="Unread records", rows=[broker_views.unread(row) for row in rows],
                      span=date_ranges.shown(span), since=broker_views.since(rows, span))  # fmt: skip


@router.get("/dags/{dag_id}")
def dag_page(here: Here, dag_id: str, chosen: Chosen, paper: Paper) -> Response:
    if dag_id not in airflow_runs.DAGS:
        return paper.html("elsewhere", title="Kafka SLAs", dag=dag_id, dags=airflow_runs.DAGS)
    return overview_page(here, chosen, paper)


@router.get("/dags/{dag_id}/runs/{run_id:path}")
def run_page(here: Here, dag_id: str, run_id: str, paper: Paper) -> Response:
    if dag_id not in airflow_runs.DAGS:
        return paper.html("elsewhere", title="Kafka SLAs", dag=dag_id, dags=airflow_runs.DAGS)
    measured = airflow_runs.measured(dag_id, run_id)
    if measured is None:
        raise HTTPException(404, f"the run {run_id} of {dag_id} has no data interval: there is nothing to show")
    return paper.html(
        "run", title="What this run judged", span=date_ranges.shown(measured),
        slas=[view_models.judged(here, sla, measured, paper.link) for sla in here.settings.slas],
    )  # fmt: skip


@router.get("/static/{name}")
def static(name: str, paper: Paper, v: Annotated[str, Query()] = "") -> Response:
    """Scripts and styles, behind the same right; named with their content's digest, so they may be kept."""
    return paper.file(name, keep=bool(v))
