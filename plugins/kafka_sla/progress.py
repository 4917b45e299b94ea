"""Says on the error stream what long work does and how long it took; the output stays clean. Knows no work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Say = Callable[[str], None]


@contextmanager
def step(title: str) -> Iterator[Say]:
    """Show a step while it runs, and its time when it is done. What is yielded changes its words."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    began = time.monotonic()
    with console.status(title) as status:
        yield lambda words: status.update(f"{title}: {words}")
    console.print(f"{title}: {time.monotonic() - began:.1f} s")


def note(text: str) -> None:
    """One remark about the work."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"  note: {text}")
