"""The channels of an SLA, and who is addressed through each. Sends nothing."""

from __future__ import annotations

from kafka_sla.ledger.alerts.report_rows import MAIL
from kafka_sla.model.entities import Notifier, Sla, Webhook


def channels_of(sla: Sla) -> list[str]:
    """Channels on which somebody is addressed."""
    return [*([MAIL] if sla.recipients else []), *notifiers_of(sla), *webhooks_of(sla)]


def webhooks_of(sla: Sla) -> dict[str, Webhook]:
    """By channel: the same for all SLAs that have the webhook."""
    return {f"webhook {webhook.connection} {webhook.format}": webhook for webhook in sla.webhooks}


def notifiers_of(sla: Sla) -> dict[str, Notifier]:
    """By channel: the class, numbered where the same one is there twice."""
    paths = [notifier.path for notifier in sla.notifiers]
    return {f"{n.path}#{paths[:i].count(n.path) + 1}": n for i, n in enumerate(sla.notifiers)}


def find_address(sla: Sla, channel: str) -> object:
    """Who is addressed about the SLA on the channel, as JSON-able data; None: one alert at a time."""
    if channel == MAIL:
        return sorted(sla.recipients)
    if channel in webhooks_of(sla):
        return channel
    notifier = notifiers_of(sla).get(channel)
    return [notifier.path, notifier.kwargs] if notifier and not notifier.each_miss else None
