"""A door in front of a broker that counts what goes through it: requests by kind, and bytes. Knows framing only."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

from demo.broker import Cluster, free_ports

_KINDS = {
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    15: "DescribeGroups",
    16: "ListGroups",
    18: "ApiVersions",
    32: "DescribeConfigs",
    69: "ConsumerGroupDescribe",
    77: "ShareGroupDescribe",
    89: "StreamsGroupDescribe",
}


class Wire:
    """Counts inside its `with` block; the broker needs its `listener`."""

    def __init__(self) -> None:
        self.port, self._inner = free_ports(2)
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._open: list[socket.socket] = []
        self.clear()

    def clear(self) -> None:
        self.requests: Counter[str] = Counter()
        self.sent = self.received = 0

    def listener(self, properties: Mapping[str, str]) -> dict[str, str]:
        """A second listener for a broker with these properties, whose clients are told to come through this door."""
        return {
            "listeners": f"COUNTED://127.0.0.1:{self._inner},{properties['listeners']}",
            "advertised.listeners": f"COUNTED://127.0.0.1:{self.port},{properties['advertised.listeners']}",
            "listener.security.protocol.map": f"COUNTED:PLAINTEXT,{properties['listener.security.protocol.map']}",
        }

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the experiment is over
            while True:
                client, _ = self._listening.accept()
                broker = socket.create_connection(("127.0.0.1", self._inner))
                self._open += [client, broker]
                threading.Thread(target=self._requests, args=(client, broker), daemon=True).start()
                threading.Thread(target=self._answers, args=(broker, client), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        """Each is a length of four bytes and so many bytes, the first two of which name its kind."""
        with suppress(OSError, EOFError):
            while True:
                length = _exactly(client, 4)
                body = _exactly(client, struct.unpack(">i", length)[0])
                broker.sendall(length + body)
                kind = struct.unpack(">h", body[:2])[0]
                self.requests[_KINDS.get(kind, f"kind {kind}")] += 1
                self.sent += len(length) + len(body)
        with suppress(OSError):
            broker.shutdown(socket.SHUT_WR)

    def _answers(self, broker: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while some := broker.recv(1 << 16):
                self.received += len(some)
                client.sendall(some)
            client.shutdown(socket.SHUT_WR)


class CountedBroker(Cluster):
    """A broker of one node that also listens behind a counting door."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        super().__init__()

    def _properties(self, number: int) -> dict[str, str]:
        found = super()._properties(number)
        return found | self._wire.listener(found)


def _exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        some = source.recv(count - len(found))
        if not some:
            raise EOFError
        found += some
    return found
