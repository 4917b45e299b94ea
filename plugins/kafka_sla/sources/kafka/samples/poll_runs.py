"""Polls of many values, thinned to those that say something new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Runs:
    """Values over time. Of polls that find the same, the first is kept, the last, and the last of each window: what is
    known at a window's end is what its bounds come from."""

    window_ms: int
    _last: dict[Any, tuple[int, int]] = field(default_factory=dict)
    """Time and value of the newest poll."""
    _pending: set[Any] = field(default_factory=set)
    """Keys whose newest poll is not among the kept ones."""
    _kept: list[tuple[Any, int, int]] = field(default_factory=list)

    def add(self, at: int, values: Mapping[Any, int]) -> None:
        for key, value in values.items():
            before = self._last.get(key)
            self._last[key] = (at, value)
            same = before is not None and before[1] == value
            if (
                before is not None
                and key in self._pending
                and not (same and self._window(before[0]) == self._window(at))
            ):
                self._keep(key, *before)
            if same:
                self._pending.add(key)
            else:
                self._keep(key, at, value)

    def take(self) -> list[tuple[Any, int, int]]:
        """Key, time and value of each kept poll since the last take, the newest of every key among them."""
        for key in list(self._pending):
            self._keep(key, *self._last[key])
        kept, self._kept = self._kept, []
        return kept

    def _window(self, at: int) -> int:
        return at // self.window_ms

    def _keep(self, key: Any, at: int, value: int) -> None:
        self._pending.discard(key)
        self._kept.append((key, at, value))
