"""The pages of what SLAs depend on: brokers, replication flows, unread records. Computes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from kafka_sla.model.entities import Interval
from kafka_sla.web.api.params import RequestContext, named
from kafka_sla.web.pages import date_ranges
from kafka_sla.web.pages.response import RequestPage
from kafka_sla.web.pages.views import broker_views, reader_views
from kafka_sla.web.queries import other_metrics
from kafka_sla.web.queries.one_moment import OneMoment
from kafka_sla.web.queries.readers import RECENT as LEADERS_SEEN
from kafka_sla.web.queries.readers import leaders

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=OneMoment)
RECENT = timedelta(hours=6)
OfSla = Annotated[str, Query(alias="sla", description="what one SLA depends on; empty: all")]


@router.get("/brokers")
def brokers_page(
    context: RequestContext,
    page: RequestPage,
    request: Request,
    cluster: Annotated[str, Query(description="one cluster; empty: all")] = "",
    broker: Annotated[int | None, Query(description="list the SLAs that read what it leads")] = None,
) -> Response:
    span = date_ranges.asked(request, context.now, RECENT)
    rows = [row for row in other_metrics.pairs(context, span) if cluster in ("", row.cluster)]
    seen = Interval(span.end - LEADERS_SEEN, span.end)
    clusters = [each.name for each in context.settings.clusters if cluster in ("", each.name)]
    asked = {name: at for name, at in request.query_params.items() if name in ("from", "to")}
    led = {
        name: reader_views.leading(name, of_topics, context.settings.slas, page.link, asked)
        for name, of_topics in leaders(context, clusters, seen).items()
    }
    flows = {
        each.name: [
            flow for c in context.settings.clusters for flow in c.replication if each.name in (c.name, flow.target)
        ]
        for each in context.settings.clusters
    }
    return page.html(
        "brokers",
        title="Brokers",
        clusters=broker_views.meshes(rows),
        led=led,
        flows=flows,
        cluster=cluster,
        broker=broker,
        span=date_ranges.shown(span, request, context.now),
        since=broker_views.since(rows, span),
    )


@router.get("/replication")
def replication_page(context: RequestContext, page: RequestPage, request: Request, sla: OfSla = "") -> Response:
    span = date_ranges.asked(request, context.now, RECENT)
    slas = [named(context.settings, sla)] if sla else list(context.settings.slas)
    rows = other_metrics.flows(context, span)
    readers = reader_views.slas_of_flows(rows, slas)
    flows = [
        broker_views.flow(row) | {"slas": reader_views.few_slas(row, mine, page.link)}
        for row, mine in zip(rows, readers, strict=True)
        if mine or not sla
    ]
    shown = date_ranges.shown(span, request, context.now)
    return page.html(
        "replication", title="Replication", flows=flows, sla=sla, span=shown, since=broker_views.since(rows, span)
    )


@router.get("/unread")
def unread_page(context: RequestContext, page: RequestPage, request: Request, sla: OfSla = "") -> Response:
    span = date_ranges.asked(request, context.now, RECENT)
    mine = named(context.settings, sla) if sla else None
    rows = [
        row
        for row in other_metrics.unread(context, span)
        if not mine
        or (row.cluster == mine.cluster and mine.groups.matches(row.group) and mine.topics.matches(row.topic))
    ]
    shown = date_ranges.shown(span, request, context.now)
    return page.html(
        "unread",
        title="Unread records",
        rows=[broker_views.unread(row) for row in rows],
        sla=sla,
        span=shown,
        since=broker_views.since(rows, span),
    )
