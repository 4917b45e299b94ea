"""Services of others on loopback ports, for as long as a test needs them."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port at which it answers; with `tls` by https and the name localhost."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Quiet", (_Quiet, handler), {}))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet:
    def log_message(self, *_: object) -> None:
        """Nothing: tests read what came."""
