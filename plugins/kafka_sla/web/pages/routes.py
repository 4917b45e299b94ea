"""The pages: server-rendered HTML over the same answers as the API. Decides what a page shows, computes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from kafka_sla.model.entities import Interval
from kafka_sla.text.formatting import moment
from kafka_sla.web.api import routes
from kafka_sla.web.api.params import Chosen, Filter, NamedSla, RequestContext, Span
from kafka_sla.web.pages import broker_views, date_ranges, gap_views, view_models
from kafka_sla.web.pages.response import Page, page_of
from kafka_sla.web.queries import airflow_runs, coverage, gaps, other_metrics
from kafka_sla.web.queries.overview import attainments, overview

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
RequestPage = Annotated[Page, Depends(page_of)]
BEFORE, AFTER = timedelta(minutes=30), timedelta(minutes=15)
"""What a miss's page shows of the time around it."""
SHOWN_MISSES = 100
RECENT = timedelta(hours=6)


@router.get("/")
def overview_page(context: RequestContext, chosen: Chosen, page: RequestPage) -> Response:
    rows = overview(context, chosen.chosen(context.settings))
    return page.html(
        "overview", title="SLAs now", slas=[view_models.now(row, page.link) for row in rows],
        counts=view_models.counts(rows), choices=view_models.choices(context.settings), chosen=chosen,
        as_of=moment(context.now),
    )  # fmt: skip


@router.get("/slas/{sla:path}")
def sla_page(context: RequestContext, sla: NamedSla, span: Span, page: RequestPage) -> Response:
    (row,) = overview(context, [sla])
    misses = routes.found_misses(context, Filter(sla=sla.name), span, "")
    return page.html(
        "sla", title=sla.name, sla=view_models.now(row, page.link), required=sla,
        reached=_reached(context, sla, span), span=date_ranges.shown(span),
        periods=date_ranges.choices(span, sla, context.now),
        misses=misses[:SHOWN_MISSES], all_misses=len(misses),
        pieces=airflow_runs.pieces(context, sla.cluster, span, page.airflow),
    )  # fmt: skip


def _reached(context: RequestContext, sla: NamedSla, span: Span) -> list[dict[str, Any]]:
    """The calendar period at the end of what is shown; nothing when it is the one that the page's head shows."""
    found = attainments(context.ledger, [(sla, span.end)]).get(sla.name)
    return view_models.period_facts(sla, found) if found and found.period.end <= context.now else []


@router.get("/misses")
def misses_page(
    context: RequestContext, chosen: Chosen, page: RequestPage, request: Request, state: routes.State = ""
) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=30))
    rows = routes.found_misses(context, chosen, span, state)
    return page.html(
        "misses", title="Misses", misses=rows[:SHOWN_MISSES],
        all_misses=len(rows), choices=view_models.choices(context.settings), chosen=chosen, state=state,
        span=date_ranges.shown(span),
    )  # fmt: skip


@router.get("/misses/{miss_id}")
def miss_page(context: RequestContext, miss_id: str, page: RequestPage) -> Response:
    found = routes.find_miss(context, miss_id)
    sla = next((sla for sla in context.settings.slas if sla.name == found.sla), None)
    newest = context.ledger.queries.newest_verdicts([found.sla])
    until = found.end or (newest[found.sla].end if found.sla in newest else found.opened_at)
    around = Interval(found.start - BEFORE, until + AFTER)
    return page.html(
        "miss", title=f"{'SLA recovered' if found.end else 'SLA missed'}: {found.sla}",
        miss=found, sla=sla, span=date_ranges.shown(around),
        pieces=airflow_runs.pieces(context, found.cluster, Interval(found.start, until), page.airflow),
    )  # fmt: skip


@router.get("/quality")
def quality_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=7))
    rows, broken = routes.quality(context), routes.broken(context, span)
    return page.html(
        "quality", title="Data quality", tables=view_models.validated(rows, context),
        broken=[view_models.expectation(row, context) for row in broken], span=date_ranges.shown(span),
    )  # fmt: skip


@router.get("/coverage")
def coverage_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=31))
    days = coverage.coverage_days(context, span)
    return page.html("coverage", title="Coverage", days=view_models.coverage(days), span=date_ranges.shown(span))


@router.get("/missing")
def missing_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=31))
    found = gap_views.missing(gaps.missing(context, span), page.airflow)
    return page.html(
        "missing", title="Missing time", found=found, span=date_ranges.shown(span), paused=airflow_runs.paused(),
        backfills=airflow_runs.backfills_possible(),
    )  # fmt: skip


@router.get("/brokers")
def brokers_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, RECENT)
    rows = other_metrics.pairs(context, span)
    return page.html("brokers", title="Brokers", clusters=broker_views.meshes(rows), span=date_ranges.shown(span),
                      since=broker_views.since(rows, span))  # fmt: skip


@router.get("/replication")
def replication_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, RECENT)
    rows = other_metrics.flows(context, span)
    return page.html("replication", title="Replication", flows=[broker_views.flow(row) for row in rows],
                      span=date_ranges.shown(span), since=broker_views.since(rows, span))  # fmt: skip


@router.get("/unread")
def unread_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, RECENT)
    rows = other_metrics.unread(context, span)
    return page.html("unread", title="Unread records", rows=[broker_views.unread(row) for row in rows],
                      span=date_ranges.shown(span), since=broker_views.since(rows, span))  # fmt: skip


@router.get("/dags/{dag_id}")
def dag_page(context: RequestContext, dag_id: str, chosen: Chosen, page: RequestPage) -> Response:
    if dag_id not in airflow_runs.DAGS:
        return page.html("elsewhere", title="Kafka SLAs", dag=dag_id, dags=airflow_runs.DAGS)
    return overview_page(context, chosen, page)


@router.get("/dags/{dag_id}/runs/{run_id:path}")
def run_page(context: RequestContext, dag_id: str, run_id: str, page: RequestPage) -> Response:
    if dag_id not in airflow_runs.DAGS:
        return page.html("elsewhere", title="Kafka SLAs", dag=dag_id, dags=airflow_runs.DAGS)
    measured = airflow_runs.measured(dag_id, run_id)
    if measured is None:
        raise HTTPException(404, f"the run {run_id} of {dag_id} has no data interval: there is nothing to show")
    return page.html(
        "run", title="What this run judged", span=date_ranges.shown(measured),
        slas=[view_models.judged(context, sla, measured, page.link) for sla in context.settings.slas],
    )  # fmt: skip


@router.get("/static/{name}")
def static(name: str, page: RequestPage, v: Annotated[str, Query()] = "") -> Response:
    """Scripts and styles, behind the same right; named with their content's digest, so they may be kept."""
    return page.file(name, keep=bool(v))
