"""Whether a dotted path leads to a subclass of Airflow's BaseNotifier, judged by source text alone.

A team's SLA file names the path, and importing a module runs it. So the source is read first, and only a module whose
text defines or imports such a class is imported. Imports and runs nothing.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

from kafka_sla.errors import SettingsError

NOTIFIER_ALLOWED = (
    "a subclass of airflow.sdk.BaseNotifier that is installed here with its source, named by the module that defines it"
)
_BASES = frozenset(
    {
        "airflow.sdk.BaseNotifier",
        "airflow.sdk.bases.notifier.BaseNotifier",
        "airflow.notifications.basenotifier.BaseNotifier",
        "airflow.providers.common.compat.notifier.BaseNotifier",
        "airflow.providers.common.compat.sdk.BaseNotifier",
    }
)
"""Names of the class, some of which modules resolve only while they run."""


def verify_notifier(path: str) -> None:
    """Raise SettingsError unless the source says that the path is a subclass of BaseNotifier."""
    if path in _BASES or not _is_notifier(path, set()):
        raise SettingsError(f"{path} is not an Airflow notifier; allowed: {NOTIFIER_ALLOWED}")


def _is_notifier(path: str, seen: set[str]) -> bool:
    """Whether the path is BaseNotifier, a subclass of it, or another name of one. `seen` holds the paths looked at."""
    if path in _BASES:
        return True
    module, _, name = path.rpartition(".")
    if path in seen or not module:
        return False
    seen.add(path)
    return any(_is_notifier(target, seen) for target in _meanings(module, name))


def _meanings(module: str, name: str) -> Iterator[str]:
    """Paths that a module's source binds the name to: the bases of a class, or what an import or `a = b` refers to."""
    spec = _spec(module)
    tree = _tree(spec) if spec else None
    if spec is None or tree is None:
        return
    imported = list(_imports(tree.body, _package(spec)))
    for node in _statements(tree.body):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for base in node.bases:
                yield from _paths(_dotted(base), module, imported)
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            yield from _paths(_dotted(node.value), module, imported)
    yield from (target for bound, target in imported if bound == name)


def _paths(dotted: str, module: str, imported: list[tuple[str, str]]) -> Iterator[str]:
    """Every path that a dotted name in the module's text may stand for; a name may be imported in several ways."""
    first, dot, rest = dotted.partition(".")
    sources = [target for bound, target in imported if bound == first] or [f"{module}.{first}"]
    yield from (f"{source}{dot}{rest}" for source in sources if first)


def _dotted(node: ast.expr) -> str:
    """`a.b.C` of an expression; empty if it is anything else. Of `Base[T]` the part before the bracket."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Name):
        return node.id
    outer = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{outer}.{node.attr}" if isinstance(node, ast.Attribute) and outer else ""


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, also those inside `if`, `try` and `with`."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            inner = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            handlers = [line for handler in getattr(node, "handlers", []) for line in handler.body]
            yield from _statements([*inner, *handlers])


def _imports(body: Iterable[ast.stmt], package: str) -> Iterator[tuple[str, str]]:
    """Each imported name with the path that it stands for."""
    for node in _statements(body):
        if isinstance(node, ast.Import):
            yield from ((a.asname, a.name) if a.asname else (top := a.name.partition(".")[0], top) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((alias.asname or alias.name, f"{source}.{alias.name}") for alias in node.names)


def _tree(spec: ModuleSpec) -> ast.Module | None:
    """The parsed source; None for modules without readable source, such as compiled ones."""
    try:
        source = spec.loader.get_source(spec.name) if isinstance(spec.loader, InspectLoader) else None
        return None if source is None else ast.parse(source)
    except (ImportError, OSError, SyntaxError, ValueError, RecursionError):
        return None


def _package(spec: ModuleSpec) -> str:
    return spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]


def _spec(module: str) -> ModuleSpec | None:
    """Where a module's source is. Unlike `importlib.util.find_spec`, imports no parent package."""
    top, *rest = module.split(".")
    spec = _top_level(top)
    name = top
    for part in rest:
        places = _places(name, spec)
        name = f"{name}.{part}"
        spec = _below(name, places)
    return spec


def _top_level(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None


def _places(name: str, spec: ModuleSpec | None) -> list[str]:
    """The folders of a package. One that is imported already may have added some."""
    loaded = getattr(sys.modules.get(name), "__path__", None)
    if loaded is not None:
        return list(loaded)
    return list(spec.submodule_search_locations or []) if spec else []


def _below(name: str, places: Iterable[str]) -> ModuleSpec | None:
    """A module or package in one of these folders; else the namespace package that they form, if any."""
    folders: list[str] = []
    for place in places:
        finder = pkgutil.get_importer(place)
        spec = finder.find_spec(name) if finder else None
        if spec and spec.loader:
            return spec
        folders += list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = folders
    return namespace
