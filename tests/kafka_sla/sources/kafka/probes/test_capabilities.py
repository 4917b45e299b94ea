"""Brokers that can do less: the snapshot still tells the truth, and `check` names what is missing and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from demo.broker import Cluster as Broker
from demo.degraded_broker import DESCRIBE_CONFIGS, LIST_GROUPS, LIST_OFFSETS, OFFSET_FETCH, DegradedBroker
from kafka_sla.model.entities import Cluster, Connection, OffsetLookups, Patterns
from kafka_sla.sources.kafka.probes.capabilities import Finding
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot
from kafka_sla.text.name_patterns import parse_patterns
from tests.kafka_sla.sources.kafka.traffic import commit, produce, this_minute, topic

UNSUPPORTED_VERSION, NOT_ALLOWED = 35, 29


@pytest.fixture
def orders(kafka: Broker) -> str:
    """A topic with ten records of the last ten seconds, of which two groups have read 4 and 7."""
    name = topic(kafka)
    now = int(time.time() * 1000)
    produce(kafka, name, [now - 10_000 + 1000 * second for second in range(10)])
    for group, position in (("billing", 4), ("fraud-alerts", 7)):
        commit(kafka, f"{group}.{name}", name, position)
    return name


def look(broker: DegradedBroker, name: str, groups: Patterns | None = None) -> Snapshot:
    return snapshot(
        Cluster("managed", "kafka_managed"),
        Connection("kafka_managed", extra=broker.client()),
        this_minute(),
        window_ms=60_000,
        groups=groups or Patterns((f".*{name}",)),
        topics=Patterns((name,)),
        live=True,
        offset_lookups=OffsetLookups(),
    )


def found(broker: DegradedBroker, name: str) -> list[Finding]:
    cluster = Cluster("managed", "kafka_managed", groups=Patterns((f".*{name}",)), topics=Patterns((name,)))
    return probe(cluster, Connection("kafka_managed", extra=broker.client()))


def positions(seen: Snapshot) -> set[int]:
    return {row["committed_offset"] for row in seen.committed_offsets.to_pylist()}


def each_partition(code: int) -> Callable[[Any], None]:
    """Lookups by time are answered with this error; starts and ends as ever."""

    def change(answer: Any) -> None:
        for one in (one for part in answer.topics for one in part.partitions):
            if one.timestamp >= 0 or one.offset < 0:
                one.error_code, one.offset, one.timestamp = code, -1, -1

    return change


@pytest.mark.parametrize("degraded", [{"newest": {OFFSET_FETCH: 7}}, {"hangs_up_from": {OFFSET_FETCH: 8}}])
def test_committed_offsets_are_read_group_by_group_where_brokers_cannot_do_more(
    kafka: Broker, orders: str, degraded: dict[str, Any]
) -> None:
    with DegradedBroker(kafka.bootstrap, **degraded) as broker:
        seen, findings = look(broker, orders), found(broker, orders)

    assert (positions(seen), seen.notes) == ({4, 7}, ())
    assert [f.cure for f in findings if "OffsetFetch" in f.text] == [
        "a snapshot then takes one request for each group instead of one for 500: nothing is less exact"
    ]
    assert all(finding.ok for finding in findings)


@pytest.mark.parametrize("code", [UNSUPPORTED_VERSION, 0])
def test_without_lookups_by_time_log_ends_come_from_polls_and_nothing_is_invented(
    kafka: Broker, orders: str, code: int
) -> None:
    """Code 0: records without timestamps, so that every lookup answers that there is none."""
    with DegradedBroker(kafka.bootstrap, changes={LIST_OFFSETS: each_partition(code)}) as broker:
        seen, findings = look(broker, orders), found(broker, orders)

    assert positions(seen) == {4, 7}
    assert {(row["log_end_offset"], row["source"]) for row in seen.log_offsets.to_pylist()} == {(10, "snapshot")}
    assert any("offsets cannot be looked up by time in 1 partitions" in note for note in seen.notes)
    (missing,) = [finding for finding in findings if "looked up by time" in finding.text]
    assert missing.wants_samples and "log ends are then known from polls only" in str(missing.cure)


def test_without_settings_of_topics_the_rest_is_read(kafka: Broker, orders: str) -> None:
    with DegradedBroker(kafka.bootstrap, newest={DESCRIBE_CONFIGS: -1}) as broker:
        seen, findings = look(broker, orders), found(broker, orders)

    assert (positions(seen), seen.topic_configs.num_rows) == ({4, 7}, 0)
    assert any("the settings of 1 topic cannot be read" in note for note in seen.notes)
    assert not any("grant" in note for note in seen.notes)
    assert any("retention and cleanup policies are unknown" in str(finding.cure) for finding in findings)


def test_settings_that_lack_a_key_count_as_unknown(kafka: Broker, orders: str) -> None:
    def without_retention(answer: Any) -> None:
        for result in answer.results:
            result.configs = [entry for entry in result.configs if entry.name != "retention.ms"]

    with DegradedBroker(kafka.bootstrap, changes={DESCRIBE_CONFIGS: without_retention}) as broker:
        seen = look(broker, orders)

    assert seen.topic_configs.num_rows == 0
    assert any("answered without retention.ms" in note for note in seen.notes)


def test_hidden_groups_are_known_from_the_commit_log_alone(kafka: Broker, orders: str) -> None:
    def hide(answer: Any) -> None:
        answer.groups = []

    with DegradedBroker(kafka.bootstrap, changes={LIST_GROUPS: hide}) as broker:
        seen, findings = look(broker, orders), found(broker, orders)

    assert {row["committed_offset"] for row in seen.commits.to_pylist()} == {4, 7}
    assert [f.text for f in findings if not f.ok] == ["no consumer group matches, or none may be seen"]


def test_a_group_that_is_named_in_full_needs_no_list(kafka: Broker, orders: str) -> None:
    """As at services that list running groups only; a group that is not there at all is none."""

    def hide(answer: Any) -> None:
        answer.groups = []

    named = parse_patterns([f"billing.{orders}", "no-such-group"])
    with DegradedBroker(
        kafka.bootstrap, changes={LIST_GROUPS: hide}, hidden=frozenset({"__consumer_offsets"})
    ) as broker:
        seen = look(broker, orders, named)

    assert positions(seen) == {4}
    assert [(row["group"], row["state"]) for row in seen.group_states.to_pylist()] == [(f"billing.{orders}", "Unknown")]


def test_a_commit_log_that_a_service_hides_proves_nothing(kafka: Broker, orders: str) -> None:
    """As if it were not there: that nobody has committed is then no conclusion."""
    with DegradedBroker(kafka.bootstrap, hidden=frozenset({"__consumer_offsets"})) as broker:
        seen, findings = look(broker, orders), found(broker, orders)

    assert {(r["committed_offset"], r["source"]) for r in seen.committed_offsets.to_pylist()} == {
        (4, "snapshot"),
        (7, "snapshot"),
    }
    assert any("__consumer_offsets may not be read (UNKNOWN_TOPIC_OR_PARTITION)" in note for note in seen.notes)
    (missing,) = [finding for finding in findings if not finding.ok]
    assert missing.wants_samples and "sample_every" in str(missing.cure)
