"""How much of a mail is shown: mail programs hide the end of one that is too long. Knows no figure and no template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_MOST_BYTES = 100_000
"""Of each part, text and HTML: Gmail hides what comes after 102 KB."""

E = TypeVar("E")


def fitting(extents: Iterable[E], *parts: Callable[[E], str]) -> tuple[E, list[str]]:
    """The first of the extents with which every part fits into a mail, the last where none does, and these parts. Each
    extent is shorter than the one before."""
    for extent in extents:
        texts = [part(extent) for part in parts]
        if all(len(text.encode()) <= _MOST_BYTES for text in texts):
            break
    return extent, texts


def down(number: int, least: int) -> Iterator[int]:
    """By a fifth at a time."""
    while number > least:
        yield number
        number = number * 4 // 5
    yield min(number, least)
