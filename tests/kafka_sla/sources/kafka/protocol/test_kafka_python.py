"""Names which of kafka-python's undocumented parts a new version of it changed."""

from __future__ import annotations

import inspect
import re
import struct
from typing import Any

import numpy as np
import pytest
from kafka.cluster import ClusterMetadata
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse
from kafka.protocol.frame import KafkaBytes

from kafka_sla.sources.kafka.protocol import kafka_python
from kafka_sla.sources.kafka.protocol.kafka_python import (
    BoundedConnectionManager,
    ListOffsetsRequest,
    MetadataRequest,
    NetworkSelector,
    SaslMechanismGSSAPI,
)
from kafka_sla.sources.kafka.protocol.partition_messages import MANY_GROUPS, list_offsets, offset_fetch
from kafka_sla.sources.kafka.protocol.partition_rows import Reader

METHODS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "manager.run": (BoundedConnectionManager.run, (None, None, None), {}),
    "manager.bootstrap": (BoundedConnectionManager.bootstrap, (None, 1), {}),
    "manager.call_soon": (BoundedConnectionManager.call_soon, (None, None, None), {}),
    "manager.get_connection": (
        BoundedConnectionManager.get_connection,
        (None, 1, 1),
        {"pop_on_close": True, "refresh_metadata_on_err": False},
    ),
    "manager.wait_for": (BoundedConnectionManager.wait_for, (None, None, 1), {}),
    "manager.send": (BoundedConnectionManager.send, (None, None), {"node_id": 1}),
    "manager.close": (BoundedConnectionManager.close, (None, 1), {}),
    "net.sleep": (NetworkSelector.sleep, (None, 1), {}),
    "net.close": (NetworkSelector.close, (None,), {}),
    "cluster.brokers": (ClusterMetadata.brokers, (None,), {}),
    "cluster.bootstrap_brokers": (ClusterMetadata.bootstrap_brokers, (None,), {}),
    "cluster.refresh_metadata": (ClusterMetadata.refresh_metadata, (None,), {}),
    "message.with_header": (MetadataRequest.with_header, (None,), {"correlation_id": 1, "client_id": "x"}),
    "message.encode": (MetadataRequest.encode, (None,), {"framed": True, "header": True}),
    "message.decode": (MetadataRequest.decode, (b"",), {"version": 1, "header": True}),
}
"""What is called, and how."""


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_is_called_takes_what_it_is_given(name: str) -> None:
    method, given, named = METHODS[name]

    inspect.signature(method).bind(*given, **named)


def test_a_manager_knows_its_cluster_and_the_version_of_its_brokers() -> None:
    net = NetworkSelector()
    manager = BoundedConnectionManager(net, bootstrap_servers=["127.0.0.1:1"])

    assert isinstance(manager.cluster, ClusterMetadata)
    assert manager.broker_version is None
    manager.close()
    net.close()


def test_a_kerberos_login_begins_with_what_ours_gives_it() -> None:
    given = re.findall(r"self\.(\w+) = ", inspect.getsource(SaslMechanismGSSAPI.__init__))

    assert set(given) == {"_client_ctx", "_is_authenticated", "_is_done", "_next_token", "auth_id", "gssapi_name"}


@pytest.mark.parametrize("setting", ["request_timeout_ms", "max_in_flight_requests_per_connection", "client_id"])
def test_a_setting_of_the_connection_is_known(setting: str) -> None:
    assert setting in BoundedConnectionManager.DEFAULT_CONFIG


@pytest.mark.parametrize("name", [name for name in kafka_python.__all__ if name.endswith("Request")])
def test_a_message_is_made_and_encoded(name: str) -> None:
    message = getattr(kafka_python, name)

    assert message(version=message.max_version).encode()


def _sent(request: Any, version: int) -> bytes:
    request.API_VERSION = version
    request.with_header(correlation_id=7, client_id="x")
    return bytes(request.encode(framed=True, header=True))


def _told(request: Any, answer: Any) -> Any:
    """What is made of the library's answer with this body, behind its header."""
    header = request.header
    body = answer.encode()
    buffer = KafkaBytes(len(body) + 5)
    buffer.write(bytes(5) + body)
    buffer.seek(5)
    return header.get_response_class().decode(buffer)


@pytest.mark.parametrize("version", range(1, ListOffsetsRequest.max_version + 1))
def test_offsets_are_asked_and_told_as_the_library_does_it_in_every_version(version: int) -> None:
    asked = {"orders": [(0, -2), (300, 2**40)], "ü": [(1, -1)]}
    columns = {topic: tuple(np.array(pairs, np.int64).T) for topic, pairs in asked.items()}
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    theirs = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[
            topic(name=name, partitions=[partition(partition_index=p, timestamp=at) for p, at in pairs])
            for name, pairs in asked.items()
        ],
    )
    request = list_offsets(columns)
    assert _sent(request, version) == _sent(theirs, version)

    of_topic = ListOffsetsResponse.ListOffsetsTopicResponse
    of_partition = of_topic.ListOffsetsPartitionResponse
    rows = [(0, 0, 2**40, 5), (300, 3, -1, -1)]
    partitions = [of_partition(partition_index=p, error_code=e, timestamp=t, offset=o) for p, e, t, o in rows]
    answer = ListOffsetsResponse(
        version=version,
        throttle_time_ms=9,
        topics=[of_topic(name="ü", partitions=[]), of_topic(name="orders", partitions=partitions)],
    )
    told = _told(request, answer)
    assert told.throttle_time_ms == (9 if version >= 2 else 0)
    assert [(name, [row[:4] for row in found.tolist()]) for name, found in told.topics] == [("ü", []), ("orders", rows)]


@pytest.mark.parametrize(
    "metadata", [("", "", ""), ("m" * 200, "m" * 200, "m" * 200), ("", "xyz", None), ("ab", "c" * 130, "")]
)
def test_what_groups_committed_is_told_whatever_they_wrote_beside_it(metadata: tuple[str | None, ...]) -> None:
    group, topic = (
        OffsetFetchResponse.OffsetFetchResponseGroup,
        OffsetFetchResponse.OffsetFetchResponseGroup.OffsetFetchResponseTopics,
    )
    partition = topic.OffsetFetchResponsePartitions
    rows = [(number, 2**40 + number, number % 2) for number in range(3)]
    partitions = [
        partition(partition_index=p, committed_offset=o, committed_leader_epoch=1, metadata=text, error_code=e)
        for (p, o, e), text in zip(rows, metadata, strict=True)
    ]
    groups = [
        group(group_id="billing", topics=[topic(name="orders", partitions=partitions)], error_code=0),
        group(group_id="ü", topics=[], error_code=16),
    ]
    request = offset_fetch(["billing", "ü"])
    request.API_VERSION = MANY_GROUPS
    request.with_header(correlation_id=7, client_id="x")

    told = _told(request, OffsetFetchResponse(version=MANY_GROUPS, throttle_time_ms=4, groups=groups))

    assert told.throttle_time_ms == 4
    assert [(one.group_id, one.error_code) for one in told.groups] == [("billing", 0), ("ü", 16)]
    ((name, found),) = told.groups[0].topics
    assert (name, found[["partition", "offset", "error"]].tolist()) == ("orders", rows)


def test_tags_that_a_newer_broker_adds_are_passed_over() -> None:
    plain = (
        b"\x03"
        + b"".join(struct.pack(">i", number) + tags for number, tags in enumerate((b"\0", b"\x01\x00\x02ab")))
        + b"\0"
    )
    reader = Reader(memoryview(plain), flexible=True)

    assert reader.rows([("partition", "i")]).tolist() == [(0,), (1,)]
    reader.end()


@pytest.mark.parametrize("size", [0, 3, 11])
def test_an_answer_that_ends_too_early_is_an_error_that_the_library_takes_for_one(size: int) -> None:
    request = offset_fetch(["billing"])
    request.API_VERSION = MANY_GROUPS
    request.with_header()
    buffer = KafkaBytes(size)
    buffer.write(bytes([0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9][:size]))
    buffer.seek(0)

    with pytest.raises((ValueError, struct.error)):
        request.header.get_response_class().decode(buffer)
