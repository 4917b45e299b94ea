"""The application that Airflow's web server mounts: every figure behind one right, strict headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import is_safe_url
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exception_handlers import request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from kafka_sla import __version__
from kafka_sla.errors import BadRequest, KafkaSlaError
from kafka_sla.web.access import DAG, may_read, may_scrape, may_triage, note_rights
from kafka_sla.web.api import downloads, prometheus
from kafka_sla.web.api import routes as api
from kafka_sla.web.head_requests import HeadAsGet
from kafka_sla.web.pages import dependencies, exclusions, misses, reports
from kafka_sla.web.pages import routes as pages
from kafka_sla.web.pages.response import Page

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
DAMAGED = "Kafka-Sla-Damaged-Files"
"""How many files of the table store were left out of the answer, because they cannot be read."""


def create_app() -> FastAPI:
    """All routes. FastAPI's own pages stay closed: the OpenAPI document is a route like the others."""
    app = FastAPI(
        title="kafka_sla",
        version=__version__,
        description="What SLAs require, what was measured, what was missed.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.include_router(pages.files)
    app.include_router(prometheus.router, dependencies=[Depends(may_scrape)])
    for one in (downloads, api, reports, dependencies):
        app.include_router(one.router, dependencies=[Depends(may_read)])
    for one in (misses, pages):
        app.include_router(one.router, dependencies=[Depends(may_read), Depends(note_rights)])
    for one in (misses, exclusions):
        app.include_router(one.writing, dependencies=[Depends(may_triage)])

    @app.get("/api/v1/openapi.json", include_in_schema=False, dependencies=[Depends(may_read)])
    def openapi() -> dict[str, Any]:
        return app.openapi()

    app.add_middleware(GZipMiddleware, minimum_size=2_000, compresslevel=2)
    app.middleware("http")(_headers)
    app.add_middleware(HeadAsGet)
    app.exception_handler(KafkaSlaError)(_broken)
    app.exception_handler(HTTPException)(_refused)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(Exception)(_defect)
    return app


async def _headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    has_nul = "\0" in request.url.path or "%00" in request.url.query
    response = (
        _told(request, 400, "the address holds a NUL, which no name has") if has_nul else await call_next(request)
    )
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if damaged := getattr(request.state, "damaged", None):
        response.headers[DAMAGED] = str(len(damaged))
    return response


async def _broken(request: Request, error: Exception) -> Response:
    """What is wrong and what to do, as every error of this project says; the cause is never the asker's."""
    return _told(request, 400 if isinstance(error, BadRequest) else 503, str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _told(request, error.status_code, str(error.detail), error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """A parameter that is none: which, and what is allowed."""
    assert isinstance(error, RequestValidationError)
    if not _for_people(request):
        return await request_validation_exception_handler(request, error)
    said = (f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
    return _told(request, 422, "; ".join(said))


async def _defect(request: Request, error: Exception) -> Response:
    """What nobody foresaw; it is raised again afterwards, so that the server's log has it whole."""
    told = f"this is a defect of kafka_sla ({type(error).__name__}); the web server's log says more"
    return _told(request, 500, told, HEADERS)


def _told(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """For programs as JSON; for people as a page, which lets strangers log in."""
    if not _for_people(request):
        return JSONResponse({"detail": detail}, status, headers)
    page, reading = Page(request), request.method == "GET"
    title, login = _TITLES.get(status, "This did not work"), None
    if status == 401 or detail == _NO_SESSION:
        title, detail = "Please log in", "you are not logged in, or not any more"
        back = page.here if reading else request.headers.get("referer", "")
        login = get_auth_manager().get_url_login(next_url=back if _is_safe(back, request) else page.airflow("/"))
    elif detail == _NO_RIGHT:
        title = "You may not see this" if reading else "You may not do this"
        detail = f"it needs the right to {'read' if reading else 'edit'} the DAG {DAG} in Airflow"
    response = page.html("refused", status, title=title, detail=detail, login=login)
    response.headers.update(headers or {})
    return response


def _is_safe(address: str, request: Request) -> bool:
    """Whether a login may lead back there: to Airflow and nowhere else."""
    try:
        return bool(address) and is_safe_url(address, request)
    except ValueError:
        return False


def _for_people(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


_NO_SESSION = "Invalid JWT token"
"""What Airflow says, with 403, of a session that was ended or that another secret signed: a new login helps."""
_NO_RIGHT = "Forbidden"
"""What Airflow says to a user without the right."""
_TITLES = {
    403: "You may not do this",
    404: "Not found",
    422: "A parameter is not valid",
    503: "The figures cannot be read",
}
