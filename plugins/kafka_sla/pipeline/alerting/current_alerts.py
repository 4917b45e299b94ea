"""The alerts that exist now, from the misses and burns of the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING, Interval, Miss, Sla
from kafka_sla.sla.alerts import Alert, EndReason, Report
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.miss_rule import NO_LONGER_JUDGED
from kafka_sla.sla.wording import END_REASONS

_JUST = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class SlaAlerts:
    """The alerts of one SLA."""

    all: list[Alert]
    """In order of their start, from the start of the oldest report on."""
    may_open: frozenset[str]
    """Ids of those that the interval may have changed."""
    reports: list[Report]
    """What was reported about them, to all channels, oldest first."""


def read_alerts(ledger: Ledger, slas: Sequence[Sla], interval: Interval) -> dict[str, SlaAlerts]:
    """Alerts and reports of each SLA, by name: the alerts that the interval may have changed, those that were reported,
    and what they have become."""
    names = [sla.name for sla in slas]
    around = {name: ledger.verdicts.misses_around(name, interval) for name in names}
    burning: dict[str, list[Burn]] = defaultdict(list)
    for burn in ledger.burns.of(names, interval):
        burning[burn.sla].append(burn)
    reports = _read_reports(ledger, names, interval, around)
    return {sla.name: _alerts_of(ledger, sla, interval, around[sla.name], burning[sla.name], reports) for sla in slas}


def _read_reports(
    ledger: Ledger, names: Sequence[str], interval: Interval, around: dict[str, list[Miss]]
) -> dict[str, list[Report]]:
    since = min([interval.start, *(miss.start for misses in around.values() for miss in misses)])
    reports: dict[str, list[Report]] = defaultdict(list)
    for report in [*ledger.alert_reports.unresolved(names), *ledger.alert_reports.resolved_since(names, since)]:
        reports[report.alert.sla].append(report)
    for same in reports.values():
        same.sort(key=lambda report: report.seq)
    return reports


def _alerts_of(
    ledger: Ledger,
    sla: Sla,
    interval: Interval,
    around: Sequence[Miss],
    burning: Sequence[Burn],
    reports: dict[str, list[Report]],
) -> SlaAlerts:
    mine = reports.get(sla.name, [])
    misses, burns = list(around), list(burning)
    if mine:
        time = Interval(min(report.start for report in mine) - _JUST, EVERYTHING.end)
        misses += ledger.verdicts.misses(sla.name, time)
        burns += ledger.burns.of([sla.name], time)
    severities = {pair.severity for pair in sla.burn_pairs}
    alerts = {miss.id: _miss_alert(miss) for miss in misses}
    alerts |= {burn.id: _burn_alert(burn, interval, is_alerted=burn.severity in severities) for burn in burns}
    may_open = {miss.id for miss in around if not miss.exclusion}
    may_open |= {burn.id for burn in burning if burn.severity in severities}
    return SlaAlerts(sorted(alerts.values(), key=lambda alert: alert.start), frozenset(may_open), mine)


def _miss_alert(miss: Miss) -> Alert:
    if miss.exclusion and not miss.end_reason:
        miss = replace(miss, state="excluded", end_reason=f"{NO_LONGER_JUDGED}{END_REASONS['excluded']}")
    until = miss.end or max(miss.bad_until, miss.opened_at)
    reason: EndReason = "excluded" if miss.exclusion else "" if miss.state == "open" else miss.state
    return Alert("miss", miss.id, miss.sla, "page", miss.start, miss.end, until, reason, miss)


def _burn_alert(burn: Burn, interval: Interval, *, is_alerted: bool) -> Alert:
    until = burn.end or max(interval.end, burn.start)
    alert = Alert("burn", burn.id, burn.sla, burn.severity, burn.start, burn.end, until, burn=burn)
    if not is_alerted:
        return alert.closed("no_longer_alerted")
    return alert.closed("recovered") if burn.end else alert
