"""The door to webhooks: an HTTP connection as Airflow keeps it, retries, and a signature."""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import tenacity

from kafka_sla.errors import WebhookRefused, WebhookUnavailable
from kafka_sla.model.entities import Connection, Webhook
from kafka_sla.network import http_extra
from kafka_sla.network.addresses import split_address
from kafka_sla.network.http_answers import Answer, NoAnswer, request_answer
from kafka_sla.network.secret_texts import hide_secrets
from kafka_sla.notifications.webhooks.event import AlertEvent
from kafka_sla.notifications.webhooks.formats import call_for

_TIMES_S = (5, 10)
"""To connect, and to be answered."""
_TRIES = 3
_MOST_S = 5.0
"""Longest wait before the next try: other receivers wait meanwhile, and the next run tries again."""
_BUSY = (408, 425, 429, 500, 502, 503, 504)
_PUBLIC_HEADERS = ("Content-Type",)
_ABSENT = (429, 502, 503, 504)
"""Of them those that do not depend on what was sent."""


class _Refused(Exception):
    """Another try would end the same way."""


class _Busy(Exception):
    """Another try may help; `after`: seconds that the receiver wants to be left alone; `absent`: nor would it take
    anything else."""

    def __init__(self, reason: str, after: float = 0.0, *, absent: bool = True) -> None:
        super().__init__(reason)
        self.after, self.absent = after, absent


def send(connection: Connection, webhook: Webhook, event: AlertEvent) -> None:
    """POST the event in the webhook's format; WebhookRefused when the receiver does not take it, WebhookUnavailable
    when it is not there or too busy."""
    secret = connection.password or ""
    call = call_for(event, webhook.format, secret)
    body = json.dumps(call.body, separators=(",", ":")).encode()
    address = _address(connection, call.path or (secret if webhook.format in ("slack", "teams") else ""))
    how = _extra(connection)
    headers = {"Content-Type": "application/json", **_login(connection, webhook), **how.pop("headers")}
    secrets = _secrets(connection, address, headers)
    try:
        _retrying(lambda: _post(address, body, headers | _signature(connection, event.id, body), how, secrets))
    except _Refused as error:
        raise _refused(connection, f"{error}; correct the connection, or the format") from None
    except _Busy as error:
        kind = WebhookUnavailable if error.absent else WebhookRefused
        raise _refused(connection, f"{error}, {_TRIES} times; the next run tries again", kind) from None


def check(connection: Connection) -> None:
    """WebhookRefused when the connection cannot be one of a webhook; nothing is sent."""
    _address(connection, "")
    _signature(connection, "check", b"")
    _extra(connection)


def _retrying(post: Callable[[], None]) -> None:
    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        wanted = error.after if isinstance(error, _Busy) else 0.0
        return min(max(0.2 * float(2**state.attempt_number), wanted), _MOST_S)

    retry = tenacity.retry_if_exception_type(_Busy)
    tenacity.Retrying(retry=retry, stop=tenacity.stop_after_attempt(_TRIES), wait=wait, reraise=True)(post)


def _post(address: str, body: bytes, headers: dict[str, str], how: dict[str, Any], secrets: Sequence[str]) -> None:
    """No error shows the address or a header, not even as part of what the receiver answers."""
    try:
        answer = request_answer("POST", address, _TIMES_S, data=body, headers=headers, **how)
    except NoAnswer as error:
        raise _Busy(str(error)) from None
    if answer.status in _BUSY:
        absent = answer.status in _ABSENT
        raise _Busy(f"it answered {answer.status}", _retry_after(answer), absent=absent)
    if not answer.is_success:
        raise _Refused(f"it answered {answer.status}: {hide_secrets(answer.text, secrets)[:200]!r}")


def _retry_after(answer: Answer) -> float:
    """Seconds that the receiver wants to be left alone; 0 where it names a date, or nothing that makes sense."""
    after = answer.headers.get("Retry-After", "")
    return float(after) if re.fullmatch(r"[0-9]{1,9}", after) else 0.0


def _secrets(connection: Connection, address: str, headers: Mapping[str, str]) -> list[str]:
    """What may be secret: password, signing key, login, headers, and the path of the address."""
    path = urlsplit(address).path
    named = [connection.password, connection.login, connection.extra.get("signing_key"), path, *path.split("/")]
    values = [value.partition(" ")[2] or value for name, value in headers.items() if name not in _PUBLIC_HEADERS]
    return [str(text) for text in [*named, *values] if text]


def _address(connection: Connection, path: str) -> str:
    """Airflow's HTTP connections may carry the scheme in the host or in the schema."""
    host = connection.host or ""
    try:
        parts = split_address(host if "://" in host else f"{connection.schema or 'https'}://{host}")
    except ValueError as error:
        raise _refused(connection, f"it needs a host such as https://hooks.example.com ({error})") from None
    port = f":{connection.port}" if connection.port and not parts.port else ""
    start = f"{parts.scheme}://{parts.netloc}{port}{parts.path.rstrip('/')}"
    return f"{start}/{path.lstrip('/')}" if path else start


def _login(connection: Connection, webhook: Webhook) -> dict[str, str]:
    """The header of the login; Slack, Teams and PagerDuty have it in the address or in the body."""
    if not connection.password or webhook.format in ("slack", "teams", "pagerduty"):
        return {}
    if webhook.format == "opsgenie":
        return {"Authorization": f"GenieKey {connection.password}"}
    login = f"{connection.login}:{connection.password}".encode()
    basic = f"Basic {base64.b64encode(login).decode()}"
    return {"Authorization": basic if connection.login else f"Bearer {connection.password}"}


def _extra(connection: Connection) -> dict[str, Any]:
    try:
        return http_extra.read(connection.extra)
    except ValueError as error:
        raise _refused(connection, str(error)) from None


def _signature(connection: Connection, event_id: str, body: bytes) -> dict[str, str]:
    """Headers of Standard Webhooks; none without `signing_key` in the extra."""
    key = str(connection.extra.get("signing_key") or "")
    if not key:
        return {"webhook-id": event_id}
    try:
        secret = base64.b64decode(key.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise _refused(
            connection, "signing_key in its extra must be base64, with or without whsec_ before it"
        ) from None
    at = str(int(time.time()))
    signed = hmac.new(secret, f"{event_id}.{at}.".encode() + body, sha256).digest()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }


def _refused(connection: Connection, reason: str, kind: type[WebhookRefused] = WebhookRefused) -> WebhookRefused:
    return kind(f"webhook of connection {connection.id!r}: {reason}")
