"""The pages of misses: the list, one with what people noted about it, and one as a file. Computes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, get_args

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from kafka_sla.ledger.triage import NoteKind
from kafka_sla.model.entities import Interval, Miss, MissState
from kafka_sla.notifications.miss_context import surroundings
from kafka_sla.notifications.miss_email import miss_page as exported
from kafka_sla.notifications.notices import Notice
from kafka_sla.sla.wording import miss_outcome
from kafka_sla.web.api import routes
from kafka_sla.web.api.params import Chosen, RequestContext
from kafka_sla.web.pages import date_ranges
from kafka_sla.web.pages.forms import FormFields
from kafka_sla.web.pages.reports import LOCKED
from kafka_sla.web.pages.response import PREFIX, RequestPage
from kafka_sla.web.pages.views import view_models
from kafka_sla.web.queries import airflow_runs
from kafka_sla.web.queries.one_moment import OneMoment

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, route_class=OneMoment)
writing = APIRouter(include_in_schema=False)
"""What changes something: for whoever may."""
BEFORE, AFTER = timedelta(minutes=30), timedelta(minutes=15)
"""What a miss's page shows of the time around it."""
SHOWN = 100
LONGEST_NOTE = 4_000


@router.get("/misses")
def misses_page(
    context: RequestContext, chosen: Chosen, page: RequestPage, request: Request, state: routes.State = ""
) -> Response:
    span = date_ranges.asked(request, context.now, timedelta(days=30))
    rows, count = routes.found_misses(context, chosen, span, state, SHOWN)
    return page.html(
        "misses",
        title="Misses",
        misses=rows,
        all_misses=count,
        choices=view_models.choices(context.settings),
        chosen=chosen,
        state=state,
        states=get_args(MissState),
        notes=context.ledger.triage.notes(rows),
        span=date_ranges.shown(span, request, context.now),
    )


@router.get("/misses/{miss_id}")
def miss_page(context: RequestContext, miss_id: str, page: RequestPage) -> Response:
    found = routes.find_miss(context, miss_id)
    sla = next((sla for sla in context.settings.slas if sla.name == found.sla), None)
    until = _until(context, found)
    around = Interval(found.start - BEFORE, until + AFTER)
    return page.html(
        "miss",
        title=f"SLA {miss_outcome(found)}: {found.sla}",
        miss=found,
        sla=sla,
        here=f"{page.outside(context.settings.base_url)}{PREFIX}/misses/{found.id}",
        span=date_ranges.shown(around, now=context.now),
        excludable=date_ranges.shown(Interval(found.start, until)),
        notes=context.ledger.triage.notes([found])[found.id],
        reported_with=context.ledger.alert_reports.reported_with(found),
        pieces=airflow_runs.pieces(context, found.cluster, Interval(found.start, until), page.airflow),
    )


@router.get("/misses/{miss_id}/document")
def miss_document(context: RequestContext, miss_id: str, page: RequestPage) -> Response:
    """The miss as one HTML file that reads the same anywhere."""
    found = routes.find_miss(context, miss_id)
    sla = next((sla for sla in context.settings.slas if sla.name == found.sla), None)
    if sla is None:
        raise HTTPException(404, f"the configuration has no SLA {found.sla!r} any more")
    until = _until(context, found)
    windows = context.ledger.verdicts.windows(sla, Interval(found.start - BEFORE, until + AFTER))
    notice = Notice("recovered" if found.end else "opened", found, page.outside(context.settings.base_url))
    text = exported(sla, notice, windows, surroundings(context.ledger, sla, found, until))
    attached = {"Content-Disposition": f'attachment; filename="miss-{found.id}.html"'}
    return HTMLResponse(text, headers=LOCKED | attached)


@writing.post("/misses/{miss_id}/notes")
def note(context: RequestContext, miss_id: str, page: RequestPage, user: GetUserDep, form: FormFields) -> Response:
    """Acknowledge a miss, or comment on it."""
    kind, text = form.get("kind", "comment"), form.get("text", "")[:LONGEST_NOTE]
    if kind not in get_args(NoteKind) or (kind == "comment" and not text):
        raise HTTPException(400, "a note is an acknowledgement, or a comment with a text")
    miss, triage = routes.find_miss(context, miss_id), context.ledger.triage
    (triage.acknowledge if kind == "acknowledged" else triage.comment)(miss, user.get_name(), text)
    return RedirectResponse(page.link(f"/misses/{miss_id}") + "#notes", 303)


def _until(context: RequestContext, miss: Miss) -> datetime:
    """The end of a miss, or of what is known of one that is open."""
    newest: dict[str, Any] = {} if miss.end else context.ledger.queries.newest_verdicts([miss.sla])
    return miss.end or (newest[miss.sla].end if miss.sla in newest else miss.opened_at)
