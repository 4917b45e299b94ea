"""A named lock for work outside of transactions, such as sending a mail. The operating system or Postgres releases it
when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, func, select

from kafka_sla.errors import StoreError

_WAIT_S = 600.0
_LONGEST_PAUSE_S = 0.5
_KEYSPACE = zlib.crc32(b"kafka_sla senders") - 2**31
"""Keeps these keys apart from those of the locks inside transactions."""


@contextmanager
def hold_sender_lock(engine: Engine, name: str, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Hold the lock `name` of this database while the block runs. No reader and no writer waits for it, only who asks
    for the same lock. StoreError if another holder keeps it for `wait_s` seconds.

    SQLite: an empty file beside the database for each name. Postgres: an advisory lock in a connection of its own.
    """
    with _file_lock(engine, name) if engine.dialect.name == "sqlite" else _advisory_lock(engine, name) as try_lock:
        _wait_for(try_lock, name, wait_s)
        yield


@contextmanager
def _file_lock(engine: Engine, name: str) -> Iterator[Callable[[], bool]]:
    path = Path(f"{engine.url.database}-sending-{zlib.crc32(name.encode()):08x}")
    try:
        file = path.open("ab")
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}; make its folder writable") from error
    with file:

        def try_lock() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        yield try_lock


@contextmanager
def _advisory_lock(engine: Engine, name: str) -> Iterator[Callable[[], bool]]:
    key = zlib.crc32(name.encode()) - 2**31
    with engine.connect() as connection:
        yield lambda: bool(connection.scalar(select(func.pg_try_advisory_xact_lock(_KEYSPACE, key))))


def _wait_for(try_lock: Callable[[], bool], name: str, wait_s: float) -> None:
    deadline, pause = time.monotonic() + wait_s, 0.01
    while not try_lock():
        if time.monotonic() > deadline:
            raise StoreError(
                f"another process has been sending to {name} for {wait_s:.0f} s; the next run tries again. If this"
                " repeats, end the kafka-sla process that hangs"
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
