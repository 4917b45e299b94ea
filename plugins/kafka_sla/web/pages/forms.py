"""What a form of these pages sends, and only such a form. Knows no field."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, HTTPException, Request


async def _fields(request: Request) -> dict[str, str]:
    if not _from_here(request):
        raise HTTPException(403, "this is written on its own page, not from another site")
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: values[-1].strip() for name, values in fields.items()}


def _from_here(request: Request) -> bool:
    """A browser says whether the page that sends a form was of this site; over plain HTTP, which host it was of. Who
    says neither is no browser, and was led here by nobody."""
    site, origin = (request.headers.get(name) for name in ("sec-fetch-site", "origin"))
    if site is not None or origin is None:
        return site in (None, "same-origin")
    return urlsplit(origin).netloc in {request.headers.get(name) for name in ("host", "x-forwarded-host")}


FormFields = Annotated[dict[str, str], Depends(_fields)]
