"""What this project uses of kafka-python beyond its documented API, in one place: a new version may change any of it.
Its connections and messages, and messages that it does not have.

The JSON files in `messages` are Apache Kafka 4.3.1's own message definitions without their comments.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from struct import Struct, error
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaProtocolError
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.admin import DescribeConfigsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import (
    ConsumerProtocolAssignment,
    FetchRequest,
    IsolationLevel,
    ListOffsetsRequest,
    OffsetFetchRequest,
    OffsetSpec,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = [
    "DNS_FAILURE",
    "ApiVersionsRequest",
    "BoundedConnectionManager",
    "ConsumerGroupDescribeRequest",
    "ConsumerProtocolAssignment",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "DescribeProducersRequest",
    "DescribeShareGroupOffsetsRequest",
    "FetchRequest",
    "IsolationLevel",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "ListTransactionsRequest",
    "MetadataRequest",
    "NetworkSelector",
    "OffsetFetchRequest",
    "OffsetSpec",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "SaslMechanismGSSAPI",
    "ShareGroupDescribeRequest",
    "StreamsGroupDescribeRequest",
    "WithoutObjects",
    "register_sasl_mechanism",
]
DNS_FAILURE = "DNS Resolution failure"
"""Part of the library's error for a host name that cannot be resolved; it does not say which."""
_SIZE = Struct(">i")
_CHUNK_BYTES, _READ_BYTES = 64 * 1024, 1024**2
"""What is read from a socket at once, and before it is looked at."""
_MAX_HANDSHAKE_BYTES = 1024**2


class _Bounded:
    """A transport of the library that takes a limited number of bytes from its socket at a time, and that closes the
    connection at an answer which cannot be decoded.

    The library reads until the socket is empty and looks at the size of a message only then, so a peer that sends
    without end takes all memory. An error in its decoder ends its reading task and leaves the connection waiting.
    """

    _sock: Any
    _protocol: Any

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received = bytearray()
        try:
            # What TLS has decrypted already is taken whatever its size: no socket says that it is there.
            while len(received) < _READ_BYTES or self._pending():
                data = self._sock.recv(_CHUNK_BYTES)
                if not data:
                    return bytes(received), KafkaConnectionError("socket disconnected")
                received += data
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except (OSError, ValueError) as failed:
            return bytes(received), KafkaConnectionError(failed)
        return bytes(received), None

    def _pending(self) -> int:
        return int(self._sock.pending()) if isinstance(self._sock, ssl.SSLSocket) else 0

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = _Guarded(protocol) if protocol is not None else None

    def get_protocol(self) -> Any:
        return self._protocol.protocol if isinstance(self._protocol, _Guarded) else self._protocol


class _Guarded:
    """A connection of the library that ends at a decoding error as the library expects. Until the peer has let us in,
    its messages have to be small: it may be no broker."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self._max_bytes = int(protocol.config["receive_message_max_bytes"])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.protocol, name)

    def data_received(self, data: bytes) -> None:
        of_peer = _MAX_HANDSHAKE_BYTES if self.protocol.initializing else self._max_bytes
        self.protocol.parser._max_frame_size = of_peer
        try:
            self.protocol.data_received(data)
        except KafkaProtocolError:
            raise
        except Exception as failed:
            raise KafkaProtocolError(f"an answer cannot be decoded ({type(failed).__name__})") from failed


class _TcpTransport(_Bounded, KafkaTCPTransport):  # type: ignore[misc]
    pass


class _SslTransport(_Bounded, KafkaSSLTransport):  # type: ignore[misc]
    pass


class BoundedConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """The library's manager of connections, with transports that bound what they read at a time."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if self.ssl_enabled:
            options = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
            transport = _SslTransport(self._net, sock, host=node.host, **options)
        else:
            transport = _TcpTransport(self._net, sock, host=node.host)
        try:
            await transport.handshake()
        except Exception as failed:
            raise KafkaConnectionError(f"Handshake failed: {failed}") from failed
        return transport


def _message(name: str) -> Any:
    """The class that kafka-python makes of `<name>.json`, as it does of its own definitions."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=f"{__package__}.messages")


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
"""State and members of groups of the rebalance protocol of KIP-848."""
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
"""State and members of share groups (KIP-932)."""
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
"""State, members and tasks of groups whose rebalance protocol is that of Kafka Streams (KIP-1071)."""
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
"""Start offset of each share-partition, and since KIP-1226 its lag."""
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")


class WithoutObjects:
    """A request of the library whose body is made, and whose answer is read, without its objects for each partition.

    Everything else, from the version that is spoken to the header, is the library's.
    """

    def __init__(
        self, message: Any, encode: Callable[[int], bytes] | None, decode: Callable[[int, memoryview], Any]
    ) -> None:
        """`encode` gives the body for a version; None: the library does. `decode` takes a version and a body."""
        self._message, self._encode, self._decode = message, encode, decode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    @property
    def API_VERSION(self) -> int | None:  # noqa: N802  (the library's name)
        version: int | None = self._message.API_VERSION
        return version

    @API_VERSION.setter
    def API_VERSION(self, version: int) -> None:  # noqa: N802
        self._message.API_VERSION = version

    def encode(self, **named: bool) -> bytes:
        """As it is sent: framed, and with its header."""
        if self._encode is None:
            return bytes(self._message.encode(**named))
        version = self._message.API_VERSION
        header = self._message.header.encode(flexible=self._message.flexible_version_q(version))
        data: bytes = header + self._encode(version)
        return _SIZE.pack(len(data)) + data

    @property
    def header(self) -> _Awaited:
        """What the library keeps until the answer comes."""
        return _Awaited(self._message.header, self._decode)


class _Awaited:
    """A sent request, and in the place of its answer's class what reads it."""

    def __init__(self, header: Any, decode: Callable[[int, memoryview], Any]) -> None:
        self.correlation_id, self.api_key = header.correlation_id, header.request_api_key
        self.api_version = header.request_api_version
        self.parse_header, self._decode = header.get_response_class().parse_header, decode

    def get_response_class(self) -> _Awaited:
        return self

    def decode(self, data: Any) -> Any:
        """`data`: the library's buffer, read as far as the header's end. Raises what the library expects."""
        try:
            return self._decode(self.api_version, memoryview(data)[data.tell() :])
        except IndexError as beyond:
            raise error("the answer ends too early") from beyond
