"""Modules that are imported when somebody asks one for something. Knows no module's name."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Late(ModuleType):
    """Stands for a module: `import` finds it, and the first question to it imports what it stands for. The standard
    library's own lazy module is asked by the next `import` already."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_late(*names: str) -> None:
    """What imports these modules from now on gets them, but they are read only when they are used. Those that are
    imported already, or not installed, are left alone."""
    for name in names:
        if name not in sys.modules and (spec := find_spec(name)):
            late = _Late(name)
            late.__spec__ = spec
            sys.modules[name] = late
