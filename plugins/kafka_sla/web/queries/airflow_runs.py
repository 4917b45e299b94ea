"""The Airflow runs behind the figures: which run published which piece, and what a run measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from kafka_sla.ledger.queries import Published
from kafka_sla.model.entities import Interval
from kafka_sla.text.formatting import moment
from kafka_sla.text.timestamps import parse_instant
from kafka_sla.web.queries.context import Context

DAGS = ("kafka_sla", "kafka_sla_history")
SHOWN = 12
"""Pieces listed; of more the newest."""
_MOST_RUNS = 1_000
_LATE_RUNS = 2
SILENT = timedelta(minutes=30)
"""Figures that are older are out of date."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run measures, and its state in Airflow; without a time the reason why it can measure none."""

    state: str
    time: Interval | None
    reason: str = ""


def pieces(context: Context, cluster: str, span: Interval, airflow: Callable[[str], str]) -> dict[str, Any]:
    """The published pieces of a span, the newest first, each with the run that computed it, where one is known."""
    found = [one for one in context.ledger.queries.publications(span) if one.cluster == cluster]
    newest = sorted(found, key=lambda one: one.interval, reverse=True)[:SHOWN]
    shown = [row for one in newest for row in _rows(one, span, airflow)]
    return {"all": len(found), "shown": shown[:SHOWN]}


def _rows(one: Published, span: Interval, airflow: Callable[[str], str]) -> list[dict[str, Any]]:
    """The piece with its run; of one that maintenance made of many the runs that measured what was asked for of it."""
    run = _run_of(one, airflow)
    part = one.interval.within(span)
    if run is None and part and (runs := _succeeded(part)):
        return [
            {
                "start": moment(_plain(found.data_interval_start)),
                "end": moment(_plain(found.data_interval_end)),
                "at": moment(_plain(found.end_date)),
                "run": _link(found, airflow),
            }
            for found in runs
        ]
    start, end = moment(one.interval.start), moment(one.interval.end)
    return [{"start": start, "end": end, "at": moment(one.published_at), "run": run}]


def _succeeded(span: Interval) -> list[Any]:
    """The newest runs that measured some of this time by their data interval, where several did."""
    wanted = (
        select(DagRun)
        .where(
            DagRun.dag_id.in_(DAGS),
            DagRun.state == "success",
            DagRun.data_interval_start < span.end,
            DagRun.data_interval_end > span.start,
        )
        .order_by(DagRun.data_interval_start.desc())
        .limit(SHOWN)
    )
    with create_session() as session:
        return [run for run in session.scalars(wanted) if not (run.conf or {}).get("from")]


def unfinished(span: Interval, now: datetime) -> tuple[list[Interval], list[Interval]]:
    """The time of runs that failed, and of runs that wait or work; the newest of them, where there are many."""
    wanted = (
        select(DagRun)
        .where(
            DagRun.dag_id.in_(DAGS),
            DagRun.state.in_(("failed", "queued", "running")),
            DagRun.run_after >= span.start,
        )
        .order_by(DagRun.run_after.desc())
        .limit(_MOST_RUNS)
    )
    failed: list[Interval] = []
    working: list[Interval] = []
    with create_session() as session:
        for run in session.scalars(wanted):
            if (interval := _measured(run, now).time) and interval.overlaps(span):
                (failed if run.state == "failed" else working).append(interval)
    return failed, working


def stale(context: Context, airflow: Callable[[str], str]) -> list[dict[str, Any]]:
    """Clusters about whose newest half hour nothing is published, and the newest scheduled runs that are not done."""
    until = context.ledger.queries.last_published()
    late = [c.name for c in context.settings.clusters if until.get(c.name, _NEVER) < context.now - SILENT]
    if not late:
        return []
    runs = _not_done(airflow)
    return [{"cluster": name, "until": moment(until[name]) if name in until else "", "runs": runs} for name in late]


def _not_done(airflow: Callable[[str], str]) -> list[dict[str, str]]:
    wanted = select(DagRun).where(DagRun.dag_id == DAGS[0], DagRun.state.in_(("failed", "queued", "running")))
    with create_session() as session:
        return [
            {"id": run.run_id, "state": str(run.state), "href": airflow(f"/dags/{run.dag_id}/runs/{run.run_id}")}
            for run in session.scalars(wanted.order_by(DagRun.run_after.desc()).limit(_LATE_RUNS))
        ]


def days_with_runs(days: Interval) -> set[datetime]:
    """The days that the history has a run of: a backfill leaves them out unless it is told to repeat them."""
    mine = select(DagRun.logical_date).where(
        DagRun.dag_id == "kafka_sla_history", DagRun.logical_date >= days.start, DagRun.logical_date < days.end
    )
    with create_session() as session:
        return {_plain(at) for at in session.scalars(mine) if at}


def paused() -> list[str]:
    """Those of our DAGs that Airflow knows and that start nothing until somebody unpauses them."""
    wanted = select(DagModel.dag_id).where(DagModel.dag_id.in_(DAGS), DagModel.is_paused)
    with create_session() as session:
        return sorted(session.scalars(wanted))


def backfills_possible() -> bool:
    """Airflow creates no backfill where its own database is SQLite."""
    with create_session() as session:
        return bool(session.get_bind().dialect.name != "sqlite")


def measured(dag_id: str, run_id: str, now: datetime) -> Measured | None:
    """What a run measures; None of a run that Airflow does not know, or that is of no time."""
    with create_session() as session:
        run = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)).first()
        found = _measured(run, now) if run else None
        return found if found and (found.time or found.reason) else None


def _run_of(one: Published, airflow: Callable[[str], str]) -> dict[str, str] | None:
    """The run that was under way when the piece was published, and measured it."""
    with create_session() as session:
        running = select(DagRun).where(
            DagRun.dag_id.in_(DAGS),
            DagRun.start_date <= one.published_at,
            (DagRun.end_date >= one.published_at) | DagRun.end_date.is_(None),
        )
        for run in _newest_first(session.scalars(running)):
            if _measured(run, one.published_at).time == one.interval:
                return _link(run, airflow)
    return None


def _link(run: Any, airflow: Callable[[str], str]) -> dict[str, str]:
    href = airflow(f"/dags/{run.dag_id}/runs/{run.run_id}")
    return {"id": run.run_id, "dag": run.dag_id, "state": str(run.state), "href": href}


def _newest_first(runs: Iterable[Any]) -> list[Any]:
    return sorted(runs, key=lambda run: run.start_date, reverse=True)


def _measured(run: Any, now: datetime) -> Measured:
    """What the run's form requests, else its data interval."""
    conf, state = run.conf or {}, str(run.state)
    if conf.get("from") and conf.get("to"):
        try:
            return Measured(state, _requested(conf, _plain(run.end_date) if run.end_date else now))
        except ValueError as error:  # people and scripts write what they like there, and the run fails on it
            return Measured(state, None, str(error))
    start, end = run.data_interval_start, run.data_interval_end
    return Measured(state, Interval(_plain(start), _plain(end)) if start and end and start < end else None)


def _requested(conf: dict[str, Any], until: datetime) -> Interval:
    """The time between the form's From and To; ValueError says why no run could have measured it until then."""
    times = {}
    for name in ("from", "to"):
        try:
            times[name] = parse_instant(conf[name])
        except ValueError as error:
            raise ValueError(f"{name.title()} ({conf[name]}) is {error}") from error
    start, end = times["from"], times["to"]
    if not start < end:
        raise ValueError(f"To ({moment(end)}) must be after From ({moment(start)}); exchange them?")
    if end > until:
        raise ValueError(f"To ({moment(end)}) is in the future of the run")
    return Interval(start, end)


def _plain(at: datetime) -> datetime:
    """Airflow's pendulum instants as plain UTC datetimes."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=round(at.timestamp() * 1_000_000))
