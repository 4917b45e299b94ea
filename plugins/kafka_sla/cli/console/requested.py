"""What several commands read from their arguments, checked: an interval, a file to write. Runs no command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import EVERYTHING, Interval

_OF_THE_SYSTEM, _OF_FILES = ("/dev", "/proc"), "/dev/shm"  # noqa: S108
"""Folders whose names lead to devices and to what a process has open, and the one among them that keeps files."""
_MOST_LINKS = 40
"""So many the kernel follows, too."""


def interval_of(asked: argparse.Namespace) -> Interval:
    """From --from to --to; everything, where one is left out."""
    start, end = asked.start or EVERYTHING.start, asked.end or EVERYTHING.end
    if end <= start:
        raise BadRequest("--to must be after --from")
    return Interval(start, end)


def output_file(asked: Path) -> Path:
    """The absolute path where the file of --output goes: whoever moves one into the place of a link would remove the
    link, not write to what it leads to. BadRequest where no file can be put."""
    *links, target = _followed(asked)
    if target.is_symlink():
        raise BadRequest(f"--output {asked} is a link that leads in a circle; name a file")
    is_special = target.exists() and not target.is_file() and not target.is_dir()
    if is_special or any(map(_is_of_the_system, [*links, target])):
        raise BadRequest(
            f"--output {asked} is or leads to a device, a pipe or a name below /dev or /proc, which a file would"
            " replace; name a file elsewhere"
        )
    if not target.absolute().parent.is_dir():
        raise BadRequest(f"the folder of --output {asked} does not exist; make it first")
    if target.is_dir():
        raise BadRequest(f"--output {asked} is a folder; name a file in it")
    return target.absolute()


def _followed(path: Path) -> Iterator[Path]:
    """The path, and where each link leads in turn."""
    yield path
    for _ in range(_MOST_LINKS):
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()
        yield path


def _is_of_the_system(path: Path) -> bool:
    folder = Path(os.path.realpath(path.parent))
    return any(map(folder.is_relative_to, _OF_THE_SYSTEM)) and not folder.is_relative_to(_OF_FILES)
