"""The pages: server-rendered HTML over the same answers as the API. Decides what a page shows, computes nothing."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from kafka_sla.model.entities import Interval
from kafka_sla.pipeline.judged_time import attainments
from kafka_sla.text.formatting import moment
from kafka_sla.web.api import routes
from kafka_sla.web.api.params import Filter, NamedSla, RequestContext, Span
from kafka_sla.web.pages import date_ranges, reports
from kafka_sla.web.pages.response import RequestPage
from kafka_sla.web.pages.views import gap_views, overview_view, reader_views, view_models
from kafka_sla.web.pages.views.burn_down import burn_down
from kafka_sla.web.pages.views.overview_view import RequestView, View
from kafka_sla.web.pages.views.year_map import year_map
from kafka_sla.web.queries import airflow_runs, coverage, gaps
from kafka_sla.web.queries.catching_up import newest_catch_ups
from kafka_sla.web.queries.chains import chains_now
from kafka_sla.web.queries.one_moment import OneMoment
from kafka_sla.web.queries.overview import overview, with_curves
from kafka_sla.web.queries.readers import readers

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=OneMoment)
files = APIRouter(include_in_schema=False)
"""What the page that asks strangers to log in needs, too."""
SHOWN_MISSES = 100
MONTH = timedelta(days=30)
FEW_MISSES = 10
_RUN_TITLES = {
    "queued": "What this run will judge",
    "running": "What this run is judging",
    "failed": "What this run was to judge",
}


@router.get("/")
def overview_page(context: RequestContext, view: RequestView, page: RequestPage) -> Response:
    rows = overview(context, view.chosen.chosen(context.settings))
    return page.html(
        "overview",
        title="SLAs now",
        choices=view_models.choices(context.settings),
        as_of=moment(context.now),
        stale=airflow_runs.stale(context, page.airflow),
        **overview_view.shown(view, rows, page.link, partial(with_curves, context)),
    )


@router.get("/teams/{team:path}")
def team_page(context: RequestContext, team: str, page: RequestPage) -> Response:
    chosen = Filter(team=team)
    if not team or not (slas := chosen.chosen(context.settings)):
        raise HTTPException(404, f"no SLA of the configuration is of team {team!r}")
    rows = overview(context, slas)
    misses, count = routes.found_misses(context, chosen, Interval(context.now - MONTH, context.now), most=FEW_MISSES)
    return page.html(
        "team",
        title=team,
        team=team,
        counts=overview_view.counts(rows),
        as_of=moment(context.now),
        stale=airflow_runs.stale(context, page.airflow),
        lists=overview_view.shown(View(chosen, unfolded=True), rows, page.link, partial(with_curves, context))["lists"],
        misses=misses,
        all_misses=count,
        reports=reports.newest(context, page, team),
    )


@router.get("/slas/{sla:path}")
def sla_page(context: RequestContext, sla: NamedSla, span: Span, page: RequestPage) -> Response:
    (row,) = with_curves(context, overview(context, [sla]))
    misses, count = routes.found_misses(context, Filter(sla=sla.name), span, most=SHOWN_MISSES)
    return page.html(
        "sla",
        title=sla.name,
        sla=view_models.now(row, page.link),
        required=sla,
        reached=_reached(context, sla, span),
        span=date_ranges.shown(span, now=context.now),
        catch_up=newest_catch_ups(context, [sla]).get(sla.name),
        chain=chains_now(context, [sla]).get(sla.name),
        budget=burn_down(context, sla, row.period),
        year=year_map(context, sla),
        readers=reader_views.readers(readers(context, sla, min(span.end, context.now))),
        flows=reader_views.flows_of(context.settings, sla),
        periods=date_ranges.choices(span, sla, context.now),
        burns=context.ledger.burns.of([sla.name], span) if sla.burn_pairs else [],
        misses=misses,
        all_misses=count,
        exclusions=context.ledger.exclusions.listed([sla.name], span),
        pieces=airflow_runs.pieces(context, sla.cluster, span, page.airflow),
    )


def _span(
    context: RequestContext, request: Request, span: Interval, longest: timedelta = timedelta(days=366)
) -> dict[str, Any]:
    return date_ranges.shown(span, request, context.now, longest)


def _reached(context: RequestContext, sla: NamedSla, span: Span) -> list[dict[str, Any]]:
    """The period at the end of what is shown; nothing when it is the one that the page's head shows."""
    found = attainments(context.ledger, [(sla, span.end)]).get(sla.name)
    return view_models.period_facts(sla, found) if found and found.period.end <= context.now else []


@router.get("/quality")
def quality_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=7))
    rows, broken = routes.quality(context), routes.broken(context, span)
    return page.html(
        "quality",
        title="Data quality",
        tables=view_models.validated(rows, context),
        broken=[view_models.expectation(row, context) for row in broken],
        span=_span(context, request, span),
    )


@router.get("/coverage")
def coverage_page(context: RequestContext, page: RequestPage, request: Request) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=31))
    published = coverage.published_spans(context, span)
    found = gap_views.missing(gaps.missing(context, span, published), page.airflow)
    days = coverage.coverage_days(context, span, published)
    return page.html(
        "coverage",
        title="Coverage",
        clusters=view_models.coverage(days),
        found=found,
        span=_span(context, request, span, coverage.LONGEST),
        paused=airflow_runs.paused(),
        backfills=airflow_runs.backfills_possible(),
    )


@router.get("/missing")
def missing_page(page: RequestPage, request: Request) -> Response:
    """The address of what the page of coverage shows now."""
    return RedirectResponse(page.link("/coverage", **request.query_params), 308)


@router.get("/dags/{dag_id}")
def dag_page(context: RequestContext, dag_id: str, view: RequestView, page: RequestPage) -> Response:
    if dag_id not in airflow_runs.DAGS:
        return page.html("elsewhere", title="Kafka SLAs", dag=dag_id, dags=airflow_runs.DAGS)
    return overview_page(context, view, page)


@router.get("/dags/{dag_id}/runs/{run_id:path}")
def run_page(context: RequestContext, dag_id: str, run_id: str, page: RequestPage) -> Response:
    if dag_id not in airflow_runs.DAGS:
        return page.html("elsewhere", title="Kafka SLAs", dag=dag_id, dags=airflow_runs.DAGS)
    found = airflow_runs.measured(dag_id, run_id, context.now)
    if found is None:
        raise HTTPException(404, f"the run {run_id} of {dag_id} has no data interval: there is nothing to show")
    title = _RUN_TITLES.get(found.state, "What this run judged")
    if found.time is None:
        return page.html("run", title=title, wrong=found.reason)
    return page.html(
        "run",
        title=title,
        wrong="",
        state=found.state,
        span=date_ranges.shown(found.time, now=context.now),
        slas=[view_models.judged(context, sla, found.time, page.link) for sla in context.settings.slas],
    )


@files.get("/static/{name}")
def static(name: str, page: RequestPage, v: Annotated[str, Query()] = "") -> Response:
    """Scripts and styles, for everybody; named with their content's digest, so they may be kept."""
    return page.file(name, keep=bool(v))
