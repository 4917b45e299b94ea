"""How receivers want a webhook's event: the path below their address, and the body. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from kafka_sla.model.entities import Severity, WebhookFormat
from kafka_sla.notifications.webhooks.burn_event import BurnEvent
from kafka_sla.notifications.webhooks.event import WebhookEvent, as_json
from kafka_sla.notifications.webhooks.lines import LINE, Line, groups_of, listed, visible_lines
from kafka_sla.notifications.webhooks.message import Message, Part, message_of
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


def call_for(event: WebhookEvent | BurnEvent, format: WebhookFormat, secret: str) -> Call:
    """The request that reports an event in a format; `secret`: the connection's password."""
    return Call("", as_json(event)) if format == "json" else _FORMATS[format](message_of(event), secret)


def _slack(message: Message, _: str) -> Call:
    """An incoming webhook: a header, why, and every SLA, as rich text, in which no name of a group or topic is mark-up
    or calls people."""
    title = visible(message.title)
    header = {"type": "header", "text": {"type": "plain_text", "text": title[:_SLACK_HEADER], "emoji": False}}
    why = groups_of([Line(message.why)], _SLACK_TEXT, 1, _size)
    groups = [*why, *groups_of(message.lines(), _SLACK_TEXT, _SLACK_BLOCKS, _size)]
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


def _teams(message: Message, _: str) -> Call:
    """A workflow that posts an adaptive card when a webhook request is received: a coloured title, a block for each
    line, a button for each link. Its runs of text are no Markdown, so that no name of a group or topic is."""
    colour = "good" if message.ended else "attention"
    heading = _run(message.title[:_TEAMS_TITLE], size="large", weight="bolder", color=colour)
    actions = [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in message.links]
    room = _TEAMS_BYTES - len(json.dumps(_card([heading], actions)))
    lines = [Line(message.why), *message.lines()]
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


def _pagerduty(message: Message, secret: str) -> Call:
    """Events API v2: an alert for each incident, resolved when the last of its misses or burns is over."""
    key, first = {"routing_key": secret, "dedup_key": message.incident}, message.parts[0].of
    if message.is_over:
        return Call("/v2/enqueue", key | {"event_action": "resolve"})
    parts, left = message.lists
    payload = {
        "summary": visible(message.title)[:_PAGERDUTY_SUMMARY],
        "source": first.cluster,
        "severity": _URGENCY[message.severity][0],
        "timestamp": instant_text(first.start),
        **{name: visible(text)[:_PAGERDUTY_FIELD] for name, text in message.about.items()},
        "class": message.cause,
        "custom_details": {
            "cause": visible(message.why or message.shared)[:LINE],
            "teams": listed(message.teams),
            parts: listed(part.text for part in message.parts),
            left: listed(message.left),
        },
    }
    links = [{"href": url, "text": name} for name, url in message.links]
    about = {"event_action": "trigger", "client": "kafka_sla", "links": links, "payload": payload}
    return Call("/v2/enqueue", key | about)


def _opsgenie(message: Message, _: str) -> Call:
    """Alert API: an alert for each incident, noted on while some recover, and closed with the last one."""
    named, first = f"/v2/alerts/{quote(message.incident, safe='')}", message.parts[0].of
    lines = [message.title, *(part.text for part in message.parts), message.still]
    if message.ended:
        does = "close" if message.is_over else "notes"
        return Call(f"{named}/{does}?identifierType=alias", {"note": visible_lines(lines)})
    return Call(
        "/v2/alerts",
        {
            "message": visible(message.title)[:_OPSGENIE_MESSAGE],
            "alias": message.incident,
            "description": visible_lines([message.why[:LINE], *lines]),
            "priority": _URGENCY[message.severity][1],
            "source": "kafka_sla",
            "entity": first.cluster,
            "tags": ["kafka_sla", message.cause],
            "details": {"sla": first.sla, "cluster": first.cluster, "runbook": first.runbook, "url": message.link[1]},
        },
    )


def _alertmanager(message: Message, _: str) -> Call:
    """API v2: an alert for each miss or burn, which its routes group as they like. It fires for long, even if it is
    over when it is first reported, and is resolved by its recovery: Alertmanager says nothing of an alert that it only
    knows as resolved. Its labels are what Alertmanager knows it by."""
    return Call("/api/v2/alerts", [_alert(part, ended=message.ended) for part in message.parts])


def _alert(part: Part[Any], *, ended: bool) -> dict[str, Any]:
    of = part.of
    labels = {"sla": of.sla, "cluster": of.cluster, "team": of.team, **part.labels}
    notes = {"summary": part.text, "description": part.why, "runbook_url": of.runbook}
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in notes.items() if value},
        "startsAt": instant_text(of.start),
        "endsAt": instant_text(of.end if ended and of.end else max(of.start, datetime.now(UTC)) + _FIRING),
        **({"generatorURL": of.url} if of.url else {}),
    }


_FORMATS: dict[WebhookFormat, Callable[[Message, str], Call]] = {
    "slack": _slack,
    "teams": _teams,
    "pagerduty": _pagerduty,
    "opsgenie": _opsgenie,
    "alertmanager": _alertmanager,
}
"""By name: from a message and the connection's password to a request."""
