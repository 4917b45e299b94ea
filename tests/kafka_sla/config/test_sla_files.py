"""SLA files of teams beside the configuration: one document, one report of all mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.errors import SettingsError

CONFIG = """\
clusters: {eu-west: {}, us-east: {}}
defaults: {cluster: eu-west, max_latency: 30s, for: 2m, objective: 99%, recipients: [platform@example.com]}
slas:
  - {name: orders, group: orders-service, topic: orders.placed}
"""


def configured(folder: Path, **files: str) -> Path:
    (folder / "slas.d").mkdir()
    for name, text in files.items():
        (folder / "slas.d" / f"{name}.yml").write_text(text)
    path = folder / "kafka_sla.yml"
    path.write_text(CONFIG)
    return path


def test_slas_of_all_files_are_one_list_and_a_files_defaults_go_before_those_of_all(tmp_path: Path) -> None:
    path = configured(
        tmp_path,
        payments="defaults: {team: payments, recipients: [payments@example.com]}\n"
        "slas:\n  - {name: alerts, group: billing.alerts, topic: billing.alerts-authorised-v2}\n",
        logistics="slas:\n"
        "  - {name: parcels, cluster: us-east, group: parcels, topic: parcels.shipped, max_latency: 5m}\n",
    )
    slas = load_settings(path).slas

    assert [(s.name, s.cluster, s.team, s.max_latency_ms, s.recipients) for s in slas] == [
        ("orders", "eu-west", "", 30_000, ("platform@example.com",)),
        ("parcels", "us-east", "", 300_000, ("platform@example.com",)),
        ("alerts", "eu-west", "payments", 30_000, ("payments@example.com",)),
    ]


def test_mistakes_of_all_files_are_reported_together_by_file_and_line(tmp_path: Path) -> None:
    path = configured(
        tmp_path,
        logistics="slas:\n  - {name: parcels, group: parcels, topic: parcels.shipped}\n"
        "  - name: returns\n    group: returns\n    topic: parcels.returned\n    max_latency: soon\n",
        payments="window: 5m\nslas:\n  - {name: orders, group: billing.alerts, topic: billing.alerts-authorised-v2}\n",
        search="slas: [\n",
    )
    with pytest.raises(SettingsError) as caught:
        load_settings(path)

    message = str(caught.value)
    assert "4 errors" in message
    assert "slas.d/logistics.yml, line 6: slas[1].max_latency: 'soon'" in message
    assert "slas.d/payments.yml, line 1: window: belongs in the configuration" in message
    assert "slas.d/payments.yml, line 3: slas[0].name" in message
    assert "slas.d/search.yml, line 2: not YAML" in message
