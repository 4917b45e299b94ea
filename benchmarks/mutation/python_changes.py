"""What can be wrong in Python: one comparison, operator, condition, filter, number or statement."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """Other text in the place of some of a module; offsets in bytes."""

    start: int
    end: int
    new: str


_COMPARISONS = {"<=": "<", "<": "<=", ">=": ">", ">": ">=", "==": "!=", "!=": "=="}
_WORDS = {"is not": "is", "is": "is not", "not in": "in", "in": "not in"}
_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "fmin": "fmax",
    "fmax": "fmin",
    "floor_time": "ceil_time",
    "ceil_time": "floor_time",
    "ceil": "floor",
    "floor": "ceil",
    "and_": "or_",
    "or_": "and_",
    "is_": "is_not",
    "is_not": "is_",
    "in_": "not_in",
    "not_in": "in_",
    "less": "less_equal",
    "less_equal": "less",
    "greater": "greater_equal",
    "greater_equal": "greater",
}
"""Functions and methods that are mistaken for each other."""
_DROPPED_METHODS = {"where", "order_by", "desc", "distinct", "limit", "with_for_update", "filter"}
"""Methods without which a query asks for something else."""
_ARGUMENTS = {"where", "and_", "or_", "filter"}
"""Functions of which each argument is a condition."""
_SILENT = ("annotation", "returns", "decorator_list", "type_params", "bases")
_TYPES = ("Literal", "Callable", "Sequence", "Mapping", "Generic")


class _Module:
    """The text of a module and where its nodes lie."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self.tree, self.text = tree, text
        self._raw = text.encode()
        self._lines = [0]
        for line in self._raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        return self._lines[first - 1] + start, self._lines[last - 1] + end

    def source(self, start: int, end: int) -> str:
        return self._raw[start:end].decode()

    def between(self, left: ast.AST, right: ast.AST, words: dict[str, str]) -> Iterator[Change]:
        """The operator between two nodes replaced by another one: longer words are looked for first."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source(start, end)
        for old in sorted(words, key=len, reverse=True):
            if old in gap:
                at = start + gap.index(old)
                yield Change(at, at + len(old), words[old])
                return

    def instead(self, node: ast.AST, new: str) -> Change:
        return Change(*self.span(node), new)


def span(node: ast.AST, text: str) -> tuple[int, int]:
    """Where a node lies in the text of its module, in bytes."""
    return _Module(ast.Module([], []), text).span(node)


def changes(tree: ast.Module, text: str) -> Iterator[Change]:
    """Each wrong thing of a module, but for its types, its decorators and its imports, which the checks read."""
    module = _Module(tree, text)
    for node in _behaviour(tree):
        for kind, found in _KINDS:
            if isinstance(node, kind):
                yield from found(module, node)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotation, decorator or import, and nothing that only says what would be an error; of
    f-strings Python does not say where their parts lie."""
    for name, value in ast.iter_fields(node):
        if name in _SILENT or (name == "args" and isinstance(node, ast.Call) and _name(node) == "limit"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST) and not _is_silent(one):
                yield one
                yield from _behaviour(one)


def _is_silent(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in _TYPES
    if isinstance(node, ast.keyword):
        return node.arg in ("strict", "zero_copy_only")
    return isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom)


def _comparison(module: _Module, node: ast.Compare) -> Iterator[Change]:
    for left, right in pairwise([node.left, *node.comparators]):
        yield from module.between(left, right, _COMPARISONS | _WORDS)


def _operation(module: _Module, node: ast.BinOp) -> Iterator[Change]:
    old, new = _OPERATORS.get(type(node.op), ("", ""))
    is_type = isinstance(node.right, ast.Constant) and node.right.value is None
    is_text = any(isinstance(one, ast.Constant | ast.JoinedStr) and _is_text(one) for one in (node.left, node.right))
    if old and not is_type and not is_text:
        yield from module.between(node.left, node.right, {old: new})


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _both(module: _Module, node: ast.BoolOp) -> Iterator[Change]:
    words = {"and": "or"} if isinstance(node.op, ast.And) else {"or": "and"}
    for left, right in pairwise(node.values):
        yield from module.between(left, right, words)


def _sign(module: _Module, node: ast.UnaryOp) -> Iterator[Change]:
    start, _ = module.span(node)
    yield Change(start, module.span(node.operand)[0], "")


def _number(module: _Module, node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield module.instead(node, str(not node.value))
    elif isinstance(node.value, int):
        yield module.instead(node, str(node.value + 1))
    elif isinstance(node.value, float):
        yield module.instead(node, str(node.value * 2 + 1))


def _condition(module: _Module, node: ast.If | ast.IfExp) -> Iterator[Change]:
    """The other way round, unless that is what another operator makes of it."""
    turned = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
    simple = isinstance(node.test, ast.Compare) and len(node.test.ops) == 1 and isinstance(node.test.ops[0], turned)
    if not simple and not isinstance(node.test, ast.UnaryOp):
        yield module.instead(node.test, f"not ({module.source(*module.span(node.test))})")


def _filter(module: _Module, node: ast.comprehension) -> Iterator[Change]:
    for one in node.ifs:
        yield module.instead(one, "True")


def _name(node: ast.Call) -> str:
    """The function or method that is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _call(module: _Module, node: ast.Call) -> Iterator[Change]:
    name, (_, end) = _name(node), module.span(node.func)
    if name in _NAMES:
        yield Change(end - len(name), end, _NAMES[name])
    if isinstance(node.func, ast.Attribute) and name in _DROPPED_METHODS and not _is_numpy(node.func):
        yield Change(module.span(node.func.value)[1], module.span(node)[1], "")
    if name in _ARGUMENTS and len(node.args) > 1 and not _is_numpy(node.func):
        for number in range(len(node.args)):
            yield _without(module, node.args, number)
    if name == "where" and len(node.args) == 3 and _is_numpy(node.func):
        first, second = (module.span(one) for one in node.args[1:])
        swapped = module.source(*second) + module.source(first[1], second[0]) + module.source(*first)
        yield Change(first[0], second[1], swapped)


def _is_numpy(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "np"


def _without(module: _Module, arguments: list[ast.expr], number: int) -> Change:
    """The call without one of its arguments."""
    (start, end), last = module.span(arguments[number]), number == len(arguments) - 1
    return (
        Change(module.span(arguments[-2])[1], end, "")
        if last
        else Change(start, module.span(arguments[number + 1])[0], "")
    )


def _side(module: _Module, node: ast.Constant) -> Iterator[Change]:
    others = {"left": "right", "right": "left"}
    if node.value in others:
        yield module.instead(node, f'"{others[node.value]}"')


def _statement(module: _Module, node: ast.stmt) -> Iterator[Change]:
    yield module.instead(node, "pass")


def _called(module: _Module, node: ast.Expr) -> Iterator[Change]:
    if isinstance(node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom):
        yield module.instead(node, "pass")


def _assigned(module: _Module, node: ast.Assign) -> Iterator[Change]:
    """What is kept inside something; without a name that others read, nothing would run at all."""
    if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
        yield module.instead(node, "pass")


def _again(module: _Module, node: ast.FunctionDef) -> Iterator[Change]:
    """A name of the function, or an argument of it, that is given another value later."""
    known = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    for one in node.body:
        targets = one.targets if isinstance(one, ast.Assign) else []
        names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        if names and names <= known and not isinstance(targets[0], ast.Subscript | ast.Attribute):
            yield module.instead(one, "pass")
        if isinstance(one, ast.Assign):
            known |= names
        known |= {one.target.id} if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) else set()


_KINDS: tuple[tuple[Any, Callable[[_Module, Any], Iterator[Change]]], ...] = (
    (ast.Compare, _comparison),
    (ast.BinOp, _operation),
    (ast.BoolOp, _both),
    (ast.UnaryOp, _sign),
    (ast.Constant, _number),
    (ast.Constant, _side),
    ((ast.If, ast.IfExp), _condition),
    (ast.comprehension, _filter),
    (ast.Call, _call),
    ((ast.AugAssign, ast.Continue, ast.Break), _statement),
    (ast.Expr, _called),
    (ast.Assign, _assigned),
    (ast.FunctionDef, _again),
)
