"""The order in which people expect names: team 2 before team 10, whatever the case."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

NaturalKey: TypeAlias = tuple[tuple[str | int, ...], str]
_NUMBERS = re.compile(r"([0-9]+)")


@lru_cache(maxsize=20_000)
def natural(name: str) -> NaturalKey:
    """The key to sort names by: numbers in them count by their value. Different names have different keys."""
    words = _NUMBERS.split(name.casefold())  # text and numbers take turns, so that like is compared with like
    return tuple(part for place, word in enumerate(words) for part in (_value(word) if place % 2 else (word,))), name


def _value(digits: str) -> tuple[int, str]:
    """Sorts as the number does. Not `int`, which refuses more digits than 4,300: clients may call themselves so."""
    significant = digits.lstrip("0")
    return len(significant), significant
