"""Says on the error stream what long work does and how long it took; the output stays clean."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Say = Callable[[str], None]
QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)
"""Whether progress and notes are left out."""


@contextmanager
def step(title: str) -> Iterator[Say]:
    """Show a step while it runs, and its time when it is done. What is yielded adds words to it."""
    console, began = _console(), time.monotonic()
    if not console.is_terminal:
        console.print(f"{title} ...")
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(title)
        yield lambda words: shown.update(task, description=f"{title}: {words}")
    console.print(f"{title}: {time.monotonic() - began:.1f} s")


def note(text: str) -> None:
    """One remark about the work."""
    noting()(text)


def noting() -> Say:
    """The same for threads, which do not know whether notes are left out."""
    console = _console()
    return lambda text: console.print(f"  note: {text}")


def warn(text: str) -> None:
    """What a result is worth less for, though nothing failed: said even where notes are not."""
    print(f"kafka-sla: warning: {text}", file=sys.stderr)


def _console() -> Console:
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=QUIET.get())
