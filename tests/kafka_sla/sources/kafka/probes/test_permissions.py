"""What a refusal costs, and what is said about it; on a broker behind TLS, SASL and access lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from time import monotonic, sleep

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from demo.broker import Cluster as Broker
from demo.streams_app import StreamsApp
from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection, OffsetLookups, Patterns, epoch_ms
from kafka_sla.sources.kafka.probes.permissions import Finding, probe
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot
from tests.kafka_sla.sources.kafka.traffic import admin, commit, look, points, produce, this_minute, topic, untrue

READ, DESCRIBE, CONFIGS = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALL = "*"
LOG = "__consumer_offsets"
OF_READER = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, "User:reader", None, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture
def times() -> list[int]:
    """When the records of `lagging` were produced."""
    return [epoch_ms(this_minute().start) - 400_000 + 1_000 * second for second in range(200)]


@pytest.fixture
def lagging(kafka_sasl: Broker, times: list[int]) -> Iterator[str]:
    """A topic whose group `g-<topic>` stands at record 100 of 200; afterwards the reader may do nothing again."""
    name = topic(kafka_sasl)
    produce(kafka_sasl, name, times)
    commit(kafka_sasl, f"g-{name}", name, 100)
    yield name
    for removed in admin(kafka_sasl).delete_acls([OF_READER]).values():
        removed.result(120)


def grant(broker: Broker, *rights: tuple[ResourceType, str, AclOperation]) -> None:
    wanted = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:reader", ALL, operation, AclPermissionType.ALLOW)
        for kind, name, operation in rights
    ]
    client = admin(broker)
    for granted in client.create_acls(wanted).values():
        granted.result(120)
    # The controller has answered; the broker applies what it was told a moment later, or seconds later when it is busy.
    until = monotonic() + 180
    while not set(wanted) <= set(client.describe_acls(OF_READER).result(120)):
        assert monotonic() < until, "the broker never applied the access list"
        sleep(0.05)


def seen_by_reader(broker: Broker, name: str) -> Snapshot:
    return look(broker, this_minute(), name, groups=f"g-{name}", live=True, user="reader")


def probed(broker: Broker, user: str = "reader", **wrong: str) -> list[Finding]:
    extra = {**broker.client(user), **{key.replace("_", "."): value for key, value in wrong.items()}}
    return probe(Cluster("secure", "kafka_secure"), Connection("kafka_secure", extra=extra))


def test_with_all_permissions_nothing_is_noted(kafka_sasl: Broker, lagging: str) -> None:
    grant(kafka_sasl, (TOPIC, ALL, READ), (TOPIC, ALL, CONFIGS), (GROUP, ALL, DESCRIBE))

    seen = seen_by_reader(kafka_sasl, lagging)

    assert seen.notes == ()
    assert seen.commits.num_rows == 1
    assert all(finding.ok and finding.cure is None for finding in probed(kafka_sasl))


def test_committed_offsets_are_counted_by_partition(kafka_sasl: Broker) -> None:
    name = topic(kafka_sasl, 3)
    for partition in range(3):
        commit(kafka_sasl, f"a-{name}", name, 0, partition)
    commit(kafka_sasl, f"b-{name}", name, 0, 1)

    def counted(group: str) -> str:
        seen = Cluster("secure", "kafka_secure", groups=Patterns((group,)))
        found = probe(seen, Connection("kafka_secure", extra=dict(kafka_sasl.client())))
        (told,) = [finding.text for finding in found if " match" in finding.text]
        return told

    assert counted(f".-{name}") == "2 consumer groups match, with 4 committed offsets"
    assert counted(f"b-{name}") == "1 consumer group matches, with 1 committed offset"


def test_without_the_commit_log_positions_come_from_the_snapshot(
    kafka_sasl: Broker, lagging: str, times: list[int]
) -> None:
    grant(kafka_sasl, (TOPIC, lagging, READ), (TOPIC, lagging, CONFIGS), (GROUP, ALL, DESCRIBE))

    seen = seen_by_reader(kafka_sasl, lagging)

    assert [(r["committed_offset"], r["source"]) for r in seen.committed_offsets.to_pylist()] == [(100, "snapshot")]
    assert seen.commits.num_rows == 0
    (note,) = seen.notes
    assert "__consumer_offsets may not be read" in note and "grant READ" in note
    assert (times[100], 100) in points(seen, "record")
    (missing,) = [finding for finding in probed(kafka_sasl) if not finding.ok]
    assert str(missing.cure).startswith("grant READ and DESCRIBE on topic __consumer_offsets")


def test_a_commit_log_that_may_only_be_described_is_not_read(kafka_sasl: Broker, lagging: str) -> None:
    grant(kafka_sasl, (TOPIC, lagging, READ), (TOPIC, lagging, CONFIGS), (TOPIC, LOG, DESCRIBE), (GROUP, ALL, DESCRIBE))

    (note,) = seen_by_reader(kafka_sasl, lagging).notes

    assert "__consumer_offsets may not be read" in note


def test_without_read_on_the_topic_points_come_from_offset_lookups_alone(
    kafka_sasl: Broker, lagging: str, times: list[int]
) -> None:
    grant(kafka_sasl, (TOPIC, lagging, DESCRIBE), (TOPIC, lagging, CONFIGS), (TOPIC, LOG, READ), (GROUP, ALL, DESCRIBE))

    seen = seen_by_reader(kafka_sasl, lagging)

    assert any("exact record times were not read" in note and "grant READ" in note for note in seen.notes)
    assert untrue(points(seen, "list_offsets", "record"), times) == []
    assert [r["committed_offset"] for r in seen.committed_offsets.to_pylist()] == [100]


def test_settings_that_may_not_be_read_are_noted(kafka_sasl: Broker, lagging: str) -> None:
    grant(kafka_sasl, (TOPIC, ALL, READ), (GROUP, ALL, DESCRIBE))

    seen = seen_by_reader(kafka_sasl, lagging)

    assert seen.topic_configs.num_rows == 0
    assert any("grant DESCRIBE_CONFIGS" in note for note in seen.notes)


def test_who_may_not_describe_all_topics_of_a_streams_application_is_told_all_but_its_members(
    kafka_sasl: Broker, lagging: str
) -> None:
    grant(kafka_sasl, (TOPIC, lagging, READ), (TOPIC, lagging, CONFIGS), (TOPIC, LOG, READ), (GROUP, ALL, DESCRIBE))
    name, other, sink = f"app-{lagging}", topic(kafka_sasl), topic(kafka_sasl)
    commit(kafka_sasl, name, lagging, 100)

    with StreamsApp(kafka_sasl, name, [lagging, other], sink, "streams") as app:
        until = monotonic() + 120
        while app.state != "RUNNING" and monotonic() < until:
            sleep(0.5)
        seen = [
            look(kafka_sasl, this_minute(), lagging, groups=name, live=True, user=who) for who in ("admin", "reader")
        ]

    types = [[(row["type"], row["members"]) for row in one.group_states.to_pylist()] for one in seen]
    assert types == [[("streams", 1)], [("streams", None)]]
    assert [one.group_members.num_rows for one in seen] == [1, 0]
    assert all(one.committed_offsets.num_rows for one in seen)


def test_without_any_permission_nothing_is_invented(kafka_sasl: Broker, lagging: str) -> None:
    seen = seen_by_reader(kafka_sasl, lagging)

    assert seen.log_offsets.num_rows + seen.committed_offsets.num_rows + seen.group_states.num_rows == 0
    assert any("grant DESCRIBE on the topics" in note for note in seen.notes)
    assert any("grant DESCRIBE on the groups" in note for note in seen.notes)
    assert {finding.ok for finding in probed(kafka_sasl)} == {True, False}
    assert all(finding.cure for finding in probed(kafka_sasl) if not finding.ok)


def test_scram_works_as_plain_does(kafka_sasl: Broker) -> None:
    password = kafka_sasl.client("admin")["sasl.password"]
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsert = UserScramCredentialUpsertion("admin", info, password.encode())
    admin(kafka_sasl).alter_user_scram_credentials([upsert])["admin"].result(120)

    assert probed(kafka_sasl, "admin", sasl_mechanism="SCRAM-SHA-512")[0].ok


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sasl_password": "not-the-password"}, "refused the login of 'admin'"),
        ({"security_protocol": "PLAINTEXT", "sasl_password": "not-the-password"}, "a login is given but"),
        ({"sasl_mechanism": "GSSAPI"}, "GSSAPI"),
        ({"ssl_ca_location": "/no/such/file"}, "no file '/no/such/file'"),
        ({"bootstrap_servers": "127.0.0.1:1"}, "nothing answers at 127.0.0.1:1"),
        ({"bootstrap_servers": "no-such-host.invalid:9092"}, "the name 'no-such-host.invalid' is not known"),
        ({"sasl_secret": "not-the-password"}, "sasl.secret: unknown"),
    ],
)
def test_what_is_wrong_is_said_with_a_cure_and_without_the_password(
    kafka_sasl: Broker, wrong: dict[str, str], told: str
) -> None:
    (finding,) = probed(kafka_sasl, "admin", **wrong)

    assert not finding.ok
    assert "'secure'" in finding.text and "'kafka_secure'" in finding.text
    assert told in finding.text
    assert finding.cure
    for secret in (kafka_sasl.client("admin")["sasl.password"], "not-the-password"):
        assert secret not in finding.text


def test_an_authority_that_did_not_sign_is_told(kafka_sasl: Broker) -> None:
    extra = {key: value for key, value in kafka_sasl.client("admin").items() if key != "ssl.ca.location"}

    (finding,) = probe(Cluster("secure", "kafka_secure"), Connection("kafka_secure", extra=extra))

    assert "is not trusted" in finding.text and "ssl.ca.location" in finding.text


def test_plain_text_to_a_tls_listener_is_told(kafka_sasl: Broker) -> None:
    extra = {"bootstrap.servers": kafka_sasl.bootstrap}

    (finding,) = probe(Cluster("secure", "kafka_secure"), Connection("kafka_secure", extra=extra))

    assert "does not talk Kafka over PLAINTEXT" in finding.text


def test_tls_to_a_plain_listener_is_told(kafka: Broker) -> None:
    extra = {"bootstrap.servers": kafka.bootstrap, "security.protocol": "SSL"}

    (finding,) = probe(Cluster("plain", "kafka_plain"), Connection("kafka_plain", extra=extra))

    assert "does not talk TLS" in finding.text


def test_a_snapshot_of_an_unreachable_cluster_raises() -> None:
    with pytest.raises(KafkaUnreachable, match=r"cluster 'gone' .connection 'kafka_gone'.: nothing answers"):
        snapshot(
            Cluster("gone", "kafka_gone"),
            Connection("kafka_gone", host="127.0.0.1", port=1),
            this_minute(),
            window_ms=60_000,
            groups=Patterns(),
            topics=Patterns(),
            live=True,
            offset_lookups=OffsetLookups(),
        )


def test_time_is_not_wasted_on_a_wrong_password(kafka_sasl: Broker) -> None:
    began = datetime.now(UTC)

    probed(kafka_sasl, "admin", sasl_password="not-the-password")

    assert (datetime.now(UTC) - began).total_seconds() < 5
