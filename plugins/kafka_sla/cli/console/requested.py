"""What several commands read from their arguments, checked: an interval, a file to write. Runs no command."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import EVERYTHING, Interval


def interval_of(asked: argparse.Namespace) -> Interval:
    """From --from to --to; everything, where one is left out."""
    start, end = asked.start or EVERYTHING.start, asked.end or EVERYTHING.end
    if end <= start:
        raise BadRequest("--to must be after --from")
    return Interval(start, end)


def check_output(target: Path) -> None:
    """BadRequest where no file can be put."""
    if not target.absolute().parent.is_dir():
        raise BadRequest(f"the folder of --output {target} does not exist; make it first")
    if target.is_dir():
        raise BadRequest(f"--output {target} is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise BadRequest(f"--output {target} is a device or a pipe, which a file would replace; name a file")
