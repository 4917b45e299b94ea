"""What a form of these pages sends, and only such a form. Knows no field."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, HTTPException, Request


async def _fields(request: Request) -> dict[str, str]:
    """A browser says where the page was that sends a form."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "this is written on its own page, not from another site")
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: values[-1].strip() for name, values in fields.items()}


FormFields = Annotated[dict[str, str], Depends(_fields)]
