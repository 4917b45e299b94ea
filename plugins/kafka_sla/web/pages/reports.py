"""The archive of digests as pages: a list, each in a frame where nothing of it can run, and the file itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response

from kafka_sla.reporting import archive
from kafka_sla.reporting.archive import Archived
from kafka_sla.text.formatting import moment
from kafka_sla.text.natural_order import natural
from kafka_sla.web.api.params import RequestContext
from kafka_sla.web.pages.response import Page, RequestPage
from kafka_sla.web.queries.backfill_commands import dag_trigger
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.one_moment import OneMoment
from kafka_sla.web.queries.schemas import Report

router = APIRouter(default_response_class=HTMLResponse, route_class=OneMoment)
Named = Annotated[str, Query(description="one digest; empty: all")]
OfTeam = Annotated[str, Query(description="digests of one team; empty: all")]
SHOWN, NEWEST = 200, 5
DAG = "kafka_sla_report"
# What a digest says comes from names that others chose. Its page has no script, and none would run: `sandbox` gives it
# an origin of its own, without scripts, forms and windows.
LOCKED = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
}


@router.get(
    "/api/v1/reports",
    summary="The digests of the archive, the newest period first",
    tags=["kafka_sla"],
    response_class=JSONResponse,
)
def reports(context: RequestContext, page: RequestPage, digest: Named = "", team: OfTeam = "") -> list[Report]:
    return [_answer(one, page.link) for one in _found(context, digest, team)[:SHOWN]]


@router.get("/reports", include_in_schema=False)
def reports_page(context: RequestContext, page: RequestPage, digest: Named = "", team: OfTeam = "") -> Response:
    found = _found(context, digest, team)
    return page.html(
        "reports",
        title="Reports",
        reports=[_told(one, page) for one in found[:SHOWN]],
        all_reports=len(found),
        digests=sorted({one.title for one in _found(context)}, key=natural),
        teams=sorted({digest.team for digest in context.settings.digests} - {""}, key=natural),
        digest=digest,
        team=team,
        dag=DAG,
        dag_href=page.airflow(f"/dags/{DAG}"),
    )


@router.get("/reports/{folder}/{name}", include_in_schema=False)
def report_page(context: RequestContext, folder: str, name: str, page: RequestPage) -> Response:
    one = _one(context, folder, name)
    form = _form(one)
    return page.html(
        "report",
        title=f"{one.title}: {one.period}",
        report=_told(one, page),
        form=form,
        command=dag_trigger(DAG, form) if form else "",
        json=json.dumps(form),
        dag=DAG,
        dag_href=page.airflow(f"/dags/{DAG}"),
    )


@router.get("/reports/{folder}/{name}/document", include_in_schema=False)
def document(context: RequestContext, folder: str, name: str, download: bool = False) -> Response:
    """The page as it was mailed, alone; `download`: as a file that reads the same anywhere."""
    one = _one(context, folder, name)
    attached = {"Content-Disposition": f'attachment; filename="{one.folder}-{one.name}.html"'} if download else {}
    return HTMLResponse(archive.text_of(context.store, one), headers=LOCKED | attached)


def newest(context: Context, page: Page, team: str) -> list[dict[str, Any]]:
    """The newest digests of a team."""
    return [_told(one, page) for one in _found(context, team=team)[:NEWEST]]


def _found(context: Context, digest: str = "", team: str = "") -> list[Archived]:
    return [
        one
        for one in archive.archived(context.store, context.settings.digests)
        if digest in ("", one.title) and (not team or (one.digest is not None and one.digest.team == team))
    ]


def _one(context: Context, folder: str, name: str) -> Archived:
    one = archive.find(archive.archived(context.store, context.settings.digests), folder, name)
    if one is None:
        raise HTTPException(404, f"the archive has no page {folder}/{name}")
    return one


def _answer(one: Archived, link: Callable[..., str]) -> Report:
    page = link(f"/reports/{one.folder}/{one.name}")
    return Report(
        digest=one.title,
        every=one.every,
        period=one.period,
        start=one.start,
        made_at=one.made_at,
        team=one.digest.team if one.digest else "",
        page=page,
        document=f"{page}/document",
    )


def _told(one: Archived, page: Page) -> dict[str, Any]:
    answer = _answer(one, page.link)
    return {
        "row": answer,
        "made": moment(one.made_at),
        "known": one.digest is not None,
        "readers": ", ".join(one.digest.recipients) or "everybody whom its SLAs mail" if one.digest else "",
        "download": f"{answer.document}?download=true",
    }


def _form(one: Archived) -> dict[str, str]:
    """What the form of the digests' DAG takes to make this page again and mail it to one address."""
    if one.digest is None:
        return {}
    day = archive.first_day(one.digest, one.start)
    return {"digest": one.digest.name, "day": day, "send_to": "preview", "preview_to": "you@example.com"}
