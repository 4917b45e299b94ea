"""Keys of an earlier version are refused, each with the key that replaced it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.errors import SettingsError

FORMER = """\
clusters:
  prod:
    connection: kafka_prod
    exporters: {1: "http://broker-1:9404/metrics"}
slas:
  - name: payments within 30 seconds
    group: payments-service
    max_latency: 30s
    unread_expires_within: 6h
    steady_state: {grace: 1h}
lateness: {recipients: [platform@example.com]}
offset_lookups: {floor: 100ms, per_pass: 1000}
look_ups: {}
"""


def test_every_former_key_is_refused_with_the_one_that_replaced_it(tmp_path: Path) -> None:
    (file := tmp_path / "kafka_sla.yml").write_text(FORMER)

    with pytest.raises(SettingsError) as refused:
        load_settings(file)
    assert [line.split(": ", 1)[1] for line in str(refused.value).splitlines()[1:]] == [
        "clusters.prod.exporters: exporters is now jmx_exporters",
        "slas[0].unread_expires_within: unread_expires_within is now min_time_to_expiry",
        "slas[0].steady_state.grace: grace is now grace_period",
        "lateness: lateness is now freshness_alert",
        "offset_lookups.floor: floor is now min_gap",
        "offset_lookups.per_pass: per_pass is now max_per_hour",
        "look_ups: look_ups is now offset_lookups",
    ]
