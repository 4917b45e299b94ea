"""What this project uses of kafka-python beyond its documented API, in one place: a new version may change any of it.
Its connections and messages, and messages that it does not have. Knows no cluster.

The JSON files in `messages` are Apache Kafka 4.3.1's own message definitions without their comments.
"""

from __future__ import annotations

from typing import Any

from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeConfigsRequest, DescribeGroupsRequest, ListGroupsRequest
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
    "ApiVersionsRequest",
    "ConsumerGroupDescribeRequest",
    "ConsumerProtocolAssignment",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "DescribeShareGroupOffsetsRequest",
    "FetchRequest",
    "IsolationLevel",
    "KafkaConnectionManager",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "MetadataRequest",
    "NetworkSelector",
    "OffsetFetchRequest",
    "OffsetSpec",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "ShareGroupDescribeRequest",
]


def _message(name: str) -> Any:
    """The class that kafka-python makes of `<name>.json`, as it does of its own definitions."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=f"{__package__}.messages")


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
"""State and members of groups of the rebalance protocol of KIP-848."""
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
"""State and members of share groups (KIP-932)."""
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
"""Start offset of each share-partition, and since KIP-1226 its lag."""
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
