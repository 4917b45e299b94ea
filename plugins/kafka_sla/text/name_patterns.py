"""Names that people select, exact, glob or regex, compiled to `Patterns`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

from kafka_sla.model.entities import Patterns
from kafka_sla.model.name_regex import NOT_INTERNAL, check_regex

PATTERN_ALLOWED = (
    "a name (orders), a glob (orders-*), a regex (/orders-[0-9]+/), or one of these after ! to leave it out"
)
REGEX_ALLOWED = (
    "Python's syntax without lookaround, backreferences, atomic groups and possessive repetition, because names are"
    " matched in linear time; to leave names out, add a pattern after !"
)


def parse_pattern(text: object, internal: bool = False) -> str:
    """One pattern (without !) as a regex that matches whole names; ValueError says what is wrong with it.

    A glob that begins with * or ? leaves out Kafka's internal topics, unless `internal`.
    """
    if not isinstance(text, str) or not text.strip() or text != text.strip():
        raise ValueError(f"not a pattern; allowed: {PATTERN_ALLOWED}")
    if text.startswith("/"):
        return _regex(text)
    glob = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in text)
    return glob if internal or text[0] not in "*?" else NOT_INTERNAL + glob


def parse_patterns(texts: Iterable[str]) -> Patterns:
    """Patterns of a list such as ["orders-*", "!orders-test"]; only exclusions means everything but these."""
    listed = list(texts)
    include = tuple(parse_pattern(text) for text in listed if not text.startswith("!"))
    exclude = tuple(parse_pattern(text[1:], internal=True) for text in listed if text.startswith("!"))
    return Patterns(include or (parse_pattern("*"),), exclude)


@cache
def written(patterns: Patterns) -> tuple[str, ...]:
    """The patterns as people write them: `payments-service`, `orders-*`, `/orders-[0-9]+/`, `!orders-test`."""
    chosen = [_written(regex, internal=False) for regex in patterns.include]
    return (*chosen, *(f"!{_written(regex, internal=True)}" for regex in patterns.exclude))


def is_exact(text: object) -> bool:
    """Is it one plain name rather than a glob, a regex or an exclusion?"""
    return isinstance(text, str) and text[:1] not in ("/", "!", "") and not set("*?") & set(text)


def literal(name: str) -> str:
    """The pattern that selects this name and no other."""
    return name if is_exact(name) and name == name.strip() else f"/{re.escape(name) or '(?:)'}/"


@cache
def plain_names(patterns: Patterns) -> tuple[str, ...] | None:
    """The names that are selected, where all of them are given plainly; None where one is a glob or a regex."""
    names = [re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL) for pattern in patterns.include]
    if [re.escape(name) for name in names] != list(patterns.include):
        return None
    return tuple(name for name in names if patterns.matches(name))


def selected(patterns: Patterns, names: Collection[str]) -> list[str]:
    """Those of the names that are selected. Plainly given ones are looked up: thousands are matched with hundreds."""
    plain = plain_names(patterns)
    if plain is None:
        return [name for name in names if patterns.matches(name)]
    return [name for name in plain if name in names]


def _written(regex: str, internal: bool) -> str:
    """The inverse of `parse_pattern`: a name or a glob where that means the same, else a regex between slashes."""
    body = regex.removeprefix(NOT_INTERNAL)
    glob = re.sub(r"\\(.)|(\.\*)|(\.)", lambda found: found[1] or ("*" if found[2] else "?"), body, flags=re.DOTALL)
    try:
        return glob if parse_pattern(glob, internal) == regex else f"/{regex}/"
    except ValueError:
        return f"/{regex}/"


def _regex(text: str) -> str:
    if len(text) < 3 or not text.endswith("/"):
        raise ValueError("not a regex between two slashes, such as /orders-[0-9]+/")
    try:
        check_regex(text[1:-1])
    except ValueError as error:
        raise ValueError(f"not a regex ({error}); allowed: {REGEX_ALLOWED}") from error
    return text[1:-1]
