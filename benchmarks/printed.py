"""What commands print into the documents, each table between the markers that name its command."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs/reference"


def put(page: str, command: str, text: str) -> None:
    """Put what this command printed into its place in docs/reference.

    Raises:
        LookupError: the page has no such place.
    """
    path = PAGES / page
    between = re.compile(rf"(<!-- {re.escape(command)} -->\n).*?(<!-- end -->)", re.DOTALL)
    new, places = between.subn(lambda found: f"{found[1]}{text}\n{found[2]}", path.read_text())
    if not places:
        raise LookupError(f"{page} has no place for it: put '<!-- {command} -->' and '<!-- end -->' in")
    path.write_text(new)
