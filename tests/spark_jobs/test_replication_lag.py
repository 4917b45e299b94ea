"""`replication_lag` from known flows: what counts as replicated, what is stale, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from kafka_sla.model.entities import Cluster, Interval, Patterns, ReplicationFlow
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, REPLICATION_LAG
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs import replication_lag
from tests.spark_jobs.conftest import Row, at, commit, point
from tests.spark_jobs.measuring import Facts, Measuring, of_expressions

FLOW = ReplicationFlow("A->B", "B", "mm2-offsets.A.internal", prefix="A.")
RARE = replace(FLOW, name="rare", refresh_interval_ms=120_000, prefix="")
SILENT = replace(FLOW, name="silent", refresh_interval_ms=None)
NAMED = replace(FLOW, name="named", topics=Patterns(("never-copied", "steady")))
DEAD = replace(FLOW, name="dead")
CLUSTER = Cluster("prod", None, replication=(FLOW, RARE, SILENT))
MINUTES = 4

Sighting = tuple[float, int | None]


class Scene:
    """One source partition: points of its log end, sightings of the flow, and the rows of latency that they give."""

    def __init__(
        self,
        topic: str,
        ends: list[tuple[float, int]],
        seen: list[Sighting],
        flow: str = "A->B",
        source: str = "mm2_offsets",
        why: str | None = None,
        **more: float,
    ) -> None:
        self.points = [point(t, offset, topic=topic, source="list_offsets") for t, offset in ends]
        self.commits = [commit(t, o, topic=topic, group=flow, source=source) for t, o in seen]
        self.latency = [self._row(topic, flow, 60 * i, ends, seen, why) | more for i in range(MINUTES)]

    @staticmethod
    def _row(
        topic: str, flow: str, start: float, ends: list[tuple[float, int]], seen: list[Sighting], why: str | None
    ) -> Row:
        last, position = max(((t, o) for t, o in seen if t < start + 60), default=(0.0, None))
        row = {"cluster": "prod", "group": flow, "topic": topic, "partition": 0, "window_start": at(start)}
        counts = {
            "records_consumed": 0,
            "negative_latency_records": 0,
            "unknown_latency_records": 0,
            "polled_only": False,
        }
        log_end = max((o for t, o in ends if t <= start + 60), default=None)
        return (
            row
            | counts
            | {
                "window_end": at(start + 60),
                "committed_offset": position,
                "last_commit_at": at(last),
                "log_end_offset": log_end,
                "unknown_reason": why,
            }
        )


def growing(start: float = 0, end: float = 240, per_second: int = 10) -> list[tuple[float, int]]:
    """A log that grows evenly, as it is known: at every window's end."""
    return [(float(t), int(max(0, min(t, end) - start)) * per_second) for t in range(0, 241, 60)]


SCENES = {
    # every 15 s the flow has copied what had been produced a second before
    "steady": Scene("steady", growing(), [(t - 1, 10 * (t - 1)) for t in range(15, 241, 15)]),
    "idle": Scene("idle", [(float(t), 100) for t in range(0, 241, 60)], [(5, 100)]),
    "stopped": Scene("stopped", growing(), [(t - 1, 10 * (t - 1)) for t in range(15, 61, 15)]),
    "woken": Scene(
        "woken",
        [(0, 100), (60, 100), (99, 100), (101, 150), (120, 150), (180, 150), (240, 150)],
        [(5, 100), (110, 150)],
    ),
    "reset": Scene("reset", growing(), [(10, 100), (20, None)]),
    "polled": Scene("polled", growing(per_second=1), [(3, 3), (123, 3)], source="connect_rest"),
    "trimmed": Scene("trimmed", [(float(t), 100) for t in range(0, 241, 60)], [(5, 20)], log_start_offset=90),
    "unknown": Scene("unknown", growing(), [(5, 20)], why="no log end offset is known in this window"),
    "rare": Scene("rare", growing(), [(t - 1, 10 * (t - 1)) for t in range(15, 241, 15)], flow="rare"),
    "silent": Scene("silent", growing(), [(5, 20)], flow="silent"),
    "no flow": Scene("no-flow", growing(), [(5, 20)], flow="billing"),
    "ahead": Scene("ahead", [(float(t), 100) for t in range(0, 241, 60)], [(5, 90), (70, 500)]),
    "jump": Scene("jump", [(0, 0), (50, 0), (60, 600), (120, 600), (180, 600), (240, 600)], [(5, 0), (52, 300)]),
    "timely": Scene(
        "timely",
        growing(),
        [(t - 1, 10 * (t - 1)) for t in range(15, 241, 15)],
        records_latency_ms=700.0,
        records_latency_max_ms=900.0,
        records_latency_avg_ms=800.0,
    ),
}


def facts_of(scenes: Iterable[Scene]) -> Facts:
    known = list(scenes)
    return {
        LOG_OFFSETS: [row for one in known for row in one.points],
        COMMITTED_OFFSETS: [row for one in known for row in one.commits],
    }


@pytest.fixture(scope="module")
def measuring(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Measuring:
    return Measuring(REPLICATION_LAG, of_expressions(spark, replication_lag.measure), tmp_path_factory.mktemp("facts"))


@pytest.fixture(scope="module")
def rows(measuring: Measuring) -> list[Row]:
    latency = [row for scene in SCENES.values() for row in scene.latency]
    return measuring.whole(facts_of(SCENES.values()), 0, 60 * MINUTES, (CLUSTER,), latency=latency)


def of(rows: list[Row], topic: str) -> list[Row]:
    return [row for row in rows if row["topic"] == topic]


def lags(rows: list[Row], topic: str) -> list[int | None]:
    return [row["replication_record_lag"] for row in of(rows, topic)]


def test_lag_is_what_is_not_on_the_target_and_the_last_replicated_offset_counts_as_there(rows: list[Row]) -> None:
    first = of(rows, "steady")[0]

    assert (first["replication_record_lag"], first["log_end_offset"]) == (10, 600)
    assert (first["last_replicated_offset"], first["last_replicated_at"]) == (589, at(59))
    assert (first["target"], first["target_topic"], first["flow"]) == ("B", "A.steady", "A->B")


def test_value_min_max_and_mean_are_of_the_refreshes_in_the_window(rows: list[Row]) -> None:
    second = of(rows, "woken")[1]

    assert second["replication_record_lag"] == 0
    assert (second["replication_record_lag_min"], second["replication_record_lag_max"]) == (0, 50)
    assert (second["replication_record_lag_avg"], second["refreshes"]) == (12.5, 4)


def test_an_idle_flow_has_lag_0_however_long_ago_it_copied_its_last_record(rows: list[Row]) -> None:
    assert lags(rows, "idle") == [0, 0, 0, 0]
    assert {(row["refreshes"], row["stale_refreshes"]) for row in of(rows, "idle")} == {(4, 0)}


def test_a_flow_that_stops_shows_its_growing_lag_for_the_ttl_and_is_then_unknown(rows: list[Row]) -> None:
    stopped = of(rows, "stopped")

    assert [(row["refreshes"], row["stale_refreshes"]) for row in stopped] == [(4, 0), (1, 3), (0, 4), (0, 4)]
    assert stopped[1]["replication_record_lag_max"] == 750 - 590
    assert [row["unknown_reason"] for row in stopped] == [None, *[replication_lag.STALE] * 3]
    assert stopped[3]["last_replicated_offset"] == 589, "what was seen last stays known"


def test_the_age_of_a_position_counts_from_when_there_was_something_else_to_copy(rows: list[Row]) -> None:
    """95 s after the last flush, but 6 s after the last moment at which nothing waited."""
    assert of(rows, "woken")[1]["replication_record_lag_max"] == 50


def test_a_deleted_position_is_unknown_and_says_so(rows: list[Row]) -> None:
    assert {(row["replication_record_lag"], row["unknown_reason"]) for row in of(rows, "reset")[1:]} == {
        (None, replication_lag.NO_POSITION)
    }


def test_every_poll_of_connect_makes_the_position_young_again(rows: list[Row]) -> None:
    """Connect answers the same position at 3 s and 123 s: it is known until 20 s after each."""
    assert [row["refreshes"] for row in of(rows, "polled")] == [1, 0, 1, 0]
    assert of(rows, "polled")[2]["replication_record_lag_max"] == 135 - 3


def test_records_that_retention_removed_are_not_waited_for(rows: list[Row]) -> None:
    assert of(rows, "trimmed")[0]["replication_record_lag_max"] == 10


def test_a_window_without_a_known_log_end_passes_its_reason_on(rows: list[Row]) -> None:
    assert {row["unknown_reason"] for row in of(rows, "unknown")} == {"no log end offset is known in this window"}
    assert {row["refreshes"] + row["stale_refreshes"] for row in of(rows, "unknown")} == {0}


def test_windows_between_rare_refreshes_are_unknown(rows: list[Row]) -> None:
    assert lags(rows, "rare") == [None, 10, None, 10]
    assert of(rows, "rare")[0]["unknown_reason"] == replication_lag.NO_REFRESH
    assert of(rows, "rare")[1]["target_topic"] == "rare", "the identity policy keeps the name"


def test_refresh_interval_minus_1_gives_no_rows_and_neither_does_a_group_that_is_no_flow(rows: list[Row]) -> None:
    assert of(rows, "silent") == of(rows, "no-flow") == []


def test_replication_latency_is_that_of_the_flow_s_records(rows: list[Row]) -> None:
    names = ("replication_latency_ms", "replication_latency_max_ms", "replication_latency_avg_ms")

    assert [of(rows, "timely")[0][name] for name in names] == [700.0, 900.0, 800.0]


def test_a_position_above_the_known_log_end_is_unknown(rows: list[Row]) -> None:
    assert [row["unknown_reason"] for row in of(rows, "ahead")[1:]] == [replication_lag.AHEAD] * 3
    assert lags(rows, "ahead")[1:] == [None] * 3
    assert of(rows, "jump")[0]["replication_record_lag_min"] == 0, "what lies between two points may have been there"


def test_a_partition_that_a_flow_never_copied_is_seen_and_unknown(measuring: Measuring) -> None:
    cluster = replace(CLUSTER, replication=(FLOW, NAMED, DEAD, SILENT))
    steady, lost = SCENES["steady"], [point(t, 50, topic="never-copied", partition=3) for t in (60, 240)]
    second = [point(t, 70, topic="steady", partition=1) for t in (120, 121)]
    known = {
        LOG_OFFSETS: [*steady.points, *lost, *second, point(60, 9, topic="__own")],
        COMMITTED_OFFSETS: steady.commits,
    }

    found = measuring.whole(known, 0, 240, (cluster,), latency=steady.latency)

    seen = {(r["flow"], r["topic"], r["partition"], r["window_start"]): r for r in found if r["partition"]}
    assert set(seen) == {
        *(("A->B", "steady", 1, at(t)) for t in (60, 120)),
        *((flow, "steady", 1, at(t)) for flow in ("named", "dead") for t in (60, 120)),
        *((flow, "never-copied", 3, at(t)) for flow in ("named", "dead") for t in (0, 180)),
    }
    assert {(r["unknown_reason"], r["replication_record_lag"]) for r in seen.values()} == {
        (replication_lag.NEVER_COPIED, None)
    }
    assert seen["named", "never-copied", 3, at(0)]["log_end_offset"] == 50
    assert found == measuring.in_pieces(known, 0, 240, 120, (cluster,), latency=steady.latency)


def test_a_job_without_reported_flows_makes_no_table() -> None:
    def job(*flows: ReplicationFlow) -> Job:
        replay = Replay(replace(CLUSTER, replication=flows), None)
        return Job("load", Interval(at(0), at(60)), 60_000, (replay,), (), {}, {}, "", {}, 0, 0)

    assert [replication_lag.wanted(job()), replication_lag.wanted(job(SILENT))] == [False, False]
    assert replication_lag.wanted(job(FLOW, SILENT))


def test_two_minutes_at_a_time_give_the_rows_of_the_whole_time(measuring: Measuring, rows: list[Row]) -> None:
    latency = [row for scene in SCENES.values() for row in scene.latency]

    assert rows == measuring.in_pieces(facts_of(SCENES.values()), 0, 60 * MINUTES, 120, (CLUSTER,), latency=latency)
