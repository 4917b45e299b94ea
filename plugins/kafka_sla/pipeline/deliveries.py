"""Hands what waits of misses and of burns to who hears of it: each once, those that share a cause as one message, and
again to receivers that forget. Queues nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TypeVar

from kafka_sla.config.settings import Settings
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.pace_rows import published_catch_ups
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.burn_notices import BurnMessage, BurnNotice
from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.notice_queue import Batch, NoticeQueue
from kafka_sla.ledger.notices.outbox import ASSET, MAIL, Notice
from kafka_sla.model.entities import Connection, Interval, Notifier, Sla, Webhook
from kafka_sla.notifications import smtp as mail
from kafka_sla.notifications.burn_email import burn_mail
from kafka_sla.notifications.burns_email import burns_mail
from kafka_sla.notifications.incident_causes import name_burn_causes, name_causes
from kafka_sla.notifications.miss_context import surroundings
from kafka_sla.notifications.webhooks import webhook
from kafka_sla.notifications.webhooks.burn_event import BurnEvent, burn_event_of
from kafka_sla.notifications.webhooks.event import WebhookEvent, event_of
from kafka_sla.notifications.webhooks.formats import PAUSE, REPEATED, UNHURRIED
from kafka_sla.pipeline.channels import destination, notifiers_of, webhooks_of
from kafka_sla.pipeline.judged_time import attainments
from kafka_sla.pipeline.news import as_it_ended
from kafka_sla.sources.external_offsets import Login

N = TypeVar("N", Notice, BurnNotice)
_PLOT_BEFORE = timedelta(minutes=30)


@dataclass(frozen=True)
class Deliveries:
    """Of these SLAs, by what this process can reach: without a mail server, calls or logins, what needs them waits."""

    settings: Settings
    slas: Sequence[str]
    ledger: Ledger
    lake: Lake
    until: datetime
    """Until when a miss is plotted."""
    smtp: Connection | None
    call: Callable[[Notifier, Sla, IncidentNotice], None] | None
    call_of_burn: Callable[[Notifier, Sla, BurnMessage], None] | None
    login: Login | None

    def deliver(self) -> int:
        """All that waits; what fails is raised after the rest was tried. Answers how many notices were sent."""
        try:
            of_misses = self._deliver(self.ledger.outbox.queue, self._send_misses, self._causes, self.call)
        finally:
            burns = self.ledger.burn_notices.queue
            of_burns = self._deliver(burns, self._send_burns, self._causes_of_burns, self.call_of_burn)
        return of_misses + of_burns

    def _deliver(
        self,
        queue: NoticeQueue[N],
        send: Callable[[Batch[N]], None],
        causes: Callable[[Sequence[N]], list[str]],
        call: object | None,
    ) -> int:
        webhooks: dict[str, Webhook] = {}
        for name in self.slas:
            webhooks |= webhooks_of(self._sla(name))
        channels = None if call else [MAIL, *webhooks]
        forget = [channel for channel, hook in webhooks.items() if self.login and hook.format in REPEATED]
        unhurried = [channel for channel, hook in webhooks.items() if hook.format in UNHURRIED]
        try:
            but = [ASSET, *([] if self.login else webhooks), *([MAIL] if self._lacks_a_server() else [])]
            return queue.deliver_together(
                send, causes, self.slas, channels, address=self._address, but=but, unhurried=unhurried, pause=PAUSE
            )
        finally:
            queue.repeat_together(send, self.slas, forget, address=self._address)

    def _lacks_a_server(self) -> bool:
        """Whether there is somebody to mail and a mail server that another process can reach. A configuration without
        one mails nobody."""
        mailed = any(self._sla(name).recipients for name in self.slas)
        return mailed and not self.smtp and bool(self.settings.smtp_connection)

    def _address(self, sla: str, channel: str) -> object:
        """Who hears of it by now; nobody of an SLA that the configuration does not have any more."""
        return destination(self._known[sla], channel) if sla in self._known else ("gone", sla)

    def _causes(self, notices: Sequence[Notice]) -> list[str]:
        return name_causes(notices, lambda notice: self._address(notice.miss.sla, notice.channel))

    def _causes_of_burns(self, notices: Sequence[BurnNotice]) -> list[str]:
        return name_burn_causes(notices, lambda notice: self._address(notice.burn.sla, notice.channel))

    def _send_misses(self, message: IncidentNotice) -> None:
        first = message.notices[0]
        sla = self._sla(first.miss.sla)

        def by_mail(smtp: Connection) -> None:
            if message.is_single:
                self._mail_miss(smtp, sla, first)
            else:
                mail.send_incident(smtp, self._known, message)

        self._send(message, sla, self.call, event_of, by_mail)

    def _send_burns(self, message: BurnMessage) -> None:
        first, known = message.notices[0], self._known
        sla = known[first.burn.sla]

        def by_mail(smtp: Connection) -> None:
            until = [(known[n.burn.sla], n.burn.end or n.burn.start) for n in message.notices]
            periods, sender = attainments(self.ledger, until), mail.sender_of(smtp)
            single = partial(burn_mail, sla, first, periods[sla.name], sender)
            several = partial(burns_mail, known, message, periods, sender)
            mail.deliver(smtp, single() if message.is_single else several())

        self._send(message, sla, self.call_of_burn, burn_event_of, by_mail)

    def _send(
        self,
        message: Batch[N],
        sla: Sla,
        call: Callable[[Notifier, Sla, Batch[N]], None] | None,
        event: Callable[[dict[str, Sla], Batch[N]], WebhookEvent | BurnEvent],
        by_mail: Callable[[Connection], None],
    ) -> None:
        """To those who hear of it through the channel by now; all SLAs of the message have the same ones."""
        notifier, receiver = notifiers_of(sla).get(message.channel), webhooks_of(sla).get(message.channel)
        if notifier and call:
            call(notifier, sla, message)
        elif receiver and self.login:
            webhook.send(self.login(receiver.connection), receiver, event(self._known, message))
        elif message.channel == MAIL and self.smtp and sla.recipients:
            by_mail(self.smtp)

    def _mail_miss(self, smtp: Connection, sla: Sla, notice: Notice) -> None:
        over = as_it_ended(self.ledger, notice) if notice.kind == "opened" else None  # it may have waited for a server
        end = over.end if over else None
        around = Interval(notice.miss.start - _PLOT_BEFORE, end or max(self.until, notice.miss.opened_at))
        windows = self.ledger.verdicts.windows(sla, around)
        beside = surroundings(self.ledger, sla, notice.miss, around.end)
        if notice.kind == "opened":
            paces = published_catch_ups(self.lake, [sla], {sla.cluster: around.end}, self.settings.window_ms)
            beside = replace(beside, catch_up=paces[sla.name])
        mail.send(smtp, sla, notice, windows, beside)

    @cached_property
    def _known(self) -> dict[str, Sla]:
        return {sla.name: sla for sla in self.settings.slas}

    def _sla(self, name: str) -> Sla:
        return self.settings.sla(name)
