"""The tables page is made, not written."""

from __future__ import annotations

from pathlib import Path

from kafka_sla.model.tables import TABLES
from kafka_sla.validation.table_docs import tables_page

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/tables.md"


def test_the_page_says_what_the_contracts_say() -> None:
    assert PAGE.read_text() == tables_page(), "run `make docs`"


def test_every_column_is_on_the_page() -> None:
    page = tables_page()

    assert [c.name for t in TABLES.values() for c in t.columns if f"| `{c.name}` |" not in page] == []
