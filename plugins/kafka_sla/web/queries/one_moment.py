"""Routes all of whose answer is read at one moment."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from fastapi.routing import APIRoute


class OneMoment(APIRoute):
    """Of a function that only reads: what it reads of the ledger of its `context` is of one moment, over one
    connection. A page of an SLA would open two dozen, and could show a miss beside figures from before it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        reads = "context" in inspect.signature(endpoint).parameters
        super().__init__(path, _at_one_moment(endpoint) if reads else endpoint, **options)


def _at_one_moment(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(endpoint)
    def answered(*args: Any, **named: Any) -> Any:
        with named["context"].ledger.at_one_moment():
            return endpoint(*args, **named)

    # with types, not their names, which FastAPI would look up in this module
    answered.__signature__ = inspect.signature(endpoint, eval_str=True)  # type: ignore[attr-defined]
    return answered
