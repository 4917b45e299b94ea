"""A token endpoint on this machine, which issues unsecured tokens to one client.

Brokers take such tokens without a key only when they are told to, for tests.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, quote_plus


class TokenServer:
    """Answers the grants of client credentials and of its refresh token inside its `with` block."""

    def __init__(
        self, *, user: str = "admin", life_s: float = 5.0, client_id: str = "kafka-sla", secret: str | None = None
    ) -> None:
        self.client_id, self.secret, self.user, self.life_s = client_id, secret or secrets.token_hex(), user, life_s
        self.decodes = False
        """Does it want the client's id and secret percent-encoded, as RFC 6749 says?"""
        self.refresh_token = secrets.token_hex()
        self.issued: list[str] = []
        self.scopes: list[str] = []
        self.failures: deque[int] = deque()
        """Codes with which the next requests are answered instead, and asked to come again in an hour."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="tokens", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/token"

    def client(self) -> dict[str, str]:
        """Client settings, by librdkafka's names, for logging in with a token of this server."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.oauthbearer.client.id": self.client_id,
            "sasl.oauthbearer.client.secret": self.secret,
        }

    def token(self) -> str:
        """A new one."""
        now = time.time()
        claims = {"sub": self.user, "iat": now, "exp": now + self.life_s}
        self.issued.append(f"{_part({'alg': 'none'})}.{_part(claims)}.")
        return self.issued[-1]

    def __enter__(self) -> TokenServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _part(content: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _handler(tokens: TokenServer) -> type[BaseHTTPRequestHandler]:
    def login() -> str:
        parts = (tokens.client_id, tokens.secret)
        return base64.b64encode(":".join(map(quote_plus, parts) if tokens.decodes else parts).encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if tokens.failures:
                self._answer(tokens.failures.popleft(), {"error": "temporarily_unavailable"}, {"Retry-After": "3600"})
            elif self.headers["Authorization"] != f"Basic {login()}":
                self._answer(401, {"error": "invalid_client"})
            elif form.get("grant_type") not in (["client_credentials"], ["refresh_token"]):
                self._answer(400, {"error": "unsupported_grant_type"})
            elif form.get("refresh_token", [tokens.refresh_token]) != [tokens.refresh_token]:
                self._answer(400, {"error": "invalid_grant", "error_description": "AADSTS70043: it has expired."})
            else:
                tokens.scopes += form.get("scope", [])
                self._answer(200, {"access_token": tokens.token(), "expires_in": tokens.life_s})

        def _answer(self, code: int, content: dict[str, object], headers: Mapping[str, str] = {}) -> None:
            body = json.dumps(content).encode()
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    return Handler
