"""Processor time and memory of processes while something runs, by what they are for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

import psutil

_EVERY_SECONDS = 0.1
Watched = Callable[[], Mapping[str, Sequence[psutil.Process]]]
"""Which processes there are now, by what they are for."""


@dataclass
class Spent:
    """What a step took; processor time and memory by what its processes are for."""

    wall_seconds: float = 0.0
    first_bytes: dict[str, int] = field(default_factory=dict)
    """Resident when it began; what forked processes share counts for each."""
    most_bytes: dict[str, int] = field(default_factory=dict)
    _times: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)
    """Of each process, by when it was first and last seen."""

    def processor_seconds(self, name: str) -> float:
        return sum(last - first for (of, _), (first, last) in self._times.items() if of == name)

    def look(self, processes: Mapping[str, Sequence[psutil.Process]]) -> None:
        """Whoever was not there in the beginning began with nothing."""
        is_first = not self.first_bytes
        for name, of in processes.items():
            held = 0
            for process in of:
                with suppress(psutil.NoSuchProcess):
                    held += process.memory_info().rss
                    now = sum(process.cpu_times()[:2])
                    first, _ = self._times.get((name, process.pid), (now if is_first else 0.0, now))
                    self._times[name, process.pid] = first, now
            self.first_bytes.setdefault(name, held)
            self.most_bytes[name] = max(held, self.most_bytes.get(name, 0))


@contextmanager
def watching(watched: Watched) -> Iterator[Spent]:
    """It is complete when the block ends."""
    spent, ended, began = Spent(), Event(), time.monotonic()
    spent.look(watched())

    def go_on() -> None:
        while not ended.wait(_EVERY_SECONDS):
            spent.look(watched())

    thread = Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield spent
    finally:
        ended.set()
        thread.join()
        spent.look(watched())
        spent.wall_seconds = time.monotonic() - began
