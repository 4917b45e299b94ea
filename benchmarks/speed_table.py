"""Figures of the speed benchmarks as Markdown, with the machine that they are of."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_BEGAN = time.monotonic()


def say(text: str) -> None:
    """Progress on standard error, so that standard output is the tables."""
    print(f"[{time.monotonic() - _BEGAN:5.0f} s] {text}", file=sys.stderr, flush=True)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def seconds(value: float) -> str:
    """Two digits that matter, in seconds, or in minutes from two on."""
    if value >= 120:
        return f"{value / 60:.1f} min"
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s" if value >= 1 else f"{value:.2f} s"


def megabytes(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count < 1e7 else f"{count / 1e6:,.0f} MB"


@contextmanager
def timed(what: str, into: dict[str, float]) -> Iterator[None]:
    """Add the seconds that the block takes to `into[what]`, and say so."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    into[what] = into.get(what, 0.0) + took
    say(f"{what}: {took:.1f} s")


def machine() -> str:
    """What these figures were measured on: processors, how busy others kept them, memory."""
    load = os.getloadavg()[0]
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return (
        f"{os.cpu_count()} processors ({_processor()}), {pages * size / 2**30:.0f} GiB, Python"
        f" {platform.python_version()}; load of the last minute at the end: {load:.1f}"
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
