"""One request's page: links that work wherever Airflow is mounted, templates, files."""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from kafka_sla.airflow_versions import airflow_address
from kafka_sla.reporting.templates import render

STATIC = Path(__file__).parents[1] / "static"
PREFIX = "/kafka-sla"
NAVIGATION = (
    ("/", "Overview"),
    ("/misses", "Misses"),
    ("/unread", "Unread records"),
    ("/brokers", "Brokers"),
    ("/replication", "Replication"),
    ("/quality", "Data quality"),
    ("/coverage", "Coverage"),
    ("/reports", "Reports"),
)


class Page:
    """What templates need to know of the request."""

    def __init__(self, request: Request) -> None:
        self._root = request.scope.get("root_path", "").rstrip("/")
        self._path = request.url.path.removeprefix(self._root) or "/"
        self._state = request.state
        self._asked = request.url

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        shared = {"link": self.link, "file": self.file_link, "navigation": self._navigation(), "path": self._path}
        shared["damaged"] = getattr(self._state, "damaged", [])
        shared["may_triage"] = getattr(self._state, "may_triage", False)
        return HTMLResponse(render(f"web/{template}.html.j2", values, **shared), status)

    def link(self, path: str, /, **query: Any) -> str:
        """The address of a page or an API route; names may hold anything."""
        asked = urlencode({key: value for key, value in query.items() if value not in ("", None)})
        return f"{self._root}{quote(path)}" + (f"?{asked}" if asked else "")

    def airflow(self, path: str) -> str:
        """The address of a page of Airflow's own."""
        return f"{self._root.removesuffix(PREFIX)}{quote(path)}"

    def outside(self, base_url: str | None) -> str:
        """Airflow's address for what is read elsewhere: as configured here or in Airflow, else as it was asked for,
        which behind a proxy may be one that only the proxy knows."""
        asked_for = f"{self._asked.scheme}://{self._asked.netloc}{self._root.removesuffix(PREFIX)}"
        return airflow_address(base_url) or asked_for

    @property
    def here(self) -> str:
        """The address of this page below the host, which whoever asked knows best."""
        return self._asked.path + (f"?{self._asked.query}" if self._asked.query else "")

    def file_link(self, name: str) -> str:
        return f"{self._root}/static/{name}?v={_digest(name)}"

    def file(self, name: str, *, keep: bool) -> Response:
        if name not in _names():
            raise HTTPException(404, f"there is no file {name}")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        kept = {"Cache-Control": "private, max-age=31536000, immutable"} if keep else {}
        return Response((STATIC / name).read_bytes(), media_type=kind, headers=kept)

    def _navigation(self) -> list[dict[str, Any]]:
        current = "/" if self._path.startswith(("/slas", "/teams")) else self._path
        return [
            {
                "href": self.link(path),
                "name": name,
                "here": current == path or (path != "/" and current.startswith(path + "/")),
            }
            for path, name in NAVIGATION
        ]


RequestPage = Annotated[Page, Depends(Page)]


@cache
def _names() -> frozenset[str]:
    return frozenset(path.name for path in STATIC.iterdir() if path.is_file())


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
