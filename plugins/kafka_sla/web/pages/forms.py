"""What a form of these pages sends, and only such a form."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, HTTPException, Request

_MAX_BYTES = 64 * 1024
"""Of a form: its longest text has 4,000 characters, each of which takes 12 bytes at most."""
_MAX_FIELDS = 20


async def _fields(request: Request) -> dict[str, str]:
    if not _from_here(request):
        raise HTTPException(403, "this is written on its own page, not from another site")
    body = (await _read_body(request)).decode("utf-8", "replace")
    try:
        fields = parse_qs(body, max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise HTTPException(400, f"a form of these pages has {_MAX_FIELDS} fields at most") from error
    return {name: _text(name, values[-1]) for name, values in fields.items()}


async def _read_body(request: Request) -> bytes:
    """The body; 413 as soon as it is longer than any form, and before it is read where it says so itself."""
    too_long = HTTPException(413, f"a form of these pages has {_MAX_BYTES} bytes at most")
    length = request.headers.get("content-length", "0")
    if not re.fullmatch(r"[0-9]{1,18}", length) or int(length) > _MAX_BYTES:
        raise too_long
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise too_long
    return bytes(body)


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
        try:
            origin = urlsplit(told["origin"]).netloc
        except ValueError:
            return False
        return origin in (told.get("host"), told.get("x-forwarded-host"))
    return True


FormFields = Annotated[dict[str, str], Depends(_fields)]
