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

PACKAGES = (
    "errors network",
    "cache model object_stores",
    "parquet_files",
    "files sql",
    "text spark validation",
    "config",
    "sla sources",
    "ledger",
    "lake spark_jobs",
    "reporting",
    "notifications",
    "pipeline airflow_versions",
    "tasks web cli",
)
"""The packages of kafka_sla from the ground up, a floor a line. A package imports from the floors below it only."""

SPARK_JOBS_MAY_IMPORT = tuple(
    f"kafka_sla.{room}"
    for room in [
        "cache",
        "errors",
        "files",
        "model",
        "object_stores",
        "parquet_files",
        "spark",
        "validation",
        "spark_jobs",
    ]
)

OUTSIDE: dict[str, tuple[str, ...]] = {
    "airflow": (
        "kafka_sla.airflow_versions",
        "kafka_sla.tasks",
        "kafka_sla.web",
        "kafka_sla_plugin",
        "dags",
        "tests",
        "demo",
        "benchmarks",
    ),
    "confluent_kafka": ("benchmarks", "demo", "tests"),
    "duckdb": ("kafka_sla.sql", "benchmarks", "tests"),
    "fastapi": ("kafka_sla.web",),
    "great_expectations": ("kafka_sla.validation",),
    "gssapi": ("kafka_sla.sources.kafka.login.kerberos",),
    "kafka": ("kafka_sla.sources.kafka", "demo", "tests"),
    "matplotlib": ("kafka_sla.reporting.charts", "benchmarks", "tests"),
    "prometheus_client": ("kafka_sla.sources.jmx_exporters", "tests"),
    "pyiceberg": ("kafka_sla.lake", "kafka_sla.object_stores", "tests"),
    "pyspark": ("kafka_sla.spark_jobs", "kafka_sla.validation", "benchmarks", "tests"),
    "requests": (
        "kafka_sla.lake.catalogs",
        "kafka_sla.network",
        "kafka_sla.notifications.webhooks.webhook",
        "kafka_sla.sources",
        "tests",
    ),
    "smtplib": ("kafka_sla.notifications.smtp", "kafka_sla.notifications.smtp_login", "tests"),
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
        prefix = {"plugins": "", "spark_jobs": "kafka_sla.spark_jobs.", "expectations": "kafka_sla.expectations."}
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = prefix.get(folder, f"{folder}.") + ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
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


def _floor(module: str) -> int | None:
    """Floor of a module of kafka_sla; None for others, for the package itself and for the suites, which are data."""
    parts = module.split(".")
    if parts[0] != "kafka_sla" or len(parts) == 1 or parts[1] == "expectations":
        return None
    return next(floor for floor, rooms in enumerate(PACKAGES) if parts[1] in rooms.split())


def _folder(module: str) -> str:
    """The package that a module lies in, or is."""
    return module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]


def test_every_folder_of_the_library_has_a_place_in_the_order() -> None:
    library = ROOT / "plugins" / "kafka_sla"
    rooms = {p.stem for p in library.iterdir() if p.is_dir() or p.suffix == ".py"} - {"__init__", "__pycache__"}

    assert rooms - {"expectations"} == set(" ".join(PACKAGES).split())


def test_imports_run_one_way() -> None:
    wrong = []
    for statement in imports():
        importer, target = _floor(statement.importer), _floor(statement.target)
        same_room = statement.importer.split(".")[:2] == statement.target.split(".")[:2]
        if importer is not None and target is not None and not same_room and target >= importer:
            wrong.append(str(statement))
        if statement.importer.startswith("kafka_sla") and _within(statement.target, ("dags", "demo", "tests")):
            wrong.append(str(statement))
    assert wrong == []


def test_no_two_packages_import_each_other() -> None:
    library = {m for m in modules() if m.startswith("kafka_sla.")}
    graph: dict[str, set[str]] = {_folder(m): set() for m in library}
    for statement in imports():
        if {statement.importer, statement.target} <= library:
            graph[_folder(statement.importer)].add(_folder(statement.target))
    graph = {folder: targets - {folder} for folder, targets in graph.items()}
    while leaves := [folder for folder, targets in graph.items() if not targets & set(graph)]:
        graph = {folder: targets for folder, targets in graph.items() if folder not in leaves}
    # The library's root holds single modules (errors, files), each of which imports those before it.
    assert graph.keys() - {"kafka_sla"} == set()


def test_a_package_is_entered_without_loading_its_modules() -> None:
    """Spark's tasks and the parsing of DAGs import through every `__init__`; one that defines a name is a module."""
    inits = {m: p for m, p in modules().items() if p.name == "__init__.py" and m != "kafka_sla"}

    assert [m for m, path in inits.items() if len(ast.parse(path.read_text()).body) > 1] == []


def test_a_package_holds_two_to_seventeen_modules() -> None:
    rooms: dict[str, int] = {}
    for module, path in modules().items():
        if module.startswith("kafka_sla.") and path.name != "__init__.py" and "migrations" not in path.parts:
            rooms[_folder(module)] = rooms.get(_folder(module), 0) + 1

    assert {room: size for room, size in rooms.items() if not 2 <= size <= 17} == {}


def test_no_two_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {m: set() for m in modules()}
    for one in imports():
        if one.target in graph and one.target != one.importer:
            graph[one.importer].add(one.target)
    while leaves := [m for m, targets in graph.items() if not targets]:
        graph = {m: targets - set(leaves) for m, targets in graph.items() if m not in leaves}
    assert graph == {}


def test_spark_jobs_know_nouns_and_suites_only() -> None:
    library = [s for s in imports() if s.importer.startswith("kafka_sla.spark_jobs") and _floor(s.target) is not None]

    assert [str(statement) for statement in library if not _within(statement.target, SPARK_JOBS_MAY_IMPORT)] == []


@pytest.mark.parametrize("package", sorted(OUTSIDE))
def test_every_outside_world_has_one_door(package: str) -> None:
    asked = [one for one in imports() if _within(one.target, (package,)) and one.target not in modules()]

    assert [str(one) for one in asked if not _within(one.importer, OUTSIDE[package])] == []


_DOCUMENTED = ("kafka.errors", "kafka.net.sasl.oauth")
"""What kafka-python documents of what is used: its errors, and the class that own token providers extend."""


def test_what_kafka_python_does_not_document_is_used_in_one_module() -> None:
    library = [one for one in imports() if one.importer.startswith("kafka_sla.") and _within(one.target, ("kafka",))]
    beyond = [one for one in library if not _within(one.target, _DOCUMENTED)]

    assert {one.importer for one in beyond} == {"kafka_sla.sources.kafka.protocol.kafka_python"}


def test_great_expectations_and_spark_are_imported_late_in_suites() -> None:
    slow = [one for one in imports() if one.importer == "kafka_sla.validation.suites" and one.at_import_time]

    late = ("great_expectations", "pyspark", "kafka_sla.validation.expectation_types")
    assert [str(one) for one in slow if _within(one.target, late)] == []


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


def test_every_metric_has_its_five_files() -> None:
    """The fifth is model/tables.py, which holds its contract."""
    rooms = ("spark_jobs/{}.py", "expectations/{}.json", "tests/spark_jobs/test_{}.py", "docs/reference/{}.md")
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
