"""How receivers want a webhook's event: the path below their address, and the body. Pure; sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from kafka_sla.model.entities import WebhookFormat
from kafka_sla.notifications.webhooks.event import ReportedMiss, WebhookEvent, as_json
from kafka_sla.text.formatting import count
from kafka_sla.text.natural_order import natural
from kafka_sla.text.timestamps import instant_text

SLACK_TEXT, _SLACK_HEADER, SLACK_BLOCKS = 2_900, 150, 48
"""Characters of a section, of a header, and blocks: Slack allows 3,000, 150 and 50."""
TEAMS_TEXT = 12_000
"""Characters of a card's list: Teams allows 28 KB for all of the card, and a character may take two bytes."""
_PAGERDUTY_SUMMARY, OPSGENIE_MESSAGE, OPSGENIE_TEXT = 1_024, 130, 15_000
_FIRING = timedelta(days=30)
"""Alertmanager takes an alert for resolved after five minutes unless it says until when it fires."""


@dataclass(frozen=True, slots=True)
class Call:
    """One POST request."""

    path: str
    """Below the address of the connection."""
    body: Any


def slack(event: WebhookEvent, _: str) -> Call:
    """An incoming webhook: a header, why, and every SLA."""
    texts = [escaped(event.misses[0].sentence), *chunks(_slack_lines(event), SLACK_TEXT, SLACK_BLOCKS)]
    return slack_message(event.title, texts)


def slack_message(title: str, texts: Iterable[str]) -> Call:
    """A header and a section for each text, which is Slack's mark-down."""
    header = {"type": "header", "text": {"type": "plain_text", "text": title[:_SLACK_HEADER]}}
    sections = [{"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts if text]
    return Call("", {"text": escaped(title), "blocks": [header, *sections]})


def teams(event: WebhookEvent, _: str) -> Call:
    """A workflow that posts an adaptive card when a webhook request is received."""
    (lines,) = chunks([*map(_line, event.misses), _open_line(event)], TEAMS_TEXT, 1)
    texts = [event.misses[0].sentence, lines.replace("\n", "\n\n")]
    links = [("Runbook", event.misses[0].runbook), ("Misses", event.url)]
    return card(event.title, texts, links, is_good=event.kind == "recovered")


def card(title: str, texts: Iterable[str], links: Iterable[tuple[str, str]], *, is_good: bool) -> Call:
    """An adaptive card: a coloured title, a block for each text, a button for each link (name, address)."""
    heading = {
        "type": "TextBlock",
        "size": "large",
        "weight": "bolder",
        "wrap": True,
        "text": title,
        "color": "good" if is_good else "attention",
    }
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [heading, *({"type": "TextBlock", "wrap": True, "text": text} for text in texts if text)],
        "actions": [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in links if url],
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": content}
    return Call("", {"type": "message", "attachments": [attached]})


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
        "component": first.topic,
        "group": first.group,
        "class": first.cause,
        "custom_details": {
            "cause": first.sentence,
            "teams": sorted({miss.team for miss in event.misses if miss.team}, key=natural),
            "misses": [_line(miss) for miss in event.misses],
            "still_open": [miss.sla for miss in event.still_open],
        },
    }
    return triggered(key, event.title, payload, [("Runbook", first.runbook), ("Misses", event.url)])


def triggered(key: dict[str, str], title: str, payload: dict[str, Any], links: Iterable[tuple[str, str]]) -> Call:
    """An event of PagerDuty that opens an alert or adds to it; links are names and addresses."""
    named = [{"href": url, "text": text} for text, url in links if url]
    about = {"event_action": "trigger", "client": "kafka_sla", "links": named}
    return Call("/v2/enqueue", key | about | {"payload": {"summary": title[:_PAGERDUTY_SUMMARY], **payload}})


def opsgenie(event: WebhookEvent, _: str) -> Call:
    """Alert API: an alert for each incident, noted on while some recover, and closed with the last one."""
    named = f"/v2/alerts/{quote(event.incident, safe='')}"
    text = "\n".join([event.title, *map(_line, event.misses), _open_line(event)])[:OPSGENIE_TEXT]
    if event.kind == "recovered":
        return Call(f"{named}/{'close' if _is_over(event) else 'notes'}?identifierType=alias", {"note": text})
    first = event.misses[0]
    return Call(
        "/v2/alerts",
        {
            "message": event.title[:OPSGENIE_MESSAGE],
            "alias": event.incident,
            "description": f"{first.sentence}\n{text}"[:OPSGENIE_TEXT],
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
        "endsAt": instant_text(end or start + _FIRING),
        **({"generatorURL": url} if url else {}),
    }


def _is_over(event: WebhookEvent) -> bool:
    return event.kind == "recovered" and not event.still_open


def _line(miss: ReportedMiss) -> str:
    """`payments within 30 s (Billing): worst latency 17 min, threshold 30 s; group payments, orders-3`."""
    team = f" ({miss.team})" if miss.team else ""
    return f"{miss.sla}{team}: {miss.violation}; group {miss.group}, {miss.topic}-{miss.partition}"


def _open_line(event: WebhookEvent) -> str:
    return f"Still missed: {', '.join(miss.sla for miss in event.still_open)}" if event.still_open else ""


def _slack_lines(event: WebhookEvent) -> Iterator[str]:
    for miss in event.misses:
        text = escaped(_line(miss))
        yield f"<{miss.url}|{escaped(miss.sla)}>{text.removeprefix(escaped(miss.sla))}" if miss.url else text
    if event.still_open:
        yield escaped(_open_line(event))


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def chunks(lines: Iterable[str], size: int, most: int) -> list[str]:
    """The lines as texts of at most `size` characters; of what `most` texts cannot hold only the number of lines."""
    texts, left = [""], 0
    for line in lines:
        cut = line[: size - 40]
        room = size - (40 if len(texts) == most else 0)
        if not left and len(texts[-1]) + len(cut) < room:
            texts[-1] += f"\n{cut}" if texts[-1] else cut
        elif len(texts) < most:
            texts.append(cut)
        else:
            left += 1
    return [*texts[:-1], f"{texts[-1]}\nand {count(left)} more"] if left else texts
