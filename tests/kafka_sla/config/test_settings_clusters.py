"""Replication flows and checkpoints in the configuration: what they mean, and how their mistakes are told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.errors import SettingsError
from kafka_sla.model.entities import Checkpoint, Patterns, ReplicationFlow

SLA = {"name": "copies", "groups": ["prod->backup"], "max_latency": "30s", "cluster": "prod"}


def load(tmp_path: Path, prod: dict[str, Any], **more: Any) -> Settings:
    path = tmp_path / "kafka_sla.yml"
    clusters = {"prod": {"connection": "kafka_prod"} | prod, "backup": {"connection": "kafka_backup"}, "old": None}
    path.write_text(yaml.safe_dump({"clusters": clusters, "slas": more.get("slas", [SLA])}))
    return load_settings(path)


def mistakes(tmp_path: Path, prod: dict[str, Any], **more: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, prod, **more)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()[1:]]


def test_a_flow_is_read_from_mirror_makers_default_topic_and_named_after_its_clusters(tmp_path: Path) -> None:
    cluster = load(tmp_path, {"groups": ["payments"], "replication": [{"to": "backup"}]}).cluster("prod")

    topic, every = "mm2-offsets.prod.internal", Patterns(("(?!__).*",))
    assert cluster.replication == (ReplicationFlow("prod->backup", "backup", topic, prefix="prod.", topics=every),)
    assert cluster.groups.matches("prod->backup"), "a flow is a consumer group of its cluster, whatever `groups` says"


def test_a_flow_may_be_read_from_connect_with_the_names_kept_and_no_lag_reported(tmp_path: Path) -> None:
    keys = {
        "to": "backup",
        "name": "dr",
        "connect": "connect_dr",
        "connector": "copy",
        "prefix": "",
        "topics": ["o*"],
        "refresh_interval": -1,
        "ttl": "5m",
    }
    (flow,) = load(tmp_path, {"replication": [keys]}, slas=[]).cluster("prod").replication

    assert flow == ReplicationFlow("dr", "backup", None, "connect_dr", "copy", Patterns(("o.*",)), "", None, 300_000)


@pytest.mark.parametrize("every", ["15sec", "-1", -2, -1.0, True])
def test_how_often_lag_is_taken_that_is_neither_a_duration_nor_never_is_one_error(tmp_path: Path, every: Any) -> None:
    (found,) = mistakes(tmp_path, {"replication": [{"to": "backup", "refresh_interval": every}]})

    where = "clusters.prod.replication[0].refresh_interval"
    assert re.search(rf"{re.escape(where)}: {every!r} is not a duration; allowed: .*; or -1, without quotes, f", found)


def test_a_checkpoint_is_a_consumer_group_too(tmp_path: Path) -> None:
    kept = {"checkpoints": [{"group": "enrich", "path": "s3://bucket/enrich"}], "replication": [{"to": "backup"}]}
    cluster = load(tmp_path, kept | {"groups": ["payments"]}).cluster("prod")

    assert cluster.checkpoints == (Checkpoint("enrich", "s3://bucket/enrich"),)
    assert cluster.groups.matches("enrich")


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (
            {"to": "bakcup"},
            "clusters.prod.replication[0].to: 'bakcup' is no other cluster; did you mean 'backup'?"
            " allowed: backup, old",
        ),
        ({"to": "prod"}, "clusters.prod.replication[0].to: 'prod' is no other cluster; allowed: backup, old"),
        (
            {"to": "old"},
            "clusters.prod.replication[0].to: 'old' has no connection, so the offsets topic cannot be read;"
            " allowed: one that has, or connect",
        ),
        (
            {"to": "backup", "connect": "c", "offsets_topic": "t"},
            "clusters.prod.replication[0].connect: given together with 'offsets_topic'; allowed: one of the two",
        ),
    ],
)
def test_a_wrong_flow_is_told_with_its_cure(tmp_path: Path, flow: dict[str, Any], told: str) -> None:
    assert mistakes(tmp_path, {"replication": [flow]}, slas=[]) == [told]


def test_a_flow_to_a_cluster_without_connection_may_be_asked_of_connect(tmp_path: Path) -> None:
    (flow,) = load(tmp_path, {"replication": [{"to": "old", "connect": "c"}]}, slas=[]).cluster("prod").replication

    assert (flow.target, flow.connect, flow.offsets_topic) == ("old", "c", None)


def test_two_consumers_of_one_name_are_refused(tmp_path: Path) -> None:
    kept = {
        "replication": [{"to": "backup"}, {"to": "backup"}],
        "checkpoints": [{"group": "prod->backup", "path": "/c"}],
    }
    told = "'prod->backup' names two consumers; allowed: a name that no other flow or checkpoint has"

    assert sorted(mistakes(tmp_path, kept)) == [
        f"clusters.prod.checkpoints[0].group: {told}",
        f"clusters.prod.replication[1].name: {told}",
    ]


def test_a_cluster_of_imported_facts_has_nothing_beside_it_to_read(tmp_path: Path) -> None:
    kept = {"connection": None, "checkpoints": [{"group": "enrich", "path": "/c"}]}

    assert mistakes(tmp_path, kept, slas=[]) == [
        "clusters.prod.checkpoints: given without 'connection'; allowed: on clusters that are read, not only imported"
    ]


def test_a_cluster_is_sampled_as_often_as_it_says(tmp_path: Path) -> None:
    settings = load(tmp_path, {"sample_every": "5s"})

    assert [settings.cluster(name).sample_every_ms for name in ("prod", "backup")] == [5_000, None]


@pytest.mark.parametrize(
    ("prod", "told"),
    [
        ({"sample_every": "100ms"}, "'100ms' is out of range; allowed: 1s to 1m, such as 5s"),
        ({"sample_every": "5m"}, "'5m' is out of range; allowed: 1s to 1m, such as 5s"),
        (
            {"connection": None, "sample_every": "5s"},
            "given without 'connection'; allowed: on clusters that are read, not only imported",
        ),
    ],
)
def test_a_cluster_that_cannot_be_sampled_so_is_told_why(tmp_path: Path, prod: dict[str, Any], told: str) -> None:
    assert mistakes(tmp_path, prod, slas=[]) == [f"clusters.prod.sample_every: {told}"]
