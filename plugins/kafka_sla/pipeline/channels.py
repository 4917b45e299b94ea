"""Through which channels an SLA is heard of, and who hears of it there. Reaches nobody."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafka_sla.ledger.notices.outbox import MAIL
from kafka_sla.model.entities import Notifier, Sla, Webhook


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is to hear of an SLA."""

    team: str
    channels: Sequence[str]
    alerts: Collection[str] = ()
    """Severities of burns that they want to hear of."""


def audience_of(sla: Sla, channels: Sequence[str]) -> Audience:
    return Audience(sla.team, channels, {pair.severity for pair in sla.burn_pairs})


def channels_of(sla: Sla) -> list[str]:
    """All of them."""
    return [MAIL, *notifiers_of(sla), *webhooks_of(sla)]


def webhooks_of(sla: Sla) -> dict[str, Webhook]:
    """By channel: the same for all SLAs that have the webhook."""
    return {f"webhook {webhook.connection} {webhook.format}": webhook for webhook in sla.webhooks}


def notifiers_of(sla: Sla) -> dict[str, Notifier]:
    """By channel: the class, numbered where the same one is there twice."""
    paths = [notifier.path for notifier in sla.notifiers]
    return {f"{n.path}#{paths[:i].count(n.path) + 1}": n for i, n in enumerate(sla.notifiers)}


def destination(sla: Sla, channel: str) -> object:
    """Who hears of the SLA through the channel, as JSON-able data; None: of one miss at a time."""
    if channel == MAIL:
        return sorted(sla.recipients)
    if channel in webhooks_of(sla):
        return channel
    notifier = notifiers_of(sla).get(channel)
    return [notifier.path, notifier.kwargs] if notifier and not notifier.each_miss else None
