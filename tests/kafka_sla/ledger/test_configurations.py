"""Configurations that outlive the file they were read from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.ledger.ledger import Ledger

EVERY_KEY = """
clusters:
  prod:
    connection: kafka_prod
    non_consumed_offsets_groups: {billing.alerts-authorised-v2: [billing-alerts, audit]}
    replication: [{to: dr, connect: connect_prod}]
    checkpoints: [{group: billing-stream, path: /checkpoints/billing}]
  dr: {connection: kafka_dr, groups: ["billing-*", "!billing-test-*"]}
offset_lookups: {min_gap: 500ms}
freshness_alert: {recipients: [platform@example.com], after: 10m}
digests: [{name: the week, every: week, at: "07:30", time_zone: Europe/Berlin}]
slas:
  - name: alerts within 30 seconds
    cluster: prod
    group: billing-alerts
    topic: billing.alerts-authorised-v2
    max_latency: 30s
    for: 5m
    min_time_to_expiry: 2d
    recipients: [billing@example.com]
    maintenance:
      - {from: 2026-11-01T02:00:00Z, to: 2026-11-01T04:00:00Z, reason: broker upgrade}
      - {every: "saturday,sunday 23:00-01:00", time_zone: Europe/Berlin}
    notifiers: [{path: company.Chat, kwargs: {channel: "#billing", retries: 3, parts: [{text: "{{ message }}"}]}}]
"""


def test_a_frozen_configuration_is_the_one_that_was_read_whatever_becomes_of_the_file(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "kafka_sla.yml"
    file.write_text(EVERY_KEY)
    read = load_settings(file)
    digest = Ledger(store).configurations.freeze(read)
    file.unlink()

    assert Ledger(store).configurations.frozen(digest) == read


def test_the_same_content_is_kept_once_and_an_edited_one_beside_it(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kafka_sla.yml"
    digests = []
    for text in (EVERY_KEY, f"# a remark\n{EVERY_KEY}", EVERY_KEY.replace("max_latency: 30s", "max_latency: 5m")):
        file.write_text(text)
        digests.append(Ledger(store).configurations.freeze(load_settings(file)))

    assert digests[0] == digests[1] != digests[2]
    assert [Ledger(store).configurations.frozen(digest).slas[0].max_latency_ms for digest in digests] == [
        30_000,
        30_000,
        300_000,
    ]


def test_a_configuration_that_the_store_does_not_hold_is_named(store: Store) -> None:
    with pytest.raises(StoreError, match="no configuration c0ffee; clear the run from its first task on"):
        Ledger(store).configurations.frozen("c0ffee")


def test_the_newest_configuration_is_the_one_that_was_used_last(store: Store, tmp_path: Path) -> None:
    ledger, path = Ledger(store), tmp_path / "kafka_sla.yml"
    assert ledger.configurations.newest() is None
    for text in ("clusters: {eu: {}}\n", "clusters: {us: {}}\n", "clusters: {eu: {}}\n"):
        path.write_text(text)
        ledger.configurations.freeze(load_settings(path))
    newest = ledger.configurations.newest()
    assert newest is not None and [cluster.name for cluster in newest.clusters] == ["eu"]
