"""Alerts, what receivers have been told about them, and the changes that bring a receiver up to date.

Both sides are states, as in Kubernetes controllers: which alerts exist now, and what was reported. Late facts, edited
rules, removed SLAs and killed runs need no cases of their own, because the two states either differ or they do not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from kafka_sla.model.entities import Miss, Severity, Sla
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.miss_rule import NO_LONGER_JUDGED
from kafka_sla.sla.wording import END_REASONS

AlertKind = Literal["miss", "burn"]
EndReason = Literal["", "recovered", "excluded", "removed", "no_longer_alerted", "merged"]
"""Why an alert ended; empty while it is open. `removed`: nothing is left of it, because late facts, an edited rule or a
removed SLA took it away. `no_longer_alerted`: the receiver or the severity is not configured any more."""
ReportState = Literal["opening", "open", "resolving", "resolved"]
"""`opening` and `resolving`: the message is recorded, but not known to be sent."""
Action = Literal["open", "resolve", "withdraw_opening", "withdraw_resolution", "extend", "inform"]
"""`extend`: record how far the alert reaches. `inform`: tell recipients that were added since it was reported."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A miss, or a burn of an error budget: something that opens and ends."""

    kind: AlertKind
    id: str
    sla: str
    severity: Severity
    start: datetime
    end: datetime | None
    known_until: datetime
    """How far it is known to reach: its end, or the last time that belongs to it so far."""
    end_reason: EndReason = ""
    miss: Miss | None = None
    """Of a burn: the newest bad time before it began; None if that is not known."""
    burn: Burn | None = None

    def closed(self, reason: EndReason) -> Alert:
        """The alert, ended for this reason at the latest time that is known of it."""
        end = self.end or self.known_until
        miss = _end_miss(self.miss, end, reason) if self.miss and self.kind == "miss" else self.miss
        burn = replace(self.burn, end=end) if self.burn else None
        return replace(self, end=end, end_reason=reason, miss=miss, burn=burn)


def _end_miss(miss: Miss, end: datetime, reason: EndReason) -> Miss:
    text = f"{NO_LONGER_JUDGED}{END_REASONS[reason]}" if reason in END_REASONS else miss.end_reason
    return replace(miss, end=end, state="removed" if text else "recovered", end_reason=text)


@dataclass(frozen=True, slots=True)
class Report:
    """What one receiver has been told about one alert."""

    seq: int
    channel: str
    thread: str
    """Id of the alert when it was first reported; numbered (`m1-2`) when it was reported again."""
    alert_id: str
    """Of the alert when the report was opened: late facts may have moved its start since, and with it the id."""
    start: datetime
    """Of the alert when the report was opened."""
    known_until: datetime
    """How far the alert was known to reach when somebody last looked."""
    alert: Alert
    """As it was last reported."""
    sla: Sla
    """As it was configured when the alert was first reported: receivers may know the alert by its team."""
    run_url: str | None
    state: ReportState
    incident: str
    is_in_doubt: bool = False
    """Whether the message that is recorded may have been sent already by a run that was killed."""
    opened_at: datetime | None = None
    """When the opening was sent."""
    added: tuple[str, ...] = ()
    """Recipients of mails that are configured since the alert was reported; set by the planner."""

    @property
    def is_unresolved(self) -> bool:
        return self.state in ("opening", "open")


@dataclass(frozen=True, slots=True)
class Change:
    """One step that brings a receiver up to date."""

    action: Action
    alert: Alert
    report: Report | None = None
    """None: a report is to be opened."""
    thread: str = ""


def plan_changes(alerts: Sequence[Alert], reports: Sequence[Report], may_open: Collection[str]) -> list[Change]:
    """What is to be told to one receiver about one SLA.

    `alerts`: all that exist from the start of the oldest report on, in order of their start. `reports`: in the order in
    which they were opened. `may_open`: ids of the alerts that may be reported although no report exists.

    | alert | report | change |
    |---|---|---|
    | open or ended | none | open; the caller resolves an ended one right after |
    | open | open | extend: record how far the alert reaches |
    | open | resolving | withdraw the resolution; wait if it may have been sent |
    | open | resolved | open again in a new thread |
    | ended | open | resolve |
    | none | open | resolve as `removed` |
    | ended (not recovered), or none | opening | withdraw the opening; resolve if it may have been sent |
    """
    subjects = {report.seq: _find_subjects(report, alerts) for report in reports}
    covered = {alert.id for parts in subjects.values() for alert in parts}
    changes: list[Change] = []
    for alert in alerts:
        same = [r for r in reports if subjects[r.seq] and _main_part(subjects[r.seq]) is alert]
        if same:
            changes += _continue_reports(alert, same)
        elif alert.id in may_open and alert.id not in covered:
            changes.append(Change("open", alert, thread=alert.id))
    for report in reports:
        if report.is_unresolved and not subjects[report.seq]:
            changes.append(close_report(report, end_as_reported(report, "removed")))
    return changes


def end_as_reported(report: Report, reason: EndReason) -> Alert:
    """The alert of the report, ended at the latest time that was known of it."""
    return replace(report.alert, known_until=report.known_until).closed(reason)


def close_report(report: Report, alert: Alert) -> Change:
    """Resolves the report, or withdraws it if nobody has been told that the alert opened and it did not recover."""
    unsent = report.state == "opening" and not report.is_in_doubt and alert.end_reason != "recovered"
    return Change("withdraw_opening" if unsent else "resolve", alert, report, report.thread)


def _find_subjects(report: Report, alerts: Sequence[Alert]) -> list[Alert]:
    """The alert that the report is about. If its id is gone, because late facts moved its start, the alerts that
    overlap what was reported."""
    alike = [a for a in alerts if (a.kind, a.severity) == (report.alert.kind, report.alert.severity)]
    same = [alert for alert in alike if alert.id == report.alert_id]
    return same or [alert for alert in alike if _overlap(alert, report)]


def _overlap(alert: Alert, report: Report) -> bool:
    """A burn begins at the end of a window, so two burns that touch are one."""
    begins = alert.start < report.known_until or (alert.kind == "burn" and alert.start == report.known_until)
    return begins and (alert.end is None or report.start < alert.end)


def _main_part(parts: Sequence[Alert]) -> Alert:
    """The open part of an alert that came apart, else the last one."""
    return max(parts, key=lambda alert: (alert.end is None, alert.start))


def _continue_reports(alert: Alert, reports: Sequence[Report]) -> Iterator[Change]:
    """Changes of the reports that are about the alert, oldest first."""
    unresolved = [report for report in reports if report.is_unresolved]
    if alert.end is not None:
        yield from (close_report(report, alert) for report in unresolved)
    elif unresolved:
        yield Change("extend", alert, unresolved[0])
        yield from (close_report(report, end_as_reported(report, "merged")) for report in unresolved[1:])
    elif (last := reports[-1]).state == "resolved":
        yield Change("open", alert, thread=f"{reports[0].thread}-{len(reports) + 1}")
    elif not last.is_in_doubt:
        yield Change("withdraw_resolution", alert, last)
