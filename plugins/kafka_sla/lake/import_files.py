"""Facts from files that people keep: CSV and Parquet in, all of a file or nothing of it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from kafka_sla.errors import BadImport
from kafka_sla.lake.lake import Lake
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, Table
from kafka_sla.sql import Sql, database

SHOWN = 20
"""Bad values that an error lists; all are counted."""
DELETED = "deleted"
"""What `committed_offset` holds where the group's offset was deleted or expired. An empty cell is refused: most tools
leave one where they saw nothing."""

_INSTANT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?( ?(Z|[+-]\d\d(:?\d\d)?))?"
_WHOLE = r"\d{1,19}(\.0+)?"


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a column may hold: a SQL condition on its text, the SQL value, and the condition in words."""

    column: str
    holds: str
    value: str
    allowed: str
    optional: bool = False
    when_empty: str = ""
    """Advice for an empty cell."""

    @property
    def broken(self) -> str:
        empty = f'"{self.column}" IS NULL'
        return f"NOT ({empty})" * self.optional + " AND " * self.optional + f"NOT coalesce({self.holds}, false)"


def import_log_offsets(lake: Lake, path: str | Path, clusters: Sequence[str]) -> int:
    """Land the log offsets of a file; answers how many were new. `clusters` are the configured names."""
    return _land(lake, LOG_OFFSETS, Path(path), clusters)


def import_committed_offsets(lake: Lake, path: str | Path, clusters: Sequence[str]) -> int:
    """Land the committed offsets of a file; answers how many were new. `clusters` are the configured names."""
    return _land(lake, COMMITTED_OFFSETS, Path(path), clusters)


def _land(lake: Lake, table: Table, path: Path, clusters: Sequence[str]) -> int:
    return lake.land({table.name: read_rows(table, path, clusters)})[table.name]


def read_rows(table: Table, path: Path, clusters: Sequence[str]) -> pa.Table:
    """The rows of the file as the contract has them; BadImport when any may not be a fact."""
    rules = tuple(_rules(table, clusters))
    with database() as db:
        _read_text(db, table, path)
        _check(db, path, rules)
        values = ", ".join(f'{rule.value} AS "{rule.column}"' for rule in rules)
        rows = db.arrow(f"SELECT {values} FROM texts")
    return rows.select(list(table.names)).cast(arrow_schema(table))


def _read_text(db: Sql, table: Table, path: Path) -> None:
    """The file's columns as trimmed text, with the row's number, as the table `texts`."""
    if not path.is_file():
        raise BadImport(f"{path}: no such file")
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        source, header = _csv(table, path), 1  # the header is row 1, as an editor or a spreadsheet counts
    elif name.endswith((".parquet", ".pq")):
        source, header = _parquet(path), 0
    else:
        raise BadImport(f"{path}: neither CSV nor Parquet by its name; allowed: *.csv, *.csv.gz, *.parquet")
    _refuse_columns(table, path, source.column_names)
    db.add(source=source)
    texts = ", ".join(f"""nullif(trim(CAST("{n}" AS VARCHAR)), '') AS "{n}\"""" for n in table.names)
    number = f"row_number() OVER () + {header} AS row_number"
    db.run(f"CREATE TEMP TABLE texts AS SELECT {number}, {texts} FROM source")


def _csv(table: Table, path: Path) -> pa.Table:
    """The CSV file, every known column as text; rows with too few or too many columns are refused together."""
    ragged: list[csv.InvalidRow] = []

    def keep(row: csv.InvalidRow) -> str:
        ragged.append(row)
        return "skip"

    _check_encoding(path)
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(table.names, pa.string()))
    try:
        rows = csv.read_csv(
            path, csv.ReadOptions(use_threads=False), csv.ParseOptions(invalid_row_handler=keep), as_text
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise BadImport(f"{path}: cannot be read as CSV: {error}") from error
    if ragged:
        lines = [f"{row.actual_columns} columns; allowed: {row.expected_columns}" for row in ragged[:SHOWN]]
        numbered = [f"row {row.number}: {line}" for row, line in zip(ragged, lines, strict=False)]
        raise _bad(path, numbered, len(ragged))
    return rows


def _check_encoding(path: Path) -> None:
    """BadImport for UTF-16 and UTF-32, as some spreadsheets write them: their mark at the beginning says so."""
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except OSError as error:
        raise BadImport(f"{path}: cannot be read: {error.strerror}") from error
    if begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise BadImport(f"{path}: its text is UTF-16 or UTF-32; allowed: UTF-8, so save it as CSV UTF-8")


def _parquet(path: Path) -> pa.Table:
    try:
        return parquet.read_table(path, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadImport(f"{path}: cannot be read as Parquet: {error}") from error


def _refuse_columns(table: Table, path: Path, found: Sequence[str]) -> None:
    if missing := [name for name in table.names if name not in found]:
        raise BadImport(
            f"{path}: lacks the columns {', '.join(missing)}; {table.name} needs {', '.join(table.names)}; "
            f"the file has {', '.join(found)}"
        )


def _check(db: Sql, path: Path, rules: Sequence[_Rule]) -> None:
    """Raise with the first bad values, in the file's order, and the number of all."""
    queries = [
        f"""SELECT row_number, {i} AS rule, "{rule.column}" AS value FROM texts WHERE {rule.broken}"""
        for i, rule in enumerate(rules)
    ]
    every = " UNION ALL ".join(queries)
    first = f"SELECT *, count(*) OVER () AS broken FROM ({every}) ORDER BY row_number, rule LIMIT {SHOWN}"
    if found := db.rows(first):
        raise _bad(path, [_describe_bad_value(cell, rules[cell["rule"]]) for cell in found], found[0]["broken"])


def _describe_bad_value(cell: Mapping[str, Any], rule: _Rule) -> str:
    """`row 3, log_end_offset: '-1'; allowed: a whole number, 0 or more`."""
    value = "empty" if cell["value"] is None else repr(cell["value"])
    advice = f"; {rule.when_empty}" if rule.when_empty and cell["value"] is None else ""
    return f"row {cell['row_number']}, {rule.column}: {value}{advice}; allowed: {rule.allowed}"


def _bad(path: Path, lines: Sequence[str], count: int) -> BadImport:
    """The first mistakes, a line each, and how many there are."""
    errors = "1 error" if count == 1 else f"{count} errors"
    more = [f"… and {count - len(lines)} more"] if count > len(lines) else []
    return BadImport("\n  ".join([f"{path}: nothing was imported, the file has {errors}:", *lines, *more]))


def _rules(table: Table, clusters: Sequence[str]) -> Iterator[_Rule]:
    known = ", ".join("'" + name.replace("'", "''") + "'" for name in clusters) or "NULL"
    for column in table.columns:
        text = f'"{column.name}"'
        if column.name == "cluster":
            names = ", ".join(sorted(clusters)) or "none is configured"
            yield _Rule("cluster", f"{text} IN ({known})", text, f"a cluster of the configuration ({names})")
        elif column.type == "TIMESTAMP":
            yield _instant(column.name)
        elif column.name == "committed_offset":
            yield _committed_offset()
        elif column.type in ("INT", "BIGINT"):
            yield _whole(column.name, column.type, column.nullable)
        elif column.name == "topic":
            legal = f"regexp_full_match({text}, '[a-zA-Z0-9._-]{{1,249}}')"
            yield _Rule("topic", legal, text, "a topic name: letters, digits, dot, dash, underscore, at most 249")
        else:
            yield _Rule(column.name, f"{text} IS NOT NULL", text, "any text but nothing")


def _instant(name: str) -> _Rule:
    time = f"""TRY_CAST(replace("{name}", ',', '.') AS TIMESTAMPTZ)"""
    return _Rule(
        name,
        f"""regexp_full_match("{name}", '{_INSTANT}') AND year({time}) BETWEEN 1970 AND 9998""",
        time,
        "an ISO-8601 time from 1970 on, UTC unless it names an offset, such as 2026-11-01T02:00:00.000Z",
    )


def _committed_offset() -> _Rule:
    """A whole number, or the word for a deleted offset. An empty cell is refused."""
    number = _whole("committed_offset", "BIGINT", nullable=False)
    is_deleted = f"""lower("committed_offset") = '{DELETED}'"""
    return replace(
        number,
        holds=f"({is_deleted} OR ({number.holds}))",
        value=f"CASE WHEN NOT {is_deleted} THEN {number.value} END",
        allowed=f"{number.allowed}, or the word {DELETED} where the group's offset was deleted or expired",
        when_empty="leave the row out when nothing was seen",
    )


def _whole(name: str, kind: str, nullable: bool) -> _Rule:
    number = f"""TRY_CAST(regexp_replace("{name}", '\\.0+$', '') AS {kind})"""
    holds = f"""regexp_full_match("{name}", '{_WHOLE}') AND {number} IS NOT NULL"""
    if name == "log_start_offset":
        end = """TRY_CAST("log_end_offset" AS BIGINT)"""
        holds += f" AND ({end} IS NULL OR {number} <= {end})"
    allowed = "a whole number, 0 or more"
    allowed += ", not above log_end_offset" if name == "log_start_offset" else ""
    return _Rule(name, holds, number, allowed + (", or nothing" if nullable else ""), optional=nullable)
