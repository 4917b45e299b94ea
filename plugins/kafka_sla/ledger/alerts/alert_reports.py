"""What receivers have been told about alerts: a row for each alert and receiver, and which rows are one message.

A message is recorded with its batch number before it is sent, so what is sent again after a kill is the same message.
Nothing is sent inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, or_, select, update

from kafka_sla.errors import ReceiverUnavailable
from kafka_sla.ledger.alerts.report_plan import ReportPlan
from kafka_sla.ledger.alerts.report_rows import MAIL, Address, AlertMessage, group_by, read_message, read_report
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import ALERT_REPORTS
from kafka_sla.model.entities import Miss
from kafka_sla.sla.alerts import Report

_T = ALERT_REPORTS.c
_UNRESOLVED = _T.resolve_batch.is_(None)
_UNSENT = or_(
    _T.opened_at.is_(None),
    _T.inform_batch.is_not(None),
    and_(_T.resolve_batch.is_not(None), _T.resolved_at.is_(None)),
)
_SENT_AT = {"open": "opened_at", "resolved": "resolved_at"}


@dataclass(slots=True)
class Delivery:
    """What a delivery did."""

    sent: int = 0
    errors: list[Exception] = field(default_factory=list)


class AlertReports:
    """The reports of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unresolved(self, slas: Sequence[str] | None = None) -> list[Report]:
        """Reports of alerts whose end was not recorded, oldest first; None: of all SLAs."""
        return self._read(_UNRESOLVED, *([] if slas is None else [_T.sla.in_(slas)]))

    def resolved_since(self, slas: Sequence[str], since: datetime) -> list[Report]:
        """Reports whose end was recorded and whose alert reached this time, oldest first."""
        return self._read(~_UNRESOLVED, _T.sla.in_(slas), _T.known_until >= since)

    def unsent(self, slas: Sequence[str] | None = None) -> list[Report]:
        """Reports with a message that is not known to be sent, oldest first; None: of all SLAs."""
        return self._read(_UNSENT, *([] if slas is None else [_T.sla.in_(slas)]))

    def incidents_of(self, misses: Sequence[Miss]) -> dict[str, str]:
        """The incident under which each miss was mailed, by id of the miss; without those that were not."""
        rows = select(_T.alert_id, _T.incident).where(_T.alert_id.in_([m.id for m in misses]), _T.channel == MAIL)
        return {row.alert_id: row.incident for row in self._database.rows(rows.order_by(_T.seq))}

    def reported_with(self, miss: Miss) -> list[Miss]:
        """Other misses of the incident under which this one was mailed, as they were last reported, by SLA."""
        incidents = select(_T.incident).where(_T.alert_id == miss.id, _T.channel == MAIL)
        reports = self._read(_T.incident.in_(incidents), _T.channel == MAIL, _T.alert_id != miss.id)
        misses = [report.alert.miss for report in reports if report.alert.miss]
        return sorted(misses, key=lambda other: other.sla)

    def _read(self, *conditions: ColumnElement[bool]) -> list[Report]:
        rows = self._database.rows(select(ALERT_REPORTS).where(*conditions).order_by(_T.seq))
        return [read_report(row) for row in rows]

    @contextmanager
    def planning(self) -> Iterator[ReportPlan]:
        """One short transaction that changes reports. Planners run one after the other."""
        with self._database.writing("alert reports") as connection:
            yield ReportPlan(connection)

    def deliver(
        self, channel: str, send: Callable[[AlertMessage], None], may_send: Callable[[str], bool], address: Address
    ) -> Delivery:
        """Send the unsent messages of the channel in the order in which they were recorded, those of the SLAs that
        `may_send` allows. Alerts of one message that go to different addresses by now become several messages.

        A message that fails stays unsent, with those that follow it in its incident to the same address; the others are
        sent, unless the error is ReceiverUnavailable.
        """
        delivery = Delivery()
        with self._database.sending(channel):
            failed: set[tuple[str, str]] = set()
            for batch, seqs, place in self._unsent_messages(channel, may_send, address):
                message = self._claim(batch, seqs, place, address)
                if message is None:
                    continue
                keys = {(place, message.incident), *((place, report.thread) for report in message.reports)}
                if failed & keys:
                    self._release(message)
                    continue
                try:
                    send(message)
                except Exception as error:
                    self._release(message)
                    failed |= keys
                    delivery.errors.append(error)
                    if isinstance(error, ReceiverUnavailable):
                        break
                    continue
                self._mark_sent(message)
                delivery.sent += len(message.reports)
        return delivery

    def repeat(
        self, channel: str, send: Callable[[AlertMessage], None], seqs: Collection[int], address: Address
    ) -> list[Exception]:
        """Send again what was sent about these open alerts, a message for each incident and address. Returns errors."""
        errors: list[Exception] = []
        with self._database.sending(channel):
            is_open = _T.channel == channel, _UNRESOLVED, _T.opened_at.is_not(None)
            reports = [report for report in self._read(*is_open) if report.seq in seqs]
            keys = {r.seq: (r.alert.kind, r.incident, str(address(r.sla, channel))) for r in reports}
            for (kind, incident, _), same in group_by(reports, lambda report: keys[report.seq]):
                try:
                    send(AlertMessage(kind, "open", channel, incident, tuple(same), (), len(same)))
                except Exception as error:
                    errors.append(error)
                    if isinstance(error, ReceiverUnavailable):
                        break
        return errors

    def _unsent_messages(
        self, channel: str, may_send: Callable[[str], bool], address: Address
    ) -> list[tuple[int, list[int], str]]:
        """Batch, reports and address of each message, in the order in which they were recorded."""
        messages: dict[tuple[int, str], list[int]] = {}
        for row in self._database.rows(select(ALERT_REPORTS).where(_UNSENT, _T.channel == channel).order_by(_T.seq)):
            report = read_report(row)
            if may_send(report.alert.sla):
                place = str(address(report.sla, channel))
                for batch in _unsent_batches(row):
                    key = batch, row.inform_to if batch == row.inform_batch else place
                    messages.setdefault(key, []).append(row.seq)
        return [(batch, seqs, place) for (batch, place), seqs in sorted(messages.items(), key=lambda item: item[0])]

    def _claim(self, batch: int, seqs: Sequence[int], place: str, address: Address) -> AlertMessage | None:
        """The message, recorded as possibly sent from now on; None if a run that plans has withdrawn it."""
        opens = and_(_T.open_batch == batch, _T.opened_at.is_(None))
        resolves = and_(_T.resolve_batch == batch, _T.resolved_at.is_(None), _T.opened_at.is_not(None))
        informs = _T.inform_batch == batch
        with self._database.writing("alert reports") as connection:
            pending = select(ALERT_REPORTS).where(_T.seq.in_(seqs), or_(opens, resolves, informs)).order_by(_T.seq)
            rows = connection.execute(pending).all()
            if not rows:
                return None
            ours = _T.seq.in_([row.seq for row in rows])
            connection.execute(update(ALERT_REPORTS).where(ours).values(claimed_at=datetime.now(UTC)))
            return read_message(connection, batch, rows, place, address)

    def _mark_sent(self, message: AlertMessage) -> None:
        now = datetime.now(UTC)
        sent = {"inform_batch": None} if message.to else {_SENT_AT[message.state]: now}
        self._mark([report.seq for report in message.reports], claimed_at=None, **sent)

    def _release(self, message: AlertMessage) -> None:
        """Record that the message was not sent, unless a run that was killed may have sent it before."""
        self._mark([report.seq for report in message.reports if not report.is_in_doubt], claimed_at=None)

    def _mark(self, seqs: Sequence[int], **values: datetime | None) -> None:
        with self._database.writing("alert reports") as connection:
            connection.execute(update(ALERT_REPORTS).where(_T.seq.in_(seqs)).values(**values))


def _unsent_batches(row: Row[Any]) -> Iterator[int]:
    if row.opened_at is None:
        yield row.open_batch
    elif row.inform_batch is not None:
        yield row.inform_batch
    if row.resolve_batch is not None and row.resolved_at is None:
        yield row.resolve_batch
