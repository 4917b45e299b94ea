"""Regexes of names, matched in time that grows linearly with the name.

Python's `re` backtracks: a nested repetition such as `([a-z]+-?)+x` takes days on a name of 40 letters. Names come from
Kafka and from web requests, so anyone could hang a snapshot or a web server. The engine here is Rust's `regex` crate,
which comes with pydantic. It reads Python's dialect except for lookaround and backreferences.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

NOT_INTERNAL = "(?!__)"
"""At the start of a pattern: names that begin with two underscores, Kafka's internal ones, do not match."""
MAX_REGEX_LENGTH = 5_000
"""Characters of a regex that a person writes."""
_TOKENS = re.compile(
    r"(?P<word_edge>\\[<>])|(?P<end>\\Z)|\\."
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<possessive>(?:[*+?]|\{\d*(?:,\d*)?\})\+)"
    r"|.",
    re.DOTALL,
)
_NESTED_SET = re.compile(r"\[|--|&&|~~|\|\|")
_REASON = re.compile(r"error: (.+)")
_SIZE = re.compile(r"exceeds size limit")


def matches_name(pattern: str, name: str) -> bool:
    """Whether the pattern matches the whole name; a dot matches any character, also a line break."""
    rest = pattern.removeprefix(NOT_INTERNAL)
    if rest != pattern and name.startswith("__"):
        return False
    return _matcher(rest)(name)


def check_regex(pattern: str) -> None:
    """Raise ValueError unless Python and the linear-time engine both accept the regex and read it alike."""
    if len(pattern) > MAX_REGEX_LENGTH:
        raise ValueError(f"it has {len(pattern)} characters; allowed: {MAX_REGEX_LENGTH} at most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of sets that `_check_dialect` refuses
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error
    _check_dialect(pattern)
    try:
        _matcher(pattern)
    except SchemaError as error:
        raise ValueError(_reason(str(error))) from error


def _check_dialect(pattern: str) -> None:
    """Refuse what both engines accept but read differently. Python must have accepted the pattern before."""
    for token in _TOKENS.finditer(pattern):
        if token["word_edge"] is not None:
            raise ValueError(f"{token[0]} is ambiguous; write {token[0][1]} without the backslash")
        if token["end"] is not None:
            raise ValueError(r"\Z is not supported; leave it out, because patterns match whole names")
        if token["possessive"] is not None:
            raise ValueError(f"the possessive repetition {token[0]} is not supported; leave out its last +")
        if token["set"] is not None and _NESTED_SET.search(re.sub(r"\\.", "", token[0][1:-1])):
            raise ValueError(f"the set {token[0]} is ambiguous; put a backslash before each [, -, &, ~ and | in it")


def _reason(message: str) -> str:
    """The engine's reason without its drawing of the pattern."""
    if _SIZE.search(message):
        return "its repetitions are too large; use smaller counts"
    reason = _REASON.search(message)
    return reason[1] if reason else "the linear-time engine does not support it"


@lru_cache(maxsize=4096)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """The compiled pattern as a test of whole names; SchemaError where the engine does not support it."""
    schema = core_schema.str_schema(pattern=rf"(?s)\A(?:{pattern})\z", regex_engine="rust-regex")
    return SchemaValidator(schema).isinstance_python
