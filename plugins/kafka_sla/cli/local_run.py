"""One run of the pipeline without Airflow: all its steps in pieces that local Spark can hold. Measures nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.progress import note, step, warn
from kafka_sla.config.settings import Settings
from kafka_sla.errors import BadRequest, KafkaSlaError
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Connection, Interval, Sla, floor_time
from kafka_sla.pipeline import steps
from kafka_sla.spark.needs import need_jars, need_worker
from kafka_sla.spark.submit import REMOTE, run_spark
from kafka_sla.text.durations import duration_text
from kafka_sla.text.formatting import plural
from kafka_sla.text.timestamps import instant_text

_PIECE = timedelta(days=7)
"""Longer intervals are measured piece by piece: the same rows in less memory, each piece readable once it is done."""
_LIVE_FOR = timedelta(minutes=5)
"""A snapshot of now is taken for an interval that ended no longer ago: what Kafka says now is news of that time."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to measure and judge. `live`: a snapshot of now belongs to the interval; `notify`: mail what is new."""

    interval: Interval
    clusters: tuple[str, ...]
    slas: tuple[Sla, ...]
    live: bool
    notify: bool = False
    memory: str = "2g"


def plan(settings: Settings, interval: Interval, clusters: Sequence[str], slas: Sequence[str], now: datetime) -> Run:
    """The run of these clusters and SLAs (none named: all), or BadRequest. `now` decides `live` only."""
    _check_interval(interval, settings.window_ms, now)
    named = [settings.sla(name) for name in slas]
    wanted = [settings.cluster(name).name for name in clusters] or [c.name for c in settings.clusters]
    if strangers := [sla.name for sla in named if sla.cluster not in wanted]:
        raise BadRequest(f"the SLA {strangers[0]!r} is not of the clusters {', '.join(wanted)}; name its cluster, too")
    judged = named or [sla for sla in settings.slas if sla.cluster in wanted]
    return Run(interval, tuple(wanted), tuple(judged), now - interval.end <= _LIVE_FOR)


def execute(place: Workplace, run: Run) -> None:
    """Snapshot, measure, validate and publish the interval, judge every SLA, and tell of misses where asked to."""
    _need_worker()
    Lake(place.store).check_writable()
    smtp = place.smtp if run.notify and any(sla.recipients for sla in run.slas) else None
    for piece in run.interval.pieces(_PIECE):
        _publish(place, run, piece)
    judge(place, run, smtp)


def measure_again(place: Workplace, interval: Interval, clusters: Sequence[str]) -> None:
    """Measure, publish and judge an interval from stored facts alone."""
    _need_worker()
    slas = tuple(sla for sla in place.settings.slas if sla.cluster in clusters)
    run = Run(interval, tuple(clusters), slas, live=False)
    for piece in interval.pieces(_PIECE):
        _measure(place, run, piece)
    judge(place, run)


def _need_worker() -> None:
    """Before anything is asked of Kafka: a snapshot that nothing here can measure or validate keeps people waiting."""
    need_worker("pyspark", "great_expectations")
    if not os.environ.get(REMOTE):
        need_jars()


def judge(place: Workplace, run: Run, smtp: Connection | None = None) -> None:
    """Judge every SLA of the published interval, and tell of misses where asked to. An SLA that cannot be judged keeps
    nobody from hearing of the others; its error is raised after them."""
    failed = list(_evaluate(place, run))
    if run.notify:
        with step("notify"):
            names = [sla.name for sla in run.slas]
            url = place.settings.base_url
            steps.notify(place.settings, place.store, names, run.interval, smtp, url, login=place.login)
    if failed:
        raise failed[0]


def _evaluate(place: Workplace, run: Run) -> Iterator[Exception]:
    names = [sla.name for sla in run.slas]
    with step(f"evaluate {plural(len(names), 'SLA')}") as say:
        for name, found in steps.evaluate_all(place.settings, place.store, names, run.interval):
            say(name)
            if isinstance(found, Exception):
                warn(f"the SLA {name!r} was not judged: {found}")
                _keep_unjudged(place, name, run.interval, found)
                yield found
            elif found["damaged_files"]:
                warn(f"{name}: its sums lack {', '.join(found['damaged_files'])}, damaged: run kafka-sla store check")


def _keep_unjudged(place: Workplace, name: str, interval: Interval, error: Exception) -> None:
    try:
        steps.keep_unjudged(place.store, name, interval, error)
    except KafkaSlaError as unkept:
        warn(f"why the SLA {name!r} was not judged could not be kept: {unkept}")


def _publish(place: Workplace, run: Run, piece: Interval) -> None:
    for name in run.clusters:
        _snapshot(place, name, piece, run.live)
    _measure(place, run, piece)


def _measure(place: Workplace, run: Run, piece: Interval) -> None:
    with _kept(place, run.clusters, piece, "prepare"), step(f"prepare {piece}"):
        job = steps.prepare(place.settings, place.store, piece, run.clusters)
    with _kept(place, run.clusters, piece, "measure", job), step(f"measure {piece} with Spark"):
        _measured(job, run.memory)
    with _kept(place, run.clusters, piece, "validate", job), step(f"validate {piece}"):
        found = steps.validate(place.store, job)
    for text in found["notes"]:
        note(text)
    for text in found["warnings"]:
        warn(f"this does not hold of what was measured: {text.removeprefix('warning: ')}")
    with _kept(place, run.clusters, piece, "publish", job), step(f"publish {piece}"):
        steps.publish(place.store, job)


def _measured(job: str, memory: str) -> None:
    """By the standing Spark that the environment names, else by one that starts for it."""
    if not (url := os.environ.get(REMOTE)):
        run_spark(job, memory=memory)
        return
    from kafka_sla.spark_jobs.standing import measure_standing

    measure_standing(url, job, {})


@contextmanager
def _kept(
    place: Workplace, clusters: Sequence[str], piece: Interval, name: str, job: str | None = None
) -> Iterator[None]:
    """Keeps why a step failed, for `status` and the page of coverage."""
    try:
        yield
    except Exception as error:
        try:
            steps.keep_failure(place.store, clusters, piece, name, error, job)
        except KafkaSlaError as unkept:
            warn(f"why {piece} was not measured could not be kept: {unkept}")
        raise


def _snapshot(place: Workplace, name: str, piece: Interval, live: bool) -> None:
    with _kept(place, [name], piece, "snapshot"), step(f"snapshot {name}") as say:
        found = steps.snapshot(place.settings, place.store, name, place.login, piece, live=live, progress=say)
    for text in found["notes"]:
        note(text)
    for text in found.get("warnings", ()):
        warn(f"cluster {name}: {text}")


def _check_interval(interval: Interval, window_ms: int, now: datetime) -> None:
    newest = floor_time(now, window_ms)
    for option, at in (("--from", interval.start), ("--to", interval.end)):
        edge = floor_time(at, window_ms)
        if edge != at:
            raise BadRequest(
                f"{option} {instant_text(at)} is not the edge of a window of {duration_text(window_ms)};"
                f" the edge before it is {instant_text(edge)}"
            )
    if interval.end > newest:
        raise BadRequest(f"--to is in the future; the newest whole window ended at {instant_text(newest)}")
