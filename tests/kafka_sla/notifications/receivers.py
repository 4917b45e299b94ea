"""Receivers of webhooks on loopback ports: each takes what its vendor's documents allow, answers 400 to all else, and
keeps what became of the alerts."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema

from kafka_sla.model.entities import Connection
from tests.kafka_sla.network.served import served
from tests.kafka_sla.notifications.misses import START

NOW = START + timedelta(hours=1)
Handle = Callable[["Receiver", str, dict[str, str], Any], int]


def text(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
WEB = {"type": "string", "pattern": "^https?://"}
SLACK_RUNS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "oneOf": [
            closed({"type": {"const": "text"}, "text": text(3_000)}),
            closed({"type": {"const": "link"}, "url": WEB, "text": text(3_000)}),
        ]
    },
}
SLACK_SECTION = closed({"type": {"const": "rich_text_section"}, "elements": SLACK_RUNS})
SLACK = closed(
    {"text": text(40_000)},
    {
        "mrkdwn": {"type": "boolean"},
        "blocks": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "oneOf": [
                    closed(
                        {
                            "type": {"const": "header"},
                            "text": closed(
                                {"type": {"const": "plain_text"}, "text": text(150)}, {"emoji": {"type": "boolean"}}
                            ),
                        }
                    ),
                    closed(
                        {
                            "type": {"const": "rich_text"},
                            "elements": {"type": "array", "minItems": 1, "items": SLACK_SECTION},
                        }
                    ),
                ]
            },
        },
    },
)
CARD_RUN = closed(
    {"type": {"const": "TextRun"}, "text": text(28_000)},
    {
        "size": {"enum": ["small", "default", "medium", "large", "extraLarge"]},
        "weight": {"enum": ["lighter", "default", "bolder"]},
        "color": {"enum": ["default", "dark", "light", "accent", "good", "warning", "attention"]},
    },
)
CARD_TEXT = closed({"type": {"const": "RichTextBlock"}, "inlines": {"type": "array", "minItems": 1, "items": CARD_RUN}})
CARD = closed(
    {
        "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
        "type": {"const": "AdaptiveCard"},
        "version": {"enum": ["1.2", "1.3", "1.4", "1.5"]},
        "body": {"type": "array", "items": CARD_TEXT},
    },
    {
        "actions": {
            "type": "array",
            "maxItems": 6,
            "items": closed({"type": {"const": "Action.OpenUrl"}, "title": text(100), "url": WEB}),
        }
    },
)
TEAMS = closed(
    {
        "type": {"const": "message"},
        "attachments": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": closed(
                {
                    "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                    "contentUrl": {"type": "null"},
                    "content": CARD,
                }
            ),
        },
    }
)
PAGERDUTY_KEYS = {"routing_key": {"type": "string", "pattern": "^[0-9a-z]{32}$"}, "dedup_key": text(255)}
PAGERDUTY = {
    "oneOf": [
        closed(PAGERDUTY_KEYS | {"event_action": {"enum": ["resolve", "acknowledge"]}}),
        closed(
            PAGERDUTY_KEYS
            | {
                "event_action": {"const": "trigger"},
                "payload": closed(
                    {
                        "summary": text(1_024),
                        "source": text(255),
                        "severity": {"enum": ["critical", "error", "warning"]},
                    },
                    {
                        "timestamp": TIME,
                        "component": text(255),
                        "group": text(255),
                        "class": text(255),
                        "custom_details": {"type": "object"},
                    },
                ),
            },
            {
                "client": text(255),
                "client_url": WEB,
                "links": {"type": "array", "items": closed({"href": WEB}, {"text": text(255)})},
            },
        ),
    ]
}
OPSGENIE = {
    "create": closed(
        {"message": text(130)},
        {
            "alias": text(512),
            "description": text(15_000),
            "priority": {"enum": ["P1", "P2", "P3", "P4", "P5"]},
            "source": text(100),
            "entity": text(512),
            "tags": {"type": "array", "maxItems": 20, "items": text(50)},
            "details": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    ),
    "note": closed({"note": text(25_000)}, {"user": text(100), "source": text(100)}),
}
LABELS = {
    "type": "object",
    "patternProperties": {"^[a-zA-Z_][a-zA-Z0-9_]*$": {"type": "string"}},
    "additionalProperties": False,
}
ALERTMANAGER = {
    "type": "array",
    "items": closed(
        {"labels": LABELS | {"required": ["alertname"]}},
        {"annotations": LABELS, "startsAt": TIME, "endsAt": TIME, "generatorURL": WEB},
    ),
}


class Receiver:
    """What came, and what became of it: state by key of the alert."""

    def __init__(self, handle: Handle, fail_first: int = 0) -> None:
        self.handle, self.failures = handle, fail_first
        self.bodies: list[Any] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.states: dict[str, str] = {}
        self.refused: list[str] = []

    def take(self, path: str, headers: dict[str, str], raw: bytes) -> int:
        if self.failures:
            self.failures -= 1
            return 503
        try:
            status = self.handle(self, path, headers, body := json.loads(raw))
        except jsonschema.ValidationError as error:
            self.refused.append(f"{error.json_path}: {error.message[:200]}")
            return 400
        self.bodies.append(body)
        self.raw.append(raw)
        self.headers.append(headers)
        return status


def slack(receiver: Receiver, path: str, _: dict[str, str], body: Any) -> int:
    jsonschema.validate(body, SLACK)
    return 200 if path == "/services/T0/B0/x" else 404


def teams(receiver: Receiver, path: str, _: dict[str, str], body: Any) -> int:
    jsonschema.validate(body, TEAMS)
    return 413 if len(json.dumps(body)) > 28_000 else 202 if parse_qs(urlsplit(path).query)["sig"] == ["x"] else 401


def pagerduty(receiver: Receiver, path: str, _: dict[str, str], body: Any) -> int:
    jsonschema.validate(body, PAGERDUTY)
    if len(json.dumps(body)) > 512_000:
        return 413
    receiver.states[body["dedup_key"]] = body["event_action"]
    return 202 if path == "/v2/enqueue" else 404


def opsgenie(receiver: Receiver, path: str, headers: dict[str, str], body: Any) -> int:
    parts = urlsplit(path)
    if headers.get("authorization") != "GenieKey s3cret":
        return 401
    if parts.path == "/v2/alerts":
        jsonschema.validate(body, OPSGENIE["create"])
        receiver.states[body["alias"]] = "open"
        return 202
    jsonschema.validate(body, OPSGENIE["note"])
    _, _, _, alias, action = parts.path.split("/")
    if parts.query != "identifierType=alias" or unquote(alias) not in receiver.states:
        return 404
    receiver.states[unquote(alias)] = {"close": "closed", "notes": "noted"}[action]
    return 202


def alertmanager(receiver: Receiver, path: str, _: dict[str, str], body: Any) -> int:
    jsonschema.validate(body, ALERTMANAGER)
    for alert in body:
        ends = datetime.fromisoformat(alert["endsAt"])
        receiver.states[json.dumps(alert["labels"], sort_keys=True)] = "resolved" if ends < NOW else "firing"
    return 200 if path == "/api/v2/alerts" else 404


@contextmanager
def serving(receiver: Receiver, tls: ssl.SSLContext | None = None, **login: Any) -> Iterator[Connection]:
    """The receiver, as the Airflow connection that reaches it; with `tls` by https and the name localhost."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(receiver.take(self.path, headers, raw))
            self.send_header("Content-Length", "0")
            self.end_headers()

    with served(Handler, tls) as port:
        yield Connection("receiver", "https://localhost" if tls else "http://127.0.0.1", port, **login)
