"""The commands that measure missing time: ready to copy into a shell, and as the fields of a trigger form. Reads
nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field

from kafka_sla.model.entities import Interval

LIVE, HISTORY = "kafka_sla", "kafka_sla_history"
LONGEST, LONGEST_STORED = timedelta(days=31), timedelta(days=100)
"""What the form takes in one run: less where Kafka is asked than from what is stored."""


class Remediation(BaseModel):
    """The command that measures or judges missing time."""

    kind: Literal["backfill", "trigger", "judge"] = Field(
        description="backfill: a run per day; trigger: one run of the range; judge: one run that does not ask Kafka"
    )
    dag: str
    start: datetime
    end: datetime
    clusters: list[str] = Field(description="empty: all")
    slas: list[str] = Field(description="empty: all of these clusters")
    command: str = Field(description="for a shell where Airflow's command line is configured")
    range_command: str = Field(description="the same as one run of the whole range, as the trigger form makes it")
    form: dict[str, Any] = Field(description="fields of the DAG's trigger form, for one run of the whole range")


def backfill(days: Interval, clusters: Sequence[str], *, again: bool) -> Remediation:
    """Whole UTC days, a run each; `again`: Airflow has runs of some of them already, which are to be repeated."""
    words = [
        "airflow",
        "backfill",
        "create",
        "--dag-id",
        HISTORY,
        "--from-date",
        _text(days.start),
        "--to-date",
        _text(days.end - timedelta(days=1)),
    ]
    words += ["--reprocess-behavior", "completed"] if again else []
    words += ["--dag-run-conf", json.dumps({"clusters": list(clusters)})] if clusters else []
    return _remediation("backfill", HISTORY, days, shlex.join(words), clusters=list(clusters))


def trigger(span: Interval, clusters: Sequence[str]) -> Remediation:
    """Time of a day that is not over: one run of the live DAG."""
    return _triggered("trigger", LIVE, span, clusters=list(clusters))


def judge(span: Interval, slas: Sequence[str]) -> Remediation:
    """Published time that these SLAs were never judged in: one run from what is stored."""
    return _triggered("judge", HISTORY, span, facts="stored", slas=list(slas))


def ranges(days: Iterable[datetime], longest: timedelta) -> Iterator[Interval]:
    """Days that follow each other as ranges, none longer than that."""
    found: Interval | None = None
    for day in sorted(days):
        if found and found.end == day and day - found.start < longest:
            found = Interval(found.start, day + timedelta(days=1))
        else:
            if found:
                yield found
            found = Interval(day, day + timedelta(days=1))
    if found:
        yield found


def _triggered(kind: Literal["trigger", "judge"], dag: str, span: Interval, **fields: Any) -> Remediation:
    form = _form(span, fields)
    return _remediation(kind, dag, span, dag_trigger(dag, form), **fields)


def dag_trigger(dag: str, form: Mapping[str, Any]) -> str:
    """The command that does what the trigger form does."""
    return shlex.join(["airflow", "dags", "trigger", dag, "--conf", json.dumps(form)])


def _remediation(
    kind: Literal["backfill", "trigger", "judge"], dag: str, span: Interval, command: str, **fields: Any
) -> Remediation:
    form = _form(span, fields)
    return Remediation(
        kind=kind,
        dag=dag,
        start=span.start,
        end=span.end,
        clusters=fields.get("clusters", []),
        slas=fields.get("slas", []),
        command=command,
        range_command=dag_trigger(dag, form),
        form=form,
    )


def _form(span: Interval, fields: dict[str, Any]) -> dict[str, Any]:
    """What is empty stays at the form's default."""
    return {"from": _text(span.start), "to": _text(span.end)} | {key: value for key, value in fields.items() if value}


def _text(at: datetime) -> str:
    """With its zone: Airflow takes a bare date for one in its own default time zone."""
    return f"{at:%Y-%m-%dT%H:%MZ}"
