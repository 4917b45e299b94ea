"""A broker that can do less than it could: a proxy before a real one that changes what it announces and answers.

Plays managed services and other brokers in tests. Knows Kafka's frames and headers; what is changed is its caller's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from kafka.protocol.admin import DescribeConfigsResponse, ListGroupsResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from demo.broker import free_ports
from demo.event_loop import EventLoop

LIST_OFFSETS, METADATA, OFFSET_FETCH, LIST_GROUPS, API_VERSIONS, DESCRIBE_CONFIGS = 2, 3, 9, 16, 18, 32
_RESPONSES: dict[int, Any] = {
    LIST_OFFSETS: ListOffsetsResponse,
    METADATA: MetadataResponse,
    OFFSET_FETCH: OffsetFetchResponse,
    LIST_GROUPS: ListGroupsResponse,
    API_VERSIONS: ApiVersionsResponse,
    DESCRIBE_CONFIGS: DescribeConfigsResponse,
}
_UNKNOWN_TOPIC = 3
Change = Callable[[Any], None]


@dataclass(slots=True)
class DegradedBroker:
    """Serves inside its `with` block, before the one broker at `behind` (host:port)."""

    behind: str
    newest: Mapping[int, int] = field(default_factory=dict)
    """Newest version that is announced of a request, by its key; -1: the request is not announced at all."""
    hangs_up_from: Mapping[int, int] = field(default_factory=dict)
    """Version of a request from which on the connection is closed, whatever was announced."""
    changes: Mapping[int, Change] = field(default_factory=dict)
    """What is done to each answer, by the request's key."""
    hidden: frozenset[str] = frozenset()
    """Topics that are said not to be there, as services say of internal ones."""
    port: int = field(default_factory=lambda: free_ports(1)[0])
    _loop: EventLoop = field(default_factory=lambda: EventLoop("degraded broker"))

    def client(self, user: str = "") -> dict[str, str]:
        """Settings by confluent-kafka's names."""
        return {"bootstrap.servers": f"127.0.0.1:{self.port}"}

    def __enter__(self) -> DegradedBroker:
        self._loop.start()
        self._loop.serve(self.port, self._serve)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.behind.partition(":")
        there, back = await asyncio.open_connection(host, int(port), limit=1 << 26)
        asked: deque[tuple[int, int]] = deque()
        ways = [
            asyncio.ensure_future(self._requests(reader, back, asked)),
            asyncio.ensure_future(self._answers(there, writer, asked)),
        ]
        with contextlib.suppress(asyncio.CancelledError):  # at the end of the `with` block
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for one in (back, writer):
            with contextlib.suppress(OSError):
                one.close()

    async def _requests(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, asked: deque[tuple[int, int]]
    ) -> None:
        while frame := await _frame(reader):
            key, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
            if version >= self.hangs_up_from.get(key, version + 1):
                return
            asked.append((key, version))
            back.write(frame)
            await back.drain()

    async def _answers(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[tuple[int, int]]
    ) -> None:
        while frame := await _frame(there):
            writer.write(self._changed(*asked.popleft(), frame))
            await writer.drain()

    def _changed(self, key: int, version: int, frame: bytes) -> bytes:
        change = {API_VERSIONS: self._announce, METADATA: self._stay}.get(key, self.changes.get(key))
        if change is None:
            return frame
        kind = _RESPONSES[key]
        # length, correlation id, and from flexible versions on tagged fields, of which brokers send none
        header = 9 if kind.flexible_version_q(version) and key != API_VERSIONS else 8
        answer = kind.decode(frame[header:], version=version)
        change(answer)
        answer._header = None  # decoding leaves it out, and encoding misses it
        body = frame[4:header] + bytes(answer.encode(version=version))
        return len(body).to_bytes(4, "big") + body

    def _announce(self, answer: Any) -> None:
        known = [api for api in answer.api_keys if self.newest.get(api.api_key, 0) >= 0]
        for api in known:
            api.max_version = min(api.max_version, self.newest.get(api.api_key, api.max_version))
        answer.api_keys = known

    def _stay(self, answer: Any) -> None:
        """Clients find this proxy where the broker would be, and nothing that is hidden."""
        for topic in answer.topics:
            if topic.name in self.hidden:
                topic.error_code, topic.partitions = _UNKNOWN_TOPIC, []
        for broker in answer.brokers:
            broker.host, broker.port = "127.0.0.1", self.port


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """One message with its length; nothing at the end."""
    try:
        size = await reader.readexactly(4)
        return size + await reader.readexactly(int.from_bytes(size, "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
