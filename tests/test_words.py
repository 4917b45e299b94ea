"""What users read keeps to docs/reference/glossary.md: no name, description, error or page has a former word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "plugins/**/*.j2",
    "plugins/**/static/*.js",
    "plugins/**/static/pages.css",
    "expectations/*.json",
    "dags/*.yml",
    "docs/reference/kafka_sla.schema.json",
    "docs/how-to/kafka-sla-grafana.json",
)

WORDS = {
    r"excus(?:e|es|ed|ing)": "excluded",
    r"no_data": "unknown",
    r"closed": "recovered",
    r"attained_(?:records_)?ratio|records_attained": "attainment",
    r"look_ups|look-ups?|per_pass": "offset_lookups, max_per_hour, offset lookups",
    r"lateness": "freshness_alert",
    r"unread_expires_within": "min_time_to_expiry",
    r"grace_over": "grace_period_over",
    r"steady_throughout|records_over(?!_threshold)": "steady_whole_window, records_over_threshold",
    r"fetcher": "follower, fetcher_thread",
    r"cures?": "remediation, or what to do about it",
    r"told|tells?|telling": "reported, shown, e-mailed",
    r"asked": "requested",
    r"said": "reported",
    r"looks?": "poll, sample",
    r"dear": "expensive",
    r"stretch(?:es)?": "rollup, offset range",
    r"packs?": "block",
    r"SlaNow|PairNow|FlowNow|Cure|Summed|Attained": "the schema's name in the glossary",
    r"mistakes?": "error",
    r"promis(?:e[ds]?|ing)": "SLA, threshold, required",
}
"""Former word → what to write instead. Whole words only, `_` and `-` part words."""
_FORMER = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(WORDS)})(?![A-Za-z])")
_FORMER_STATES = re.compile(r"(?<=[\"'])(?:kept|late)(?=[\"'])")
"""Of SLAs, in the rooms that show them; today's are in the glossary."""
ALLOWED = re.compile(
    r"Promise\.all|clipboard closed|(?:kafka_replica|replica)[_-]fetcher\w*|fetcher_thread|fetcher thread|look at"
)
"""Kafka's own names, and English that means something else."""


def test_nothing_that_users_read_has_a_former_word() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word} in {text.strip()[:90]!r}: write {_instead(word)}"
        for path, line, text in _texts()
        for word in _former(text, path)
    ]
    assert found == []


def test_every_verdict_and_state_is_in_the_glossary() -> None:
    from typing import get_args

    from kafka_sla.model.entities import Verdict
    from kafka_sla.web.queries.schemas import State

    page = (ROOT / "docs/reference/glossary.md").read_text()
    names = {*get_args(Verdict), *get_args(State)}
    assert [name for name in sorted(names) if not re.search(rf"`[^`]*\b{name}\b[^`]*`", page)] == []


def _former(text: str, path: Path) -> Iterator[str]:
    allowed = ALLOWED.sub(" ", text)
    yield from (match.group() for match in _FORMER.finditer(allowed))
    if {"web", "reporting"} & set(path.parts):
        yield from (match.group() for match in _FORMER_STATES.finditer(allowed))


def _instead(word: str) -> str:
    return next((new for old, new in WORDS.items() if re.fullmatch(old, word)), "met, pending")


def _texts() -> Iterator[tuple[Path, int, str]]:
    """Every text that users read, line by line: of Python its literals and the docstrings that are shown."""
    for folder in ("plugins", "spark_jobs", "dags"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from ((path, line, text) for line, text in _literals(ast.parse(path.read_text()), path))
    for pattern in FILES:
        for path in sorted(ROOT.glob(pattern)):
            if "uPlot" not in path.name:
                yield from ((path, line, text) for line, text in enumerate(path.read_text().splitlines(), 1))


def _literals(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """Literals that are no docstrings; docstrings of DAGs, and of models, which schemas show; names of fields, models
    and tasks."""
    silent = {id(text) for node in ast.walk(tree) for text in _docstrings(node) if not _is_shown(node, path)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            for line, text in enumerate(node.value.splitlines()):
                yield node.lineno + line, f'"{text}"' if "\n" not in node.value else text
        elif isinstance(node, ast.ClassDef) and _is_model(node):
            yield node.lineno, node.name
            fields = (item for item in node.body if isinstance(item, ast.AnnAssign))
            yield from ((field.lineno, ast.unparse(field.target)) for field in fields)
        elif isinstance(node, ast.FunctionDef) and any("task" == _name(d) for d in node.decorator_list):
            yield node.lineno, node.name


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Texts that stand alone: docstrings of modules, classes and functions, and those below a value."""
    for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.value


def _is_shown(node: ast.AST, path: Path) -> bool:
    return (isinstance(node, ast.Module) and path.parent == ROOT / "dags") or (
        isinstance(node, ast.ClassDef) and _is_model(node)
    )


def _is_model(node: ast.ClassDef) -> bool:
    return any(_name(base) in ("BaseModel", "Section", "SlaDefaults", "Truncated") for base in node.bases)


def _name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.id if isinstance(target, ast.Name) else ""
