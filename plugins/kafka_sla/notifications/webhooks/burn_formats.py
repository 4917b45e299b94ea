"""How receivers want the event of burns: the path below their address, and the body. Pure; sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from kafka_sla.model.entities import WebhookFormat
from kafka_sla.notifications.webhooks.burn_event import BurnEvent, ReportedBurn
from kafka_sla.notifications.webhooks.event import as_json
from kafka_sla.notifications.webhooks.formats import (
    OPSGENIE_MESSAGE,
    Call,
    alert,
    card,
    slack_message,
    team_names,
    triggered,
)
from kafka_sla.notifications.webhooks.lines import Line, listed, still, visible_lines
from kafka_sla.reporting.templates import visible
from kafka_sla.text.timestamps import instant_text

_SEVERITIES = {"page": ("critical", "P1"), "ticket": ("warning", "P3")}
"""PagerDuty's and Opsgenie's words for ours."""


def _slack(event: BurnEvent, _: str) -> Call:
    return slack_message(event.title, event.sentence, _lines(event))


def _teams(event: BurnEvent, _: str) -> Call:
    links = [("Runbook", event.burns[0].runbook), ("SLA" if len(event.burns) == 1 else "SLAs", event.url)]
    return card(event.title, [Line(event.sentence), *_lines(event)], links, is_good=event.kind == "burn_over")


def _pagerduty(event: BurnEvent, secret: str) -> Call:
    key, first = {"routing_key": secret, "dedup_key": event.incident}, event.burns[0]
    if event.is_over:
        return Call("/v2/enqueue", key | {"event_action": "resolve"})
    payload = {
        "source": first.cluster,
        "class": "burn_rate",
        "severity": _SEVERITIES[event.severity][0],
        "timestamp": instant_text(first.start),
        "custom_details": {
            "cause": visible(event.sentence or event.cause),
            "teams": team_names(event.burns),
            "burns": listed(map(_line, event.burns)),
            "still_burning": listed(burn.sla for burn in event.still_burning),
        },
    }
    return triggered(key, event.title, payload, [("Runbook", first.runbook), ("SLAs", event.url)])


def _opsgenie(event: BurnEvent, _: str) -> Call:
    named, first = f"/v2/alerts/{quote(event.incident, safe='')}", event.burns[0]
    text = visible_lines([event.title, event.sentence, *map(_line, event.burns), _rest(event)])
    if event.kind == "burn_over":
        return Call(f"{named}/{'close' if event.is_over else 'notes'}?identifierType=alias", {"note": text})
    return Call(
        "/v2/alerts",
        {
            "message": visible(event.title)[:OPSGENIE_MESSAGE],
            "alias": event.incident,
            "description": text,
            "priority": _SEVERITIES[event.severity][1],
            "source": "kafka_sla",
            "entity": first.cluster,
            "tags": ["kafka_sla", "burn_rate"],
            "details": {"sla": first.sla, "cluster": first.cluster, "runbook": first.runbook, "url": event.url},
        },
    )


def _alertmanager(event: BurnEvent, _: str) -> Call:
    """An alert for each burn, which its routes group as they like."""
    return Call("/api/v2/alerts", [_alert(event, burn) for burn in event.burns])


def _alert(event: BurnEvent, burn: ReportedBurn) -> dict[str, object]:
    labels = {
        "alertname": "KafkaSlaBurns",
        "sla": burn.sla,
        "cluster": burn.cluster,
        "team": burn.team,
        "severity": event.severity,
        "burn": burn.id,
    }
    notes = {"summary": _line(burn), "description": event.sentence, "runbook_url": burn.runbook}
    return alert(labels, notes, burn.start, burn.end, burn.url)


def _line(burn: ReportedBurn) -> str:
    """`payments within 30 s (Billing): the error budget burned 83 times as fast as it lasts over 1 h; …`."""
    return f"{burn.sla}{f' ({burn.team})' if burn.team else ''}: {burn.sentence}"


def _rest(event: BurnEvent) -> str:
    return still("Still burning", [burn.sla for burn in event.still_burning])


def _lines(event: BurnEvent) -> list[Line]:
    return [*(Line(_line(burn), burn.sla, burn.url) for burn in event.burns), Line(_rest(event))]


FORMATS: dict[WebhookFormat, Callable[[BurnEvent, str], Call]] = {
    "json": lambda event, _: Call("", as_json(event)),
    "slack": _slack,
    "teams": _teams,
    "pagerduty": _pagerduty,
    "opsgenie": _opsgenie,
    "alertmanager": _alertmanager,
}
"""By name: from an event and the connection's password to a request."""
