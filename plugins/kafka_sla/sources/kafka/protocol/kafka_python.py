"""What this project uses of kafka-python beyond its documented API, in one place: a new version may change any of it.
Its connections and messages, and messages that it does not have. Knows no cluster.

The JSON files in `messages` are Apache Kafka 4.3.1's own message definitions without their comments.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error
from typing import Any

from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.selector import NetworkSelector
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
    "ConsumerGroupDescribeRequest",
    "ConsumerProtocolAssignment",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "DescribeProducersRequest",
    "DescribeShareGroupOffsetsRequest",
    "FetchRequest",
    "IsolationLevel",
    "KafkaConnectionManager",
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
