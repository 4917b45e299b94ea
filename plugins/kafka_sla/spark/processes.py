"""The processes of a Spark application on this machine, and their end."""

from __future__ import annotations

import psutil

_SECONDS = 10
"""Spark removes its temporary folders when it is asked to end, and has so long for it."""


def end(started: psutil.Process) -> None:
    """End a process with all that it started and those started; what does not end by itself is killed."""
    try:
        family = [started, *started.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    _tell(family, "terminate")
    _, stubborn = psutil.wait_procs(family, _SECONDS)
    _tell(stubborn, "kill")
    psutil.wait_procs(stubborn, _SECONDS)


def _tell(family: list[psutil.Process], what: str) -> None:
    for process in family:
        try:
            getattr(process, what)()
        except psutil.NoSuchProcess:  # it ended with its parent
            continue
