"""How much of a mail is shown: mail programs hide the end of one that is too long."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_MOST_BYTES = 100_000
"""Of each part, text and HTML: Gmail hides what comes after 102 KB."""

E = TypeVar("E")


def fitting(series: Iterable[Iterable[E]], *parts: Callable[[E], str]) -> tuple[E, list[str]]:
    """The first extent with which every part fits into a mail, the last where none does, and these parts. In a series
    each is shorter than the one before; the next series is for when not even the last of one fits."""
    texts: list[str] = []

    def fits(extent: E) -> bool:
        texts[:] = [part(extent) for part in parts]
        return all(len(text.encode()) <= _MOST_BYTES for text in texts)

    for each in map(list, series):
        if fits(found := each[0]):
            break
        place = bisect_left(each, True, 1, key=fits)
        if fits(found := each[min(place, len(each) - 1)]):
            break
    return found, texts


def down(number: int, least: int) -> Iterator[int]:
    """By a fifth at a time."""
    while number > least:
        yield number
        number = number * 4 // 5
    yield min(number, least)
