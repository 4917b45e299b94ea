from __future__ import annotations

from pathlib import Path

from demo.broker import Cluster
from demo.neighbours import Neighbours
from kafka_sla.config.settings import load_settings

TEMPLATE = Path(__file__).resolve().parents[2] / "demo" / "kafka_sla.yml"


def test_the_slow_brokers_are_not_measured_until_they_run(tmp_path: Path) -> None:
    neighbours = Neighbours(Cluster(folder=tmp_path / "source"), Cluster(folder=tmp_path / "backup"), roomy=True)

    settings = load_settings(neighbours.configuration(TEMPLATE, tmp_path / "kafka_sla.yml"))

    assert ["demo", "backup"] == [cluster.name for cluster in settings.clusters]
    assert {"kafka_backup"} == set(neighbours.connections())
