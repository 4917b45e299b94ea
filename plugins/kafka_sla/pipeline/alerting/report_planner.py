"""Compares the alerts that exist with what each receiver has been told, and records the messages that are due."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from kafka_sla.config.settings import Settings
from kafka_sla.ledger.alerts.report_plan import Opening
from kafka_sla.ledger.alerts.report_rows import ASSET, MAIL
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, Sla
from kafka_sla.notifications.incident_causes import name_causes
from kafka_sla.notifications.webhooks.formats import PAUSE, UNHURRIED
from kafka_sla.pipeline.alerting.current_alerts import SlaAlerts, read_alerts
from kafka_sla.pipeline.alerting.receivers import channels_of, find_address, webhooks_of
from kafka_sla.sla.alerts import Alert, Change, Report, close_report, end_as_reported, plan_changes
from kafka_sla.sla.burn import Burn

Explain = Callable[[Burn], Miss | None]
"""From a burn to the bad time behind it."""


@dataclass(slots=True)
class Differences:
    """What receivers have yet to be told."""

    changes: list[Change] = field(default_factory=list)
    openings: list[tuple[str, Change]] = field(default_factory=list)
    """Channel and change."""
    going_on: set[int] = field(default_factory=set)
    """Reports that are open, as are their alerts."""

    @property
    def count(self) -> int:
        """How many messages about single alerts are due."""
        ended = sum(change.alert.end is not None for _, change in self.openings)
        return sum(change.action == "resolve" for change in self.changes) + len(self.openings) + ended

    @property
    def slas(self) -> set[str]:
        """SLAs with something to tell."""
        due = [c for c in self.changes if c.action != "extend"] + [change for _, change in self.openings]
        return {change.alert.sla for change in due}


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans for these SLAs, and for SLAs that are not configured any more."""

    settings: Settings
    slas: Sequence[Sla]
    ledger: Ledger
    interval: Interval
    run_url: str | None
    explain: Explain
    is_asset: bool = False
    """Whether the only receivers are other people's DAGs, instead of all others."""

    def plan_messages(self) -> Differences:
        """Record the messages that are due. Returns what was recorded.

        Differences are looked for before the transaction and, where there are some, again inside it: another run may
        have recorded them meanwhile.
        """
        first = self._find_differences(self.slas)
        if not first.changes and not first.openings:
            return first
        behind = {change.alert.id: self._explained(change.alert) for _, change in first.openings}
        changed = [sla for sla in self.slas if sla.name in first.slas]
        with self.ledger.alert_reports.planning() as plan:
            differences = self._find_differences(changed)
            plan.update([*differences.changes, *(c for c in first.changes if c.action == "extend")], self.run_url)
            openings = [self._opening(channel, change, behind) for channel, change in differences.openings]
            plan.open(name_causes(openings, find_address), find_address)
        differences.going_on |= first.going_on
        return differences

    def _find_differences(self, slas: Sequence[Sla]) -> Differences:
        differences = Differences()
        alerts = read_alerts(self.ledger, slas, self.interval)
        for sla in slas:
            self._compare(differences, sla, alerts[sla.name])
        known = {sla.name for sla in self.settings.slas}
        for report in self.ledger.alert_reports.unresolved():
            if report.alert.sla not in known and (report.channel == ASSET) == self.is_asset:
                differences.changes.append(close_report(report, end_as_reported(report, "removed")))
        return differences

    def _compare(self, differences: Differences, sla: Sla, alerts: SlaAlerts) -> None:
        channels = [ASSET] if self.is_asset else channels_of(sla)
        reports = {channel: list[Report]() for channel in channels}
        for report in alerts.reports:
            if (report.channel == ASSET) == self.is_asset:
                reports.setdefault(report.channel, []).append(report)
        for channel, same in reports.items():
            if channel not in channels:
                left = [report for report in same if report.is_unresolved]
                differences.changes += [close_report(r, end_as_reported(r, "no_longer_alerted")) for r in left]
                continue
            for change in plan_changes(alerts.all, same, alerts.may_open):
                self._add(differences, sla, channel, change)
                if channel == MAIL and change.report and change.action == "extend":
                    differences.changes += _inform_added(sla, change)

    def _add(self, differences: Differences, sla: Sla, channel: str, change: Change) -> None:
        if change.report is None:
            differences.openings.append((channel, change))
        elif change.action != "resolve" or not _is_too_soon(sla, change.report):
            differences.changes.append(change)
            if change.action == "extend":
                differences.going_on.add(change.report.seq)

    def _explained(self, alert: Alert) -> Alert:
        return replace(alert, miss=self.explain(alert.burn)) if alert.burn else alert

    def _opening(self, channel: str, change: Change, explained: Mapping[str, Alert]) -> Opening:
        alert, sla = change.alert, self.settings.sla(change.alert.sla)
        if alert.burn:
            behind = explained[alert.id] if alert.id in explained else self._explained(alert)
            alert = replace(alert, miss=behind.miss)
        is_resolved = alert.end is not None and channel not in _unhurried(sla)
        return Opening(channel, change.thread, alert, sla, self.run_url, "", is_resolved)


def _inform_added(sla: Sla, change: Change) -> Iterator[Change]:
    """Recipients that were added while the alert is open are told that it is."""
    assert change.report
    reported = change.report.sla
    if added := tuple(sorted(set(sla.recipients) - set(reported.recipients))):
        recipients = (*reported.recipients, *added)
        report = replace(change.report, sla=replace(reported, recipients=recipients), added=added)
        yield replace(change, action="inform", report=report)


def _unhurried(sla: Sla) -> Collection[str]:
    return [channel for channel, webhook in webhooks_of(sla).items() if webhook.format in UNHURRIED]


def _is_too_soon(sla: Sla, report: Report) -> bool:
    """Whether the receiver would say nothing of an alert that ends so soon after it was told of it. What a clock that
    was ahead says was sent later than now was sent before."""
    if report.channel not in _unhurried(sla):
        return False
    now = datetime.now(UTC)
    return report.opened_at is None or now - PAUSE <= report.opened_at <= now
