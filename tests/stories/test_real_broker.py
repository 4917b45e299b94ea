"""Stories that only a real broker can tell: transactions, deleted records, members, compaction.

A minute of traffic with windows of five seconds and thresholds of six seconds. `kafka-sla run` measures it twice, live:
before anything happens, and at the end.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from demo.broker import Cluster
from kafka_sla.model.entities import floor_time
from kafka_sla.text.timestamps import instant_text
from tests.stories.broker_world import traffic
from tests.stories.running import Command

FIRST_RUN, ACTS, LAST_RUN = 21, 35, 75
"""Seconds: when the traffic is measured, and when something happens in each story."""
STORIES = ("transaction", "deleted", "members", "compacted", "emptied")
WINDOW_MS = 5_000
CONFIGURATION = """
clusters: {real: {connection: kafka_stories, groups: ["story-*"], topics: ["story-*"]}}
window: 5s
defaults: {cluster: real, max_latency: 6s, for: 10s}
slas:
"""


@dataclass(frozen=True)
class Estate:
    """What the run published, by story."""

    verdicts: dict[str, list[str]]
    """In order of time."""
    misses: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def estate(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    folder = tmp_path_factory.mktemp("estate")
    slas = [f"  - {{name: {name}, group: story-{name}}}\n" for name in STORIES]
    (folder / "kafka_sla.yml").write_text(CONFIGURATION + "".join(slas))
    with traffic(kafka) as world, pytest.MonkeyPatch.context() as patch:
        for topic in ("transaction", "deleted", "kept", "left", "emptied"):
            world.create(f"story-{topic}")
        world.create("story-compacted", cleanup_policy="compact", segment_ms="5000", min_cleanable_dirty_ratio="0.01")
        for topic in ("transaction", "deleted", "kept", "left"):
            world.write(f"story-{topic}")
        world.write("story-compacted", keys=(b"a", b"b", b"c"))
        world.write("story-emptied", until=5)
        world.read("story-transaction", ["story-transaction"], isolation="read_committed")
        world.open_transaction("story-transaction", ACTS)
        world.read("story-deleted", ["story-deleted"], until=ACTS)
        world.delete_records("story-deleted", ACTS + 15)
        world.read("story-members", ["story-kept", "story-left"], until=ACTS, then=["story-kept"])
        world.read("story-compacted", ["story-compacted"], until=ACTS)
        world.read("story-emptied", ["story-emptied"])
        world.delete_records("story-emptied", ACTS)
        patch.setenv("AIRFLOW_CONN_KAFKA_STORIES", json.dumps({"conn_type": "kafka", "extra": kafka.client()}))
        edge = floor_time(datetime.fromtimestamp(world.started_at, UTC), WINDOW_MS) + timedelta(seconds=10)
        for seconds in (FIRST_RUN, LAST_RUN):
            world.sleep_until(seconds)
            begin, edge = edge, floor_time(datetime.now(UTC), WINDOW_MS)
            Command(folder).run("run", "--from", instant_text(begin), "--to", instant_text(edge))
    return read_estate(folder)


def read_estate(folder: Path) -> Estate:
    command, path = Command(folder), folder / "sla_windows.csv"
    command.run("export", "sla_windows", "--output", str(path))
    estate = Estate({name: [] for name in STORIES}, {name: [] for name in STORIES})
    with path.open(newline="") as file:
        for row in sorted(csv.DictReader(file), key=lambda row: row["window_start"]):
            estate.verdicts[row["sla"]].append(row["verdict"])
    for miss in json.loads(command.run("misses", "--json")):
        estate.misses[miss["sla"]].append(miss)
    return estate


def test_an_open_transaction_holds_up_a_read_committed_group(estate: Estate) -> None:
    """Plain records pile up behind a transaction that nobody ends. They certainly wait, and the miss names why."""
    assert estate.verdicts["transaction"][-3:] == ["bad"] * 3
    (miss,) = estate.misses["transaction"]
    assert (miss["end"], miss["evidence"]["cause"]) == (None, "open_transaction")
    assert "producer" in miss["evidence"]["sentence"]


def test_records_deleted_under_a_stopped_consumer_do_not_hide_the_later_ones(estate: Estate) -> None:
    """The consumer stops, all records are deleted, and new ones are written and not read."""
    assert estate.verdicts["deleted"][-3:] == ["bad"] * 3
    assert [miss["end"] for miss in estate.misses["deleted"]] == [None]


def test_a_topic_without_an_assigned_member_is_named_as_left(estate: Estate) -> None:
    """The only member has subscribed to another topic; the offset for the old one remains."""
    assert estate.verdicts["members"][-3:] == ["bad"] * 3
    (miss,) = estate.misses["members"]
    assert miss["evidence"]["cause"] == "left_topic"
    assert "story-left" in miss["evidence"]["sentence"]


def test_a_stop_on_a_compacted_topic_is_visible(estate: Estate) -> None:
    """Three keys are written again and again; then the consumer is gone. Compaction hides how long records waited, but
    the healthy time before it is known, and nothing after it looks good."""
    assert "good" in estate.verdicts["compacted"][:4]
    assert {"good", "excluded"} & set(estate.verdicts["compacted"][-3:]) == set()


def test_an_emptied_quiet_topic_stays_good(estate: Estate) -> None:
    """Everything was read, then deleted. Nothing is written, and the consumer is alive: two equal log ends prove it."""
    assert set(estate.verdicts["emptied"][2:]) == {"good"}
    assert estate.misses["emptied"] == []
