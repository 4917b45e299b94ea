"""How receivers want a webhook's event: the path below their address, and the body. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from kafka_sla.model.entities import Severity, WebhookFormat
from kafka_sla.notifications.webhooks.event import AlertEvent, ReportedAlert, as_json
from kafka_sla.notifications.webhooks.lines import LINE, Line, groups_of, listed, visible_lines
from kafka_sla.notifications.webhooks.message import (
    describe_alert,
    describe_still_open,
    is_resolved,
    list_lines,
    list_links,
    list_teams,
)
from kafka_sla.reporting.templates import visible
from kafka_sla.text.timestamps import instant_text

_SLACK_TEXT, _SLACK_HEADER, _SLACK_BLOCKS = 2_900, 150, 48
"""Characters of a block, of a header, and blocks: Slack allows 3,000, 150 and 50."""
_TEAMS_BYTES, _TEAMS_TITLE = 27_000, 300
"""Of a message as JSON, and characters of its title: Teams allows 28 KB."""
_PAGERDUTY_SUMMARY, _PAGERDUTY_FIELD, _OPSGENIE_MESSAGE = 1_024, 255, 130
_URGENCY: dict[Severity, tuple[str, str]] = {"page": ("critical", "P1"), "ticket": ("warning", "P3")}
"""PagerDuty's and Opsgenie's words for ours."""
_FIRING = timedelta(days=30)
"""Alertmanager takes an alert for resolved after five minutes unless it says until when it fires. Longer than runs may
pause: each repeats what goes on."""
REPEATED: frozenset[WebhookFormat] = frozenset({"alertmanager"})
"""Receivers that forget what they are told: Alertmanager keeps alerts in memory, until it ends or they do."""
UNHURRIED: frozenset[WebhookFormat] = frozenset({"alertmanager"})
PAUSE = timedelta(minutes=6)
"""Receivers that look at what they are told now and then, and say nothing of what began and ended in between, and how
long they may take: Alertmanager adds to what it said of a group five minutes later, unless its routes say otherwise."""


@dataclass(frozen=True, slots=True)
class Call:
    """One POST request."""

    path: str
    """Below the address of the connection."""
    body: Any


def call_for(event: AlertEvent, format: WebhookFormat, secret: str) -> Call:
    """The request that reports an event in a format; `secret`: the connection's password."""
    return Call("", as_json(event)) if format == "json" else _FORMATS[format](event, secret)


def _slack(event: AlertEvent, _: str) -> Call:
    """An incoming webhook: a header, why, and every SLA, as rich text, in which no name of a group or topic is mark-up
    or calls people."""
    title = visible(event.title)
    header = {"type": "header", "text": {"type": "plain_text", "text": title[:_SLACK_HEADER], "emoji": False}}
    why = groups_of([Line(event.sentence)], _SLACK_TEXT, 1, _size)
    groups = [*why, *groups_of(list_lines(event), _SLACK_TEXT, _SLACK_BLOCKS, _size)]
    told = title[:LINE].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Call("", {"text": told, "mrkdwn": False, "blocks": [header, *map(_rich_text, filter(None, groups))]})


def _rich_text(lines: list[Line]) -> dict[str, Any]:
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": list(_elements(line))} for line in lines],
    }


def _elements(line: Line) -> Iterator[dict[str, str]]:
    """A link where there is one, and the text after it."""
    name, text = visible(line.name), visible(line.text)
    if line.url:
        yield {"type": "link", "url": line.url, "text": name}
        text = text.removeprefix(name)
    if text:
        yield {"type": "text", "text": text}


def _size(line: Line) -> int:
    return len(line.text)


def _teams(event: AlertEvent, _: str) -> Call:
    """A workflow that posts an adaptive card when a webhook request is received: a coloured title, a block for each
    line, a button for each link. Its runs of text are no Markdown, so that no name of a group or topic is."""
    colour = "good" if event.has_ended else "attention"
    heading = _run(event.title[:_TEAMS_TITLE], size="large", weight="bolder", color=colour)
    actions = [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in list_links(event)]
    room = _TEAMS_BYTES - len(json.dumps(_card([heading], actions)))
    lines = [Line(event.sentence), *list_lines(event)]
    (shown,) = groups_of(lines, room, 1, lambda line: len(json.dumps(_run(line.text))))
    return Call("", _card([heading, *(_run(line.text) for line in shown)], actions))


def _card(body: list[dict[str, Any]], actions: list[dict[str, str]]) -> dict[str, Any]:
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [attached]}


def _run(text: str, **looks: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": visible(text), **looks}]}


def _pagerduty(event: AlertEvent, secret: str) -> Call:
    """Events API v2: an alert for each incident, resolved when the last of its misses or burns is over."""
    key, first = {"routing_key": secret, "dedup_key": event.incident}, event.alerts[0]
    if is_resolved(event):
        return Call("/v2/enqueue", key | {"event_action": "resolve"})
    place = {"component": first.topic, "group": first.group} if first.kind == "miss" else {}
    payload = {
        "summary": visible(event.title)[:_PAGERDUTY_SUMMARY],
        "source": first.cluster,
        "severity": _URGENCY[event.severity][0],
        "timestamp": instant_text(first.start),
        **{name: visible(text)[:_PAGERDUTY_FIELD] for name, text in place.items()},
        "class": first.cause,
        "custom_details": {
            "cause": visible(event.sentence or event.cause)[:LINE],
            "teams": listed(list_teams(event)),
            "alerts": listed(map(describe_alert, event.alerts)),
            "still_open": listed(alert.sla for alert in event.still_open),
        },
    }
    links = [{"href": url, "text": name} for name, url in list_links(event)]
    about = {"event_action": "trigger", "client": "kafka_sla", "links": links, "payload": payload}
    return Call("/v2/enqueue", key | about)


def _opsgenie(event: AlertEvent, _: str) -> Call:
    """Alert API: an alert for each incident, noted on while some recover, and closed with the last one."""
    named, first = f"/v2/alerts/{quote(event.incident, safe='')}", event.alerts[0]
    lines = [event.title, *map(describe_alert, event.alerts), describe_still_open(event)]
    if event.has_ended:
        does = "close" if is_resolved(event) else "notes"
        return Call(f"{named}/{does}?identifierType=alias", {"note": visible_lines(lines)})
    return Call(
        "/v2/alerts",
        {
            "message": visible(event.title)[:_OPSGENIE_MESSAGE],
            "alias": event.incident,
            "description": visible_lines([event.sentence[:LINE], *lines]),
            "priority": _URGENCY[event.severity][1],
            "source": "kafka_sla",
            "entity": first.cluster,
            "tags": ["kafka_sla", first.cause],
            "details": {"sla": first.sla, "cluster": first.cluster, "runbook": first.runbook, "url": event.url},
        },
    )


def _alertmanager(event: AlertEvent, _: str) -> Call:
    """API v2: an alert for each miss or burn, which its routes group as they like. It fires for long, even if it is
    over when it is first reported, and is resolved by its recovery: Alertmanager says nothing of an alert that it only
    knows as resolved. Its labels are what Alertmanager knows it by."""
    return Call("/api/v2/alerts", [_alert(event, alert) for alert in event.alerts])


def _alert(event: AlertEvent, of: ReportedAlert) -> dict[str, Any]:
    is_miss = of.kind == "miss"
    own = {"miss": of.id} if is_miss else {"burn": of.id, "severity": event.severity}
    name = "KafkaSlaMissed" if is_miss else "KafkaSlaBurns"
    labels = {"sla": of.sla, "cluster": of.cluster, "team": of.team, "alertname": name, **own}
    notes = {"summary": describe_alert(of), "description": of.sentence, "runbook_url": of.runbook}
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in notes.items() if value},
        "startsAt": instant_text(of.start),
        "endsAt": instant_text(of.end if event.has_ended and of.end else max(of.start, datetime.now(UTC)) + _FIRING),
        **({"generatorURL": of.url} if of.url else {}),
    }


_FORMATS: dict[WebhookFormat, Callable[[AlertEvent, str], Call]] = {
    "slack": _slack,
    "teams": _teams,
    "pagerduty": _pagerduty,
    "opsgenie": _opsgenie,
    "alertmanager": _alertmanager,
}
"""By name: from a message and the connection's password to a request."""
