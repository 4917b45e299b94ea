"""What is wrong with text that is no YAML: the line to look at, and what to do."""

from __future__ import annotations

import re

import yaml

_HINTS = (
    (r"character '\\t'", "indent with spaces, not with tabs"),
    (r"character '.' that cannot start", "put a value that begins with this character in quotes"),
    (
        r"an alias|an anchor|undefined alias",
        'put a value that begins with * or & in quotes, such as "*"; where it is in quotes, one before it is open',
    ),
    (
        r"mapping values are not allowed",
        "put a value with ': ' in it in quotes, begin all keys of a mapping in one column, and leave a blank after"
        " their colon",
    ),
    (r"could not find expected ':'", "write key: value, with a blank after the colon"),
    (
        r"expected <block end>",
        "begin all keys of a mapping, and each - of a list, in one column; where they do, a quote before it is open, or"
        " ends too early",
    ),
    (r"double-quoted scalar", "put a regex, or other text with \\, in 'single quotes'"),
    (r"a single document", "keep one document, without a line of ---"),
)
"""Parts of PyYAML's words, and what to do."""
_ELSE = "put a value with characters that mean something in YAML in quotes"


def syntax_mistake(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """The line, from 1, and a sentence."""
    began = error.context in ("while scanning a quoted scalar", "while scanning a simple key")
    mark = error.context_mark if began else error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    if error.context == "while scanning a quoted scalar":
        return line, "not YAML: a quote that opens on this line has no end; put one where the text ends"
    return line, f"not YAML: {error.problem or error.context}; {_hint(error)}"


def _hint(error: yaml.MarkedYAMLError) -> str:
    if (kind := re.search(r"a flow (sequence|mapping)", error.context or "")) and error.context_mark:
        bracket, line = "[" if kind[1] == "sequence" else "{", error.context_mark.line + 1
        return f"close the {bracket} of line {line}, put commas between its entries, or put the value in quotes"
    said = f"{error.context} {error.problem}"
    return next((hint for words, hint in _HINTS if re.search(words, said)), _ELSE)
