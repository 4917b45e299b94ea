"""Slow links between brokers on one machine, without root: TCP proxies that hold back what a broker is sent.

A broker names its proxy as its address to other brokers. Who calls, the first request tells: replica fetchers carry
their broker's id in the client id. Knows of Kafka only where a client id stands in a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any

from demo.event_loop import EventLoop

_HEADER = 14
"""Bytes of a request up to the client id: length (4), key (2), version (2), correlation (4), length of the id (2)."""
_CHUNK = 1 << 16
_NOBODY = -1


class Links:
    """One proxy per broker inside the `with` block: broker i listens on `behind[i]`, and is called on `ports[i]`."""

    def __init__(self, ports: Mapping[int, int], behind: Mapping[int, int]) -> None:
        self._ports, self._behind = ports, behind
        self.delay_into: dict[int, float] = {}
        """Seconds by which all that is sent to a broker is held back; may change at any time."""
        self.delay_between: dict[frozenset[int], float] = {}
        """Seconds by which requests between two brokers are held back."""
        self._loop = EventLoop("links")

    def slow(self, broker: int | None, pair: frozenset[int], seconds: float) -> None:
        """Hold back what is sent to a broker, requests between a pair, or both; nothing else any more."""
        self.delay_into = {} if broker is None else {broker: seconds}
        self.delay_between = {pair: seconds} if pair else {}

    def __enter__(self) -> Links:
        self._loop.start()
        for broker, port in self._ports.items():
            self._loop.serve(port, functools.partial(self._connect, broker))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.stop()

    async def _connect(self, broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):  # brokers come and go
            first = await reader.readexactly(_HEADER)
            first += await reader.readexactly(max(int.from_bytes(first[-2:], "big", signed=True), 0))
            caller = _broker_of(first[_HEADER:])
            there, back = await asyncio.open_connection("127.0.0.1", self._behind[broker])
            await _both(
                _carry(reader, back, lambda: self._held(caller, broker), first),
                _carry(there, writer, lambda: self.delay_into.get(caller, 0.0)),
            )
            back.close()
        writer.close()

    def _held(self, caller: int, broker: int) -> float:
        return self.delay_into.get(broker, 0.0) + self.delay_between.get(frozenset((caller, broker)), 0.0)


def _broker_of(client_id: bytes) -> int:
    """The broker whose replica fetcher calls itself that."""
    found = re.fullmatch(rb"broker-(\d+)-fetcher-\d+", client_id)
    return int(found[1]) if found else _NOBODY


async def _both(there: Coroutine[Any, Any, None], back: Coroutine[Any, Any, None]) -> None:
    """Both ways, until one of them ends."""
    ways = [asyncio.ensure_future(there), asyncio.ensure_future(back)]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held: Callable[[], float], first: bytes = b""
) -> None:
    """Pass on what comes, each piece late by what `held` says when it comes; a slow link, not a narrow one."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    waiting.put_nowait((loop.time() + held(), first))
    delivery = asyncio.ensure_future(_deliver(waiting, writer))
    try:
        while piece := await reader.read(_CHUNK):
            waiting.put_nowait((loop.time() + held(), piece))
    finally:
        delivery.cancel()


async def _deliver(waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due, piece = await waiting.get()
        if (late := due - loop.time()) > 0:
            await asyncio.sleep(late)
        writer.write(piece)
        await writer.drain()
