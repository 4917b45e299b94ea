"""Which interval, clusters and SLAs a run from the command line is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kafka_sla.cli.local_run import Run, plan
from kafka_sla.config.settings import Settings
from kafka_sla.errors import BadRequest, SettingsError
from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SteadyState

NOW = datetime(2026, 11, 2, 12, 0, 30, tzinfo=UTC)


def sla(name: str, cluster: str) -> Sla:
    return Sla(name, cluster, Patterns(), Patterns(), 30_000, 120_000, 0.99, SteadyState(30_000))


SETTINGS = Settings((Cluster("a", None), Cluster("b", None)), (sla("one", "a"), sla("two", "b")))


def asked(
    start: datetime, end: datetime, clusters: tuple[str, ...] = (), slas: tuple[str, ...] = (), now: datetime = NOW
) -> Run:
    return plan(SETTINGS, Interval(start, end), clusters, slas, now)


def ago(minutes: float) -> datetime:
    return datetime(2026, 11, 2, 12, tzinfo=UTC) - timedelta(minutes=minutes)


def test_nothing_named_means_every_cluster_and_sla() -> None:
    run = asked(ago(5), ago(0))
    assert (run.clusters, [s.name for s in run.slas]) == (("a", "b"), ["one", "two"])


def test_a_cluster_brings_its_slas() -> None:
    run = asked(ago(5), ago(0), clusters=("b",))
    assert (run.clusters, [s.name for s in run.slas]) == (("b",), ["two"])


def test_an_sla_of_a_cluster_that_is_left_out_is_refused() -> None:
    with pytest.raises(BadRequest, match="'two' is not of the clusters a; name its cluster, too"):
        asked(ago(5), ago(0), clusters=("a",), slas=("two",))
    with pytest.raises(SettingsError, match="no cluster 'c'"):
        asked(ago(5), ago(0), clusters=("c",))


def test_a_snapshot_of_now_belongs_to_an_interval_that_has_just_ended_and_to_no_past_one() -> None:
    assert [asked(ago(10), ago(m)).live for m in (0, 4, 5)] == [True, True, False]


def test_an_interval_that_is_not_of_whole_windows_names_the_edge_before_it() -> None:
    with pytest.raises(
        BadRequest, match=r"--from 2026-11-02T11:54:30.000Z is not the edge of a window of 1m; .*11:54:00"
    ):
        asked(ago(5.5), ago(0))


def test_the_future_is_refused_with_the_newest_whole_window() -> None:
    with pytest.raises(
        BadRequest, match=r"--to is in the future; the newest whole window ended at 2026-11-02T12:00:00"
    ):
        asked(ago(5), ago(-1))
