"""Texts of other services without the secrets that were sent to them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from html import escape
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "(hidden)"
_SHORTEST = 4
"""Characters of the shortest text that is hidden: shorter ones are in any sentence."""


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret replaced, also where it is written in another way: percent-encoded or decoded, as
    base64, or escaped for JSON or HTML."""
    written = {form for secret in secrets for form in _forms(secret) if len(form) >= _SHORTEST}
    for form in sorted(written, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield unquote(secret)
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    yield escape(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    encoded = base64.b64encode(secret.encode(errors="replace")).decode()
    yield from (encoded, encoded.rstrip("="))
