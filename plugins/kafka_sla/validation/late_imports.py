"""Modules that are imported when somebody asks one for something."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any

_TAKING_ITS_PLACE = Lock()


class _Late(ModuleType):
    """Stands for a module: `import` finds it, and the first question to it imports what it stands for. The standard
    library's own lazy module is asked by the next `import` already."""

    def __getattr__(self, name: str) -> Any:
        with _TAKING_ITS_PLACE:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_late(*names: str) -> None:
    """What imports these modules from now on gets them, but they are read only when they are used. Those that are
    imported already, or not installed, are left alone. For modules that one's own process does not use: a part of one,
    imported before anything else is asked of it, is executed twice."""
    for name in names:
        with suppress(ModuleNotFoundError):
            if name not in sys.modules and (spec := find_spec(name)):
                sys.modules[name] = late = _standing_for(spec)
                package, _, part = name.rpartition(".")
                if package:  # find_spec has imported it
                    setattr(sys.modules[package], part, late)


def _standing_for(spec: ModuleSpec) -> _Late:
    late = _Late(spec.name)
    late.__spec__, late.__file__ = spec, spec.origin
    return late
