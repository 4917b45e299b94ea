"""Kafka's requests about groups of the newer kinds, which kafka-python does not have. Knows no client.

The JSON files beside this are Apache Kafka 4.3.1's own message definitions without their comments.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage


def _message(name: str) -> Any:
    """The class that kafka-python makes of `<name>.json`, as it does of its own definitions."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=__package__)


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
"""State and members of groups of the rebalance protocol of KIP-848."""
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
"""State and members of share groups (KIP-932)."""
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
"""Start offset of each share-partition, and since KIP-1226 its lag."""
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
