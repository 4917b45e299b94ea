"""The house rules that a program can check. The source text is read, never imported: nothing has to be installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("plugins", "spark_jobs", "expectations", "dags", "demo", "tests", "benchmarks")

FLOORS: tuple[dict[str, str], ...] = (
    {
        "nouns": "errors model tables arrow job durations instants patterns wording progress stretches text_table",
    },
    {
        "submission": "spark_code spark_conf",
    },
    {
        "settings": "connections maintenance settings settings_clusters settings_mistakes settings_rules"
        " settings_schema settings_values yaml_lines",
        "store address": "store",
    },
    {
        "kafka": "kafka",
        "exporters": "exporters",
        "connect": "connect",
        "checkpoints": "checkpoints",
        "store": "database digest_ledger export fact_loads iceberg import_facts lake lateness_ledger ledger"
        " ledger_tables ledger_views observed_ledger outbox parquet_rows publications rollup settling sla_figures"
        " sla_ledger staging steady_rules stretch_ledger validation_ledger warehouse",
        "suites": "suites suite_rules",
        "judging": "attainment evidence lost_commits miss_causes miss_figures miss_sentences miss_surroundings sla"
        " window_figures",
    },
    {"charts": "charts", "rendering": "rendering", "digest periods": "digest_periods"},
    {"report": "report"},
    {"digest": "digest"},
    {"notify": "digest_mail late_mail mail notify"},
    {"archive": "archive"},
    {"pipeline": "digests elsewhere explaining lateness pipeline preparation reach summing unread"},
    {
        "tasks": "tasks",
        "web": "web",
        "cli": "arguments check cli runs spark_submit status workplace",
        "table docs": "table_docs",
    },
)
"""Rooms of plugins/kafka_sla from the ground up. A room imports from the floors below it; never from its own floor."""

SPARK_MAY_IMPORT = {f"kafka_sla.{noun}" for noun in ("model", "tables", "arrow", "job", "suites", "warehouse")}

OUTSIDE: dict[str, tuple[str, ...]] = {
    "airflow": ("kafka_sla.tasks", "kafka_sla.web", "kafka_sla_plugin", "dags", "tests", "demo", "benchmarks"),
    "confluent_kafka": ("benchmarks", "demo", "tests"),
    "fastapi": ("kafka_sla.web",),
    "great_expectations": ("kafka_sla.validation.suites", "kafka_sla.validation.expectation_types"),
    "kafka": ("kafka_sla.sources.kafka", "demo", "tests"),
    "matplotlib": ("kafka_sla.reporting.charts", "benchmarks", "tests"),
    "prometheus_client": ("kafka_sla.sources.jmx_exporters", "kafka_sla.web.api.prometheus", "tests"),
    "pyiceberg": ("kafka_sla.lake.lake", "kafka_sla.lake.iceberg", "kafka_sla.lake.table_maintenance", "tests"),
    "pyspark": (
        "spark_jobs",
        "kafka_sla.validation.suites",
        "kafka_sla.validation.expectation_types",
        "benchmarks",
        "tests",
    ),
    "requests": ("kafka_sla.sources.connect_rest", "kafka_sla.sources.jmx_exporters", "tests"),
    "smtplib": ("kafka_sla.notifications.smtp", "tests"),
}
"""The one door to each outside world: package → who may import it."""


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement."""

    importer: str
    target: str
    line: int
    at_import_time: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the project by the name that others import it by."""
    found = {}
    for folder in SOURCES:
        prefix = "" if folder == "plugins" else f"{folder}."
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = prefix + ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    return tuple(one for name, path in modules().items() for one in _imports_of(name, ast.parse(path.read_text())))


def _imports_of(name: str, tree: ast.Module) -> Iterator[Import]:
    late = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)}
    late |= {id(n) for f in ast.walk(tree) if isinstance(f, ast.If) and _typing_only(f) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno, id(node) not in late)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(name, inner if inner in modules() else str(node.module), node.lineno, id(node) not in late)


def _typing_only(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _within(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def _room(module: str) -> tuple[int, str] | None:
    """Floor and room of a module of kafka_sla; None for others and for the package itself."""
    parts = module.split(".")
    if parts[0] != "kafka_sla" or len(parts) == 1:
        return None
    for floor, rooms in enumerate(FLOORS):
        for room, names in rooms.items():
            if parts[1] in names.split():
                return floor, room
    return len(FLOORS), "no room"


def test_every_module_has_a_room() -> None:
    assert [m for m in modules() if (room := _room(m)) and room[1] == "no room"] == []


def test_imports_run_one_way() -> None:
    wrong = []
    for one in imports():
        mine, theirs = _room(one.importer), _room(one.target)
        if mine and theirs and mine != theirs and theirs[0] >= mine[0]:
            wrong.append(f"{one} ({mine[1]} → {theirs[1]})")
        if one.importer.startswith("kafka_sla") and _within(one.target, ("spark_jobs", "dags", "demo", "tests")):
            wrong.append(str(one))
    assert wrong == []


def test_no_two_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {m: set() for m in modules()}
    for one in imports():
        if one.target in graph and one.target != one.importer:
            graph[one.importer].add(one.target)
    while leaves := [m for m, targets in graph.items() if not targets]:
        graph = {m: targets - set(leaves) for m, targets in graph.items() if m not in leaves}
    assert graph == {}


def test_spark_jobs_know_nouns_and_suites_only() -> None:
    allowed = (*SPARK_MAY_IMPORT, "kafka_sla.errors")
    asked = [one for one in imports() if one.importer.startswith("spark_jobs") and one.target.startswith("kafka_sla")]
    # `from kafka_sla import suites` names the module; the package itself holds the version only.
    assert [str(one) for one in asked if not _within(one.target, allowed)] == []


@pytest.mark.parametrize("package", sorted(OUTSIDE))
def test_every_outside_world_has_one_door(package: str) -> None:
    asked = [one for one in imports() if _within(one.target, (package,)) and one.target not in modules()]

    assert [str(one) for one in asked if not _within(one.importer, OUTSIDE[package])] == []


def test_great_expectations_and_spark_are_imported_late_in_suites() -> None:
    slow = [one for one in imports() if one.importer == "kafka_sla.validation.suites" and one.at_import_time]

    assert [
        str(one) for one in slow if _within(one.target, ("great_expectations", "pyspark", "kafka_sla.validation.expectation_types"))
    ] == []


def test_every_module_says_what_it_holds() -> None:
    """Tests are named in sentences and need none."""
    product = {m: path.read_text() for m, path in modules().items() if not _within(m, ("tests",))}
    silent = [m for m, text in product.items() if text.strip() and not ast.get_docstring(ast.parse(text))]

    assert silent == []


def test_no_module_is_named_after_nothing() -> None:
    empty_words = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}

    assert [m for m in modules() if empty_words & set(re.split(r"[._]", m))] == []


def _tables() -> dict[str, str]:
    """Table name → kind, from the calls `Table("name", "kind", …)` of tables.py."""
    tree = ast.parse((ROOT / "plugins/kafka_sla/model/tables.py").read_text())
    calls = [
        n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "Table"
    ]
    return {ast.literal_eval(call.args[0]): ast.literal_eval(call.args[1]) for call in calls}


def test_every_metric_has_its_four_rooms() -> None:
    rooms = ("spark_jobs/{}.py", "expectations/{}.json", "tests/spark_jobs/test_{}.py")
    metrics = [name for name, kind in _tables().items() if kind == "metric"]

    assert metrics, "no Table(…, 'metric', …) found in tables.py"
    assert [room.format(name) for name in metrics for room in rooms if not (ROOT / room.format(name)).is_file()] == []


def test_every_fact_is_guarded_and_every_suite_guards_a_table() -> None:
    guarded = {path.stem for path in (ROOT / "expectations").glob("*.json")}

    assert guarded == {name for name, kind in _tables().items() if kind in ("fact", "metric")}


def test_nothing_names_a_registry_or_a_machine() -> None:
    """Where packages come from is the installer's business; a path of one machine works on no other."""
    hosts = ("pypi" + ".org", "pythonhosted" + ".org", "maven" + ".org", "maven.apache" + ".org", "npmjs" + ".org")
    path = re.compile(r"(?<![\w.$}])/(?:root|work|home/\w+|Users/\w+|private/tmp)/\w")
    found = []
    for file in _texts():
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if path.search(line) or any(host in line for host in hosts):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert found == []


def _texts() -> Iterator[Path]:
    made = {
        ".git",
        ".venv",
        ".work",
        ".cache",
        "dist",
        "build",
        "__pycache__",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
    }
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT).parts
        if (
            path.is_file()
            and not made & set(inside)
            and path.suffix not in (".png", ".pyc", ".parquet", ".whl", ".zip")
        ):
            yield path
