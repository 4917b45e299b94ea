"""How commands print their results: text and tables for people, or JSON whose keys are never renamed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from kafka_sla.text.timestamps import instant_text


def show(asked: argparse.Namespace, values: Any, text: Callable[[], str]) -> None:
    """The values as JSON where that was requested, else the text."""
    if asked.json:
        show_json(values)
    else:
        print(text())


def show_json(values: Any) -> None:
    """Null is unknown, times are ISO-8601 in UTC."""
    print(json.dumps(values, default=_plain, indent=2, ensure_ascii=False))


def _plain(value: Any) -> str:
    return instant_text(value) if isinstance(value, datetime) else str(Path(value))


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A header, a rule and the rows; columns are as wide as their longest cell."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
