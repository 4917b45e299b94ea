"""What a form of these pages sends, and only such a form. Knows no field."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, HTTPException, Request


async def _fields(request: Request) -> dict[str, str]:
    if not _from_here(request):
        raise HTTPException(403, "this is written on its own page, not from another site")
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: _text(name, values[-1]) for name, values in fields.items()}


def _text(name: str, value: str) -> str:
    """What was written, with line ends as they are here: browsers send CR LF."""
    if "\0" in value:
        raise HTTPException(400, f"{name} holds a NUL, which no text has; take it out")
    return value.replace("\r\n", "\n").strip()


def _from_here(request: Request) -> bool:
    """A browser says whether the page that sends a form was of this site; over plain HTTP, which host it was of. Who
    says neither is no browser, and was led here by nobody."""
    told = request.headers
    if "sec-fetch-site" in told:
        return told["sec-fetch-site"] == "same-origin"
    if "origin" in told:
        return urlsplit(told["origin"]).netloc in (told.get("host"), told.get("x-forwarded-host"))
    return True


FormFields = Annotated[dict[str, str], Depends(_fields)]
