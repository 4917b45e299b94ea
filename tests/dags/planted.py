"""Secrets planted where people keep them, and the search for them wherever a run may leave a trace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import create_engine, text

POSTGRES, SMTP, OBJECTS, WRONG = "Pl4nted-postgres", "Pl4nted-smtp", "Pl4nted-objects", "Pl4nted-wrong"


@contextmanager
def process_list() -> Iterator[set[str]]:
    """Every command line of this machine that was seen while the block ran."""
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            for process in psutil.process_iter(["cmdline"]):
                seen.add(" ".join(process.info["cmdline"] or ()))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def in_files(folder: Path, secrets: list[str]) -> list[str]:
    """Files below the folder that hold one of these."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return [str(path.relative_to(folder)) for path in files if _holds(path.read_bytes(), secrets)]


def in_database(url: str, secrets: list[str]) -> list[str]:
    """Tables with a row that holds one of these: XComs, rendered fields, connections and whatever else there is."""
    engine = create_engine(url)
    with engine.connect() as connection:
        tables = (
            connection.execute(
                text(
                    "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables"
                    " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
                )
            )
            .scalars()
            .all()
        )
        found = [
            table
            for table in tables
            for row in connection.execute(text(f"SELECT each::text FROM {table} AS each")).scalars()
            if _holds(row.encode(), secrets)
        ]
    engine.dispose()
    return sorted(set(found))


def _holds(data: bytes, secrets: list[str]) -> bool:
    return any(secret.encode() in data for secret in secrets)
