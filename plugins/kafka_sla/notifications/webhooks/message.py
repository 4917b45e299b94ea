"""What an event says to people and pagers, in lines and fields that receivers share."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_sla.notifications.webhooks.event import AlertEvent, ReportedAlert
from kafka_sla.notifications.webhooks.lines import Line, still
from kafka_sla.text.natural_order import natural


def describe_alert(alert: ReportedAlert) -> str:
    """`payments within 30 s (Billing): worst latency 17 min, threshold 30 s; group payments, orders-3`."""
    team = f" ({alert.team})" if alert.team else ""
    place = f"; group {alert.group}, {alert.topic}-{alert.partition}" if alert.kind == "miss" else ""
    return f"{alert.sla}{team}: {alert.summary}{place}"


def list_lines(event: AlertEvent) -> Iterator[Line]:
    """Each alert, and what is still open."""
    for alert in event.alerts:
        yield Line(describe_alert(alert), alert.sla, alert.url)
    yield Line(describe_still_open(event))


def describe_still_open(event: AlertEvent) -> str:
    """`Still missed: payments within 30 s, and 12 more`; empty if nothing is."""
    what = "Still missed" if event.alerts[0].kind == "miss" else "Still burning"
    return still(what, [alert.sla for alert in event.still_open])


def list_links(event: AlertEvent) -> list[tuple[str, str]]:
    """Names and addresses of the runbook and of the page about all alerts, without those that are not known."""
    page = "Misses" if event.alerts[0].kind == "miss" else "SLA" if len(event.alerts) == 1 else "SLAs"
    return [link for link in (("Runbook", event.alerts[0].runbook), (page, event.url)) if link[1]]


def list_teams(event: AlertEvent) -> list[str]:
    """The teams of the alerts."""
    return sorted({alert.team for alert in event.alerts if alert.team}, key=natural)


def is_resolved(event: AlertEvent) -> bool:
    """Whether nothing of the incident is left."""
    return event.has_ended and not event.still_open
