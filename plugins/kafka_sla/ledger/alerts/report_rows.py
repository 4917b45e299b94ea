"""Rows of the table of alert reports, and the messages that they form."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, select

from kafka_sla.ledger.storage.schema import ALERT_REPORTS
from kafka_sla.model.entities import Sla
from kafka_sla.sla.alerts import Alert, AlertKind, Report, ReportState

MAIL = "mail"
ASSET = "asset"
"""Other people's DAGs that wait for an Airflow asset."""
_T = ALERT_REPORTS.c

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Address = Callable[[Sla, str], object]
"""From an SLA and a channel to who is addressed there, to be compared."""


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """One message to one receiver: its alerts opened, or ended, in one run and share a cause."""

    kind: AlertKind
    state: Literal["open", "resolved"]
    channel: str
    incident: str
    """Thread of the first report of the incident: a message replies to it unless it is the first itself."""
    reports: tuple[Report, ...]
    """Oldest first."""
    still_open: tuple[Report, ...]
    """Others of the incident that have been reported and not resolved."""
    size: int
    """How many reports the incident has so far, with those of this message."""
    to: tuple[str, ...] = ()
    """Recipients that were added since the alerts were reported; empty: all."""

    @property
    def is_single(self) -> bool:
        """Whether it is about one alert, with nothing to say of others that were reported with it."""
        return len(self.reports) == 1 and (self.state == "open" or self.size == 1)


@dataclass(frozen=True, slots=True)
class _Content:
    """What of a report is stored as JSON."""

    alert: Alert
    sla: Sla
    run_url: str | None


_CODEC = TypeAdapter(_Content)


def read_message(
    connection: Connection, batch: int, rows: Sequence[Row[Any]], place: str, address: Address
) -> AlertMessage:
    """The message of these rows, which have the same batch, to the address `place`."""
    lead = rows[0]
    incident = _T.incident == lead.incident, _T.channel == lead.channel, _T.open_batch <= batch
    known = connection.execute(select(ALERT_REPORTS).where(*incident).order_by(_T.seq)).all()
    reports = {row.seq: read_report(row) for row in known}
    same_place = [row for row in known if str(address(reports[row.seq].sla, row.channel)) == place]
    still_open = [
        reports[row.seq]
        for row in same_place
        if row.open_batch != batch and (row.resolve_batch is None or row.resolve_batch > batch)
    ]
    state: Literal["open", "resolved"] = "resolved" if lead.resolve_batch == batch else "open"
    to = tuple(json.loads(lead.inform_to)) if lead.inform_batch == batch else ()
    size = max(len(same_place), len(rows))
    shown = tuple(map(read_report, rows))
    return AlertMessage(lead.kind, state, lead.channel, lead.incident, shown, tuple(still_open), size, to)


def read_report(row: Row[Any]) -> Report:
    """The report that a row of `alert_reports` holds."""
    content = _CODEC.validate_json(row.content)
    return Report(
        row.seq,
        row.channel,
        row.thread,
        row.alert_id,
        row.start_at,
        row.known_until,
        content.alert,
        content.sla,
        content.run_url,
        _state(row),
        row.incident,
        row.claimed_at is not None,
        row.opened_at,
    )


def _state(row: Row[Any]) -> ReportState:
    if row.resolve_batch is not None:
        return "resolving" if row.resolved_at is None else "resolved"
    return "opening" if row.opened_at is None else "open"


def content_columns(alert: Alert, sla: Sla, run_url: str | None) -> dict[str, str]:
    """The columns that `read_report` reads these from."""
    return {"content": _CODEC.dump_json(_Content(alert, sla, run_url)).decode()}


def group_by(items: Iterable[T], key: Callable[[T], K]) -> Iterator[tuple[K, list[T]]]:
    """Items with the same key, in the order in which the keys first appear."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    yield from groups.items()
