"""Changes of alert reports within one transaction: which messages are due, and which alerts they are about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from kafka_sla.ledger.alerts.report_rows import Address, content_columns, group_by, read_report
from kafka_sla.ledger.storage.database import delete_each
from kafka_sla.ledger.storage.schema import ALERT_REPORTS
from kafka_sla.model.entities import Sla
from kafka_sla.sla.alerts import Alert, Change, Report

_SAME_INCIDENT = timedelta(days=1)
"""An alert that opens later than this after the last opening of an incident begins another incident."""
_T = ALERT_REPORTS.c
_UNRESOLVED = _T.resolve_batch.is_(None)


@dataclass(frozen=True, slots=True)
class Opening:
    """A report to be opened."""

    channel: str
    thread: str
    alert: Alert
    sla: Sla
    run_url: str | None
    cause: str
    """The same for openings that are one message."""
    is_resolved: bool
    """Whether the alert has ended already, so that its end is a second message."""


class ReportPlan:
    """Changes of reports within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        batches = func.max(_T.open_batch), func.max(_T.inform_batch), func.max(_T.resolve_batch)
        largest = connection.execute(select(*batches)).one()
        self._batch = max((batch for batch in largest if batch is not None), default=0)

    def update(self, changes: Sequence[Change], run_url: str | None) -> None:
        """Apply these changes of reports that exist. Resolutions of an incident are one message."""
        changes = [_keep_explanation(change) for change in changes]
        for change in changes:
            if change.report and change.action == "extend":
                self._extend(change.report, change.alert)
            elif change.report and change.action == "inform":
                alert = change.alert if change.report.state == "opening" else change.report.alert
                self._set([change.report.seq], **content_columns(alert, change.report.sla, change.report.run_url))
            elif change.report and change.action == "withdraw_resolution":
                taken_back = {"resolve_batch": None, **content_columns(change.alert, change.report.sla, run_url)}
                self._set([change.report.seq], **taken_back)
        withdrawn = [c.report.seq for c in changes if c.report and c.action == "withdraw_opening"]
        delete_each(self._connection, delete(ALERT_REPORTS), _T.seq, withdrawn)
        self._inform([c.report for c in changes if c.report and c.action == "inform"])
        self._resolve([(c.report, c.alert) for c in changes if c.report and c.action == "resolve"], run_url)

    def open(self, openings: Sequence[Opening], address: Address) -> None:
        """Open these reports. Those with the same channel and cause are one message, and join the incident of that
        cause that is still open at the same address."""
        rows: dict[str, dict[str, Any]] = {}
        for (channel, cause), same in group_by(openings, lambda opening: (opening.channel, opening.cause)):
            self._batch += 1
            incident = self._find_open_incident(same[0], address) or same[0].thread
            shared = {"channel": channel, "cause": cause, "incident": incident, "open_batch": self._batch}
            for opening in same:
                rows[f"{channel} {opening.thread}"] = _new_row(opening) | shared
        if openings:
            ordered = [rows[f"{opening.channel} {opening.thread}"] for opening in openings]
            self._connection.execute(insert(ALERT_REPORTS), ordered)
        ended = [opening.thread for opening in openings if opening.is_resolved]
        if ended:
            stored = select(ALERT_REPORTS).where(_T.thread.in_(ended), _UNRESOLVED).order_by(_T.seq)
            reports = [read_report(row) for row in self._connection.execute(stored)]
            keys = {(opening.channel, opening.thread) for opening in openings if opening.is_resolved}
            self._resolve([(r, r.alert) for r in reports if (r.channel, r.thread) in keys], None)

    def _inform(self, reports: Sequence[Report]) -> None:
        """An opening that is unsent goes to all recipients anyway."""
        sent = [report for report in reports if report.state == "open" and report.added]
        for (_, added), same in group_by(sent, lambda report: (report.incident, report.added)):
            self._batch += 1
            seqs = [report.seq for report in same]
            self._set(seqs, inform_batch=self._batch, inform_to=json.dumps(added))

    def _resolve(self, ends: Sequence[tuple[Report, Alert]], run_url: str | None) -> None:
        for _, same in group_by(ends, lambda end: (end[0].channel, end[0].incident)):
            self._batch += 1
            for report, alert in same:
                batches = {"resolve_batch": self._batch, "inform_batch": None}
                stored = content_columns(alert, report.sla, run_url or report.run_url)
                self._set([report.seq], known_until=alert.known_until, **batches, **stored)

    def _extend(self, report: Report, alert: Alert) -> None:
        """Nobody has read an opening that is unsent, so it may tell the present."""
        is_unread = report.state == "opening" and not report.is_in_doubt
        stored = content_columns(alert, report.sla, report.run_url) if is_unread else {}
        self._set([report.seq], known_until=max(alert.known_until, report.known_until), **stored)

    def _set(self, seqs: Sequence[int], **values: Any) -> None:
        self._connection.execute(update(ALERT_REPORTS).where(_T.seq.in_(seqs)).values(**values))

    def _find_open_incident(self, opening: Opening, address: Address) -> str | None:
        recent = _T.start_at > opening.alert.start - _SAME_INCIDENT
        same = _T.cause == opening.cause, _T.channel == opening.channel, _T.kind == opening.alert.kind
        rows = self._connection.execute(select(ALERT_REPORTS).where(*same, recent, _UNRESOLVED).order_by(_T.seq))
        place = address(opening.sla, opening.channel)
        reports = map(read_report, rows)
        return next((r.incident for r in reports if address(r.sla, r.channel) == place), None)


def _keep_explanation(change: Change) -> Change:
    """The bad time behind a burn is explained once, when it is reported."""
    if change.report is None or change.alert.burn is None:
        return change
    return replace(change, alert=replace(change.alert, miss=change.report.alert.miss))


def _new_row(opening: Opening) -> dict[str, Any]:
    alert = opening.alert
    return {
        "thread": opening.thread,
        "alert_id": alert.id,
        "kind": alert.kind,
        "sla": alert.sla,
        "start_at": alert.start,
        "known_until": alert.known_until,
        **content_columns(alert, opening.sla, opening.run_url),
    }
