"""Sends the messages about alerts that are recorded: to mail, webhooks, notifiers and other people's DAGs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial

from kafka_sla.config.settings import Settings
from kafka_sla.errors import ReceiverUnavailable
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.pace_rows import published_catch_ups
from kafka_sla.ledger.alerts.report_rows import ASSET, MAIL, AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection, Interval, Notifier, Sla
from kafka_sla.notifications import smtp as mail
from kafka_sla.notifications.burn_email import burn_mail, burns_mail
from kafka_sla.notifications.miss_context import surroundings
from kafka_sla.notifications.notices import BurnMessage, IncidentNotice, burn_message, miss_message
from kafka_sla.notifications.webhooks import webhook
from kafka_sla.notifications.webhooks.event import burn_event_of, event_of
from kafka_sla.notifications.webhooks.formats import REPEATED
from kafka_sla.pipeline.alerting.receivers import channels_of, find_address, notifiers_of, webhooks_of
from kafka_sla.pipeline.judged_time import attainments
from kafka_sla.sla.alerts import Report
from kafka_sla.sources.external_offsets import Login

log = logging.getLogger(__name__)
_PLOT_BEFORE = timedelta(minutes=30)
_GIVE_UP_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class Deliveries:
    """Sends messages about these SLAs, and about SLAs that are not configured any more, by what this process can reach:
    without a mail server, calls or logins, what needs them stays unsent."""

    settings: Settings
    slas: Sequence[str]
    ledger: Ledger
    lake: Lake
    until: datetime
    """Until when a miss is plotted."""
    smtp: Connection | None
    call: Callable[[Notifier, Sla, AlertMessage], None] | None
    login: Login | None

    def deliver(self, going_on: Collection[int]) -> int:
        """Send what is unsent, then repeat the reports that are `going_on` to receivers that forget. Raises what failed
        after the rest was tried. Returns how many reports were sent."""
        sent, errors = 0, list[Exception]()
        for channel in self._channels(self.ledger.alert_reports.unsent()):
            delivery = self.ledger.alert_reports.deliver(channel, self._send, self._may_send, self._address)
            sent += delivery.sent
            errors += delivery.errors
        for channel in self._forgetful_channels() if going_on else []:
            errors += self.ledger.alert_reports.repeat(channel, self._send, going_on, self._address)
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup(f"{len(errors)} messages could not be sent", errors)
        return sent

    def _channels(self, reports: Sequence[Report]) -> list[str]:
        """Channels of these reports that can be reached, in the order of their oldest report."""
        reports = [r for r in reports if r.channel != ASSET and self._may_send(r.alert.sla) and self._can_reach(r)]
        return list(dict.fromkeys(report.channel for report in reports))

    def _can_reach(self, report: Report) -> bool:
        if report.channel == MAIL:
            return self.smtp is not None or not self.settings.smtp_connection
        is_webhook = report.channel in webhooks_of(self._receiving(report.sla, report.channel))
        return bool(self.login if is_webhook else self.call)

    def _forgetful_channels(self) -> list[str]:
        if not self.login:
            return []
        webhooks = [pair for name in self.slas for pair in webhooks_of(self._configured[name]).items()]
        return list(dict.fromkeys(channel for channel, hook in webhooks if hook.format in REPEATED))

    def _may_send(self, sla: str) -> bool:
        return sla in self.slas or sla not in self._configured

    def _address(self, sla: Sla, channel: str) -> object:
        return find_address(self._receiving(sla, channel), channel)

    def _receiving(self, stored: Sla, channel: str) -> Sla:
        """The SLA whose configuration says who is addressed: as it is now, or, where it does not have the channel any
        more, as it was when the alert was reported."""
        now = self._configured.get(stored.name)
        return now if now and channel in channels_of(now) else stored

    def _send(self, message: AlertMessage) -> None:
        """A receiver that is not configured any more and cannot be told the end is given up, at once if it refuses."""
        first = message.reports[0]
        sla = self._receiving(first.sla, message.channel)
        try:
            self._send_to(message, sla)
        except Exception as error:
            may_come_back = isinstance(error, ReceiverUnavailable) and first.known_until > self.until - _GIVE_UP_AFTER
            if sla is self._configured.get(sla.name) or may_come_back:
                raise
            log.warning("%s is not configured any more, and was not notified of the end: %s", message.channel, error)

    def _send_to(self, message: AlertMessage, sla: Sla) -> None:
        """To the receivers of this SLA; all SLAs of the message have the same ones."""
        slas = {report.sla.name: report.sla for report in (*message.reports, *message.still_open)}
        slas |= {name: self._configured[name] for name in slas if name in self._configured} | {sla.name: sla}
        if message.to:
            slas = {name: replace(each, recipients=message.to) for name, each in slas.items()}
            sla = slas[sla.name]
        notifier, receiver = notifiers_of(sla).get(message.channel), webhooks_of(sla).get(message.channel)
        if notifier and self.call:
            self.call(notifier, sla, message)
        elif receiver and self.login:
            is_miss = message.kind == "miss"
            event = event_of(slas, miss_message(message)) if is_miss else burn_event_of(slas, burn_message(message))
            webhook.send(self.login(receiver.connection), receiver, event)
        elif message.channel == MAIL and self.smtp and sla.recipients:
            if message.kind == "miss":
                self._mail_misses(self.smtp, slas, sla, miss_message(message))
            else:
                self._mail_burns(self.smtp, slas, sla, burn_message(message))

    def _mail_misses(self, smtp: Connection, slas: dict[str, Sla], sla: Sla, message: IncidentNotice) -> None:
        if not message.is_single:
            mail.send_incident(smtp, slas, message)
            return
        (notice,) = message.notices
        around = Interval(notice.miss.start - _PLOT_BEFORE, notice.miss.end or max(self.until, notice.miss.opened_at))
        windows = self.ledger.verdicts.windows(sla, around)
        beside = surroundings(self.ledger, sla, notice.miss, around.end)
        if notice.kind == "opened":
            paces = published_catch_ups(self.lake, [sla], {sla.cluster: around.end}, self.settings.window_ms)
            beside = replace(beside, catch_up=paces[sla.name])
        mail.send(smtp, sla, notice, windows, beside)

    def _mail_burns(self, smtp: Connection, slas: dict[str, Sla], sla: Sla, message: BurnMessage) -> None:
        until = [(slas[n.burn.sla], n.burn.end or n.burn.start) for n in message.notices]
        periods, sender = attainments(self.ledger, until), mail.sender_of(smtp)
        single = partial(burn_mail, sla, message.notices[0], periods[sla.name], sender)
        several = partial(burns_mail, slas, message, periods, sender)
        mail.deliver(smtp, single() if message.is_single else several())

    @cached_property
    def _configured(self) -> dict[str, Sla]:
        return {sla.name: sla for sla in self.settings.slas}
