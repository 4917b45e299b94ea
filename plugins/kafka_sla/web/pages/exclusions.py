"""What the page of an SLA sends to exclude its time afterwards, and to take that back. Computes nothing."""

from __future__ import annotations

from urllib.parse import urlencode

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Exclusion
from kafka_sla.sla.exclusion_request import exclusion_request
from kafka_sla.text.timestamps import parse_instant
from kafka_sla.web.api.params import NamedSla, RequestContext
from kafka_sla.web.pages.date_ranges import field_text
from kafka_sla.web.pages.forms import FormFields
from kafka_sla.web.pages.response import Page, RequestPage

writing = APIRouter(include_in_schema=False)


@writing.post("/slas/{sla:path}/exclusions")
def exclude(context: RequestContext, sla: NamedSla, page: RequestPage, user: GetUserDep, form: FormFields) -> Response:
    """Exclude the time of an SLA that the form names."""
    try:
        time = parse_instant(form.get("from", "")), parse_instant(form.get("to", ""))
    except ValueError as error:
        raise BadRequest(f"from or to is {error}") from error
    wanted = exclusion_request(
        sla, time, form.get("reason", ""), user.get_name(), now=context.now, window_ms=context.settings.window_ms
    )
    return _shown(page, context.ledger.exclusions.add(wanted))


@writing.post("/exclusions/{exclusion_id}/undo")
def undo(context: RequestContext, exclusion_id: str, page: RequestPage, user: GetUserDep, form: FormFields) -> Response:
    """Take an exclusion back."""
    return _shown(page, context.ledger.exclusions.undo(exclusion_id, user.get_name(), form.get("reason", "")))


def _shown(page: Page, one: Exclusion) -> Response:
    """To the excluded time on the page of its SLA."""
    time = urlencode({"from": field_text(one.span.start), "to": field_text(one.span.end)})
    return RedirectResponse(f"{page.link(f'/slas/{one.sla}')}?{time}#exclusions", 303)
