"""What can be wrong in SQL that stands in a string: one comparison, one word, one filter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.mutation.python_changes import Change

_SQL = re.compile(r"\b(?:SELECT|WHERE|FROM|JOIN|CASE|WHEN|FILTER|UNION|EXISTS|ORDER BY)\b|\b(?:greatest|least)\(")
_WORDS = {
    r"\bAND\b": "OR",
    r"\bOR\b": "AND",
    r"\bIS NOT NULL\b": "IS NULL",
    r"\bIS NULL\b": "IS NOT NULL",
    r"\bNOT (?!NULL|EXISTS)": "",
    r"\bNOT EXISTS\b": "EXISTS",
    r"\bDISTINCT (?!ON)": "",
    r"\bUNION ALL\b": "UNION",
    r"\bUNION\b(?! ALL)": "UNION ALL",
    r"\bLEFT JOIN\b": "JOIN",
    r"\bSEMI JOIN\b": "ANTI JOIN",
    r"\bANTI JOIN\b": "SEMI JOIN",
    r"\bDESC\b": "",
    r"\bmin\(": "max(",
    r"\bmax\(": "min(",
    r"\bleast\(": "greatest(",
    r"\bgreatest\(": "least(",
    r"\bbool_or\(": "bool_and(",
    r"\bbool_and\(": "bool_or(",
    r"\btrue\b": "false",
    r"\bfalse\b": "true",
    r"<=": "<",
    r">=": ">",
    r"(?<!<)<(?![<=>])": "<=",
    r"(?<![<=>-])>(?![=>])": ">=",
    r"(?<![<>=!:])=(?![=>])": "<>",
    r"<>": "=",
    r" \+ ": " - ",
    r" - ": " + ",
    r" \* ": " / ",
    r" / ": " * ",
}
_NUMBER = re.compile(r"(?<![\w.%])\d+(?![\w.%])")
_FILTERED = re.compile(r"\bFILTER \(")
_INSERTED = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_REMARK = re.compile(r"--[^\n]*|(?<=\()'[^']*'|'[^'\n]*'")


def is_sql(source: str) -> bool:
    """Is this string, as the module writes it, a piece of SQL?"""
    return bool(_SQL.search(source))


def sql_changes(source: str, *, is_format: bool) -> Iterator[Change]:
    """Each wrong thing; what an f-string inserts, remarks and texts stay as they are. Offsets in bytes."""
    begin = re.match(r"[a-zA-Z]*(\"\"\"|'''|\"|')", source)
    assert begin is not None
    kept = [(0, begin.end()), *(found.span() for found in _REMARK.finditer(source, begin.end()))]
    if is_format:
        kept += [found.span() for found in _INSERTED.finditer(source)]
    for start, end, new in _found(source):
        if not any(start < last and first < end for first, last in kept):
            yield Change(len(source[:start].encode()), len(source[:end].encode()), new)


def _found(source: str) -> Iterator[tuple[int, int, str]]:
    for pattern, new in _WORDS.items():
        for found in re.finditer(pattern, source):
            yield *found.span(), new
    for found in _NUMBER.finditer(source):
        yield *found.span(), str(int(found.group()) + 1)
    for found in _FILTERED.finditer(source):
        yield found.start(), _closing(source, found.end()), ""


def _closing(source: str, at: int) -> int:
    """Where the bracket that was opened before `at` is closed, and one on."""
    depth = 1
    while depth and at < len(source):
        depth += (source[at] == "(") - (source[at] == ")")
        at += 1
    return at
