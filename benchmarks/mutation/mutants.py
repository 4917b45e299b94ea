"""The mutants of a module: what its text becomes when one thing in it is wrong."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.mutation.python_changes import Change, changes, span
from benchmarks.mutation.sql_changes import is_sql, sql_changes


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong thing in one module."""

    module: str
    """Its path in the repository."""
    line: int
    text: str
    """The whole module with it."""
    diff: str
    """The lines that differ, without their indentation: `- ` and `+ `."""

    def __str__(self) -> str:
        return f"{self.module}:{self.line}\n{self.diff}"


def mutants(module: str, text: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines; those that are no Python are none."""
    found: dict[str, Mutant] = {}
    for change in sorted(_changes(text), key=lambda one: (one.start, one.end, one.new)):
        mutated = _applied(text, change)
        if mutated not in found and mutated != text and _is_python(mutated):
            line = text.encode()[: change.start].count(b"\n") + 1
            found[mutated] = Mutant(module, line, mutated, _diff(text, mutated))
    return list(found.values())


def _changes(text: str) -> Iterator[Change]:
    tree = ast.parse(text)
    yield from changes(tree, text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        whole = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if whole and id(node) not in docstrings and (isinstance(node, ast.JoinedStr) or id(node) not in inside):
            yield from _of_sql(node, text)


def _of_sql(node: ast.expr, text: str) -> Iterator[Change]:
    source = ast.get_source_segment(text, node) or ""
    if is_sql(source):
        start, _ = span(node, text)
        for change in sql_changes(source, is_format=isinstance(node, ast.JoinedStr)):
            yield Change(start + change.start, start + change.end, change.new)


def _applied(text: str, change: Change) -> str:
    raw = text.encode()
    return (raw[: change.start] + change.new.encode() + raw[change.end :]).decode()


def _is_python(text: str) -> bool:
    try:
        compile(text, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True


def _diff(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(f"{one[0]} {one[1:].strip()}" for one in list(lines)[2:] if one[0] in "+-")
