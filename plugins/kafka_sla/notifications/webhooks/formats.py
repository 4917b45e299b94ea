"""How receivers want a webhook's event: the path below their address, and the body. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from kafka_sla.model.entities import WebhookFormat
from kafka_sla.notifications.webhooks.burn_event import ReportedBurn
from kafka_sla.notifications.webhooks.event import ReportedMiss, WebhookEvent, as_json
from kafka_sla.notifications.webhooks.lines import LINE, OPSGENIE_TEXT, Line, groups_of, listed, still, visible_lines
from kafka_sla.reporting.templates import visible
from kafka_sla.text.natural_order import natural
from kafka_sla.text.timestamps import instant_text

_SLACK_TEXT, _SLACK_HEADER, _SLACK_BLOCKS = 2_900, 150, 48
"""Characters of a block, of a header, and blocks: Slack allows 3,000, 150 and 50."""
_TEAMS_BYTES, _TEAMS_TITLE = 27_000, 300
"""Of a message as JSON, and characters of its title: Teams allows 28 KB."""
_PAGERDUTY_SUMMARY, _PAGERDUTY_FIELD, OPSGENIE_MESSAGE = 1_024, 255, 130
_FIRING = timedelta(days=30)
"""Alertmanager takes an alert for resolved after five minutes unless it says until when it fires. Longer than runs may
pause: each repeats what goes on."""
REPEATED: frozenset[WebhookFormat] = frozenset({"alertmanager"})
"""Receivers that forget what they are told: Alertmanager keeps alerts in memory, until it ends or they do."""


@dataclass(frozen=True, slots=True)
class Call:
    """One POST request."""

    path: str
    """Below the address of the connection."""
    body: Any


def slack(event: WebhookEvent, _: str) -> Call:
    """An incoming webhook: a header, why, and every SLA."""
    return slack_message(event.title, event.misses[0].sentence, _lines(event))


def slack_message(title: str, why: str, lines: Iterable[Line]) -> Call:
    """A header, why, and the lines: as rich text, in which no name of a group or topic is mark-up or calls people."""
    header = {"type": "header", "text": {"type": "plain_text", "text": visible(title)[:_SLACK_HEADER], "emoji": False}}
    groups = [*groups_of([Line(why)], _SLACK_TEXT, 1, _size), *groups_of(lines, _SLACK_TEXT, _SLACK_BLOCKS, _size)]
    told = visible(title)[:LINE].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
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


def teams(event: WebhookEvent, _: str) -> Call:
    """A workflow that posts an adaptive card when a webhook request is received."""
    links = [("Runbook", event.misses[0].runbook), ("Misses", event.url)]
    why = event.misses[0].sentence
    return card(event.title, [Line(why), *_lines(event)], links, is_good=event.kind == "recovered")


def card(title: str, lines: Iterable[Line], links: Iterable[tuple[str, str]], *, is_good: bool) -> Call:
    """An adaptive card: a coloured title, a block for each line, a button for each link (name, address). Its runs of
    text are no Markdown, so that no name of a group or topic is."""
    heading = _run(title[:_TEAMS_TITLE], size="large", weight="bolder", color="good" if is_good else "attention")
    actions = [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in links if url]
    room = _TEAMS_BYTES - len(json.dumps(_message([heading], actions)))
    (shown,) = groups_of(lines, room, 1, lambda line: len(json.dumps(_run(line.text))))
    return Call("", _message([heading, *(_run(line.text) for line in shown)], actions))


def _message(body: list[dict[str, Any]], actions: list[dict[str, str]]) -> dict[str, Any]:
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


def pagerduty(event: WebhookEvent, secret: str) -> Call:
    """Events API v2: an alert for each incident, resolved when the last of its misses has recovered."""
    key = {"routing_key": secret, "dedup_key": event.incident}
    if _is_over(event):
        return Call("/v2/enqueue", key | {"event_action": "resolve"})
    first = event.misses[0]
    payload = {
        "source": first.cluster,
        "severity": "critical",
        "timestamp": instant_text(first.start),
        "component": visible(first.topic)[:_PAGERDUTY_FIELD],
        "group": visible(first.group)[:_PAGERDUTY_FIELD],
        "class": first.cause,
        "custom_details": {
            "cause": visible(first.sentence)[:LINE],
            "teams": team_names(event.misses),
            "misses": listed(map(_line, event.misses)),
            "still_open": listed(miss.sla for miss in event.still_open),
        },
    }
    return triggered(key, event.title, payload, [("Runbook", first.runbook), ("Misses", event.url)])


def team_names(reported: Iterable[ReportedMiss | ReportedBurn]) -> list[str]:
    """Of those that have one."""
    return listed(sorted({one.team for one in reported if one.team}, key=natural))


def triggered(key: dict[str, str], title: str, payload: dict[str, Any], links: Iterable[tuple[str, str]]) -> Call:
    """An event of PagerDuty that opens an alert or adds to it; links are names and addresses."""
    named = [{"href": url, "text": text} for text, url in links if url]
    about = {"event_action": "trigger", "client": "kafka_sla", "links": named}
    return Call("/v2/enqueue", key | about | {"payload": {"summary": visible(title)[:_PAGERDUTY_SUMMARY], **payload}})


def opsgenie(event: WebhookEvent, _: str) -> Call:
    """Alert API: an alert for each incident, noted on while some recover, and closed with the last one."""
    named = f"/v2/alerts/{quote(event.incident, safe='')}"
    text = visible_lines([event.title, *map(_line, event.misses), _open_line(event)])
    if event.kind == "recovered":
        return Call(f"{named}/{'close' if _is_over(event) else 'notes'}?identifierType=alias", {"note": text})
    first = event.misses[0]
    return Call(
        "/v2/alerts",
        {
            "message": visible(event.title)[:OPSGENIE_MESSAGE],
            "alias": event.incident,
            "description": f"{visible(first.sentence)[:LINE]}\n{text}"[:OPSGENIE_TEXT],
            "priority": "P1",
            "source": "kafka_sla",
            "entity": first.cluster,
            "tags": ["kafka_sla", first.cause],
            "details": {"sla": first.sla, "cluster": first.cluster, "runbook": first.runbook, "url": event.url},
        },
    )


def alertmanager(event: WebhookEvent, _: str) -> Call:
    """API v2: an alert for each miss, which its routes group as they like; it is resolved when its end is past."""
    return Call("/api/v2/alerts", [_alert(miss) for miss in event.misses])


FORMATS: dict[WebhookFormat, Callable[[WebhookEvent, str], Call]] = {
    "json": lambda event, _: Call("", as_json(event)),
    "slack": slack,
    "teams": teams,
    "pagerduty": pagerduty,
    "opsgenie": opsgenie,
    "alertmanager": alertmanager,
}
"""By name: from an event and the connection's password to a request."""


def _alert(miss: ReportedMiss) -> dict[str, Any]:
    """Its labels are the same when it opens and recovers: they are what Alertmanager knows it by."""
    labels = {
        "alertname": "KafkaSlaMissed",
        "sla": miss.sla,
        "cluster": miss.cluster,
        "team": miss.team,
        "miss": miss.id,
    }
    notes = {"summary": _line(miss), "description": miss.sentence, "runbook_url": miss.runbook}
    return alert(labels, notes, miss.start, miss.end, miss.url)


def alert(
    labels: Mapping[str, str], notes: Mapping[str, str], start: datetime, end: datetime | None, url: str
) -> dict[str, Any]:
    """An alert of Alertmanager, without what is empty; it fires for long if it has no end yet."""
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in notes.items() if value},
        "startsAt": instant_text(start),
        "endsAt": instant_text(end or max(start, datetime.now(UTC)) + _FIRING),
        **({"generatorURL": url} if url else {}),
    }


def _is_over(event: WebhookEvent) -> bool:
    return event.kind == "recovered" and not event.still_open


def _line(miss: ReportedMiss) -> str:
    """`payments within 30 s (Billing): worst latency 17 min, threshold 30 s; group payments, orders-3`."""
    team = f" ({miss.team})" if miss.team else ""
    return f"{miss.sla}{team}: {miss.violation}; group {miss.group}, {miss.topic}-{miss.partition}"


def _open_line(event: WebhookEvent) -> str:
    return still("Still missed", [miss.sla for miss in event.still_open])


def _lines(event: WebhookEvent) -> list[Line]:
    return [*(Line(_line(miss), miss.sla, miss.url) for miss in event.misses), Line(_open_line(event))]
