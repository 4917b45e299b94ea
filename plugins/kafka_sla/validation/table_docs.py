"""The reference page of all tables, made of contracts and suites (`make docs`). Reads no data."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from kafka_sla.model.tables import TABLES, Table
from kafka_sla.validation import suites

_INTRODUCTION = """\
# Tables

<!-- Made by `make docs` from plugins/kafka_sla/model/tables.py and expectations/; do not edit. -->

Every table that this project writes. `kafka-sla export TABLE --from T --to T` reads any of them. Times are UTC with
microseconds; durations carry their unit in the name; unknown is null, never 0, -1 or NaN.

- **Facts** are true points: appended, never replaced.
- **Metrics** are made by Spark for whole intervals; making an interval again replaces exactly that interval.
- **Ledgers** live in the SQL database: verdicts, misses and validation results.
"""
_KINDS = {"fact": "Facts", "metric": "Metrics", "ledger": "Ledgers"}


def tables_page() -> str:
    """The page as Markdown."""
    parts = [_INTRODUCTION, *_contents()]
    for kind, heading in _KINDS.items():
        parts += [f"## {heading}\n", *(_section(table) for table in TABLES.values() if table.kind == kind)]
    return "\n".join(parts)


def _contents() -> Iterator[str]:
    for kind, heading in _KINDS.items():
        names = [f"[{table.name}](#{table.name})" for table in TABLES.values() if table.kind == kind]
        yield f"{heading}: {', '.join(names)}\n"


def _section(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key)
    how = f" How it is measured: [{table.name}]({table.name}.md)." if table.kind == "metric" else ""
    lines = [
        f"### {table.name}\n",
        f"{table.doc}{how}\n",
        f"Key: {key}. An interval selects rows by `{table.time}`.\n",
        "| column | type | meaning |",
        "|---|---|---|",
        *(f"| `{c.name}` | {c.type}{'' if c.nullable else ' NOT NULL'} | {_cell(c.comment)} |" for c in table.columns),
        "",
    ]
    return "\n".join(lines + ([] if table.kind == "ledger" else _rules(table)))


def _rules(table: Table) -> list[str]:
    """What `expectations/<table>.json` demands of the rows before anybody reads them."""
    rules = suites.suite(table.name)["expectations"]
    rows = [f"| `{r['id']}` | {r['severity']} | {_cell(r['description'])} |" for r in rules]
    return ["| expectation | severity | holds when |", "|---|---|---|", *rows, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(tables_page())
