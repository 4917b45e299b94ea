"""A proxy on a loopback port, as companies have one between their machines and the internet."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.kafka_sla.network.served import served


@contextmanager
def proxy_to(port: int, *, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """Its address, and whom it was asked for: whoever that is, it leads to this port, or refuses with a status."""
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()
            if status == 200:
                with socket.create_connection(("127.0.0.1", port)) as there:
                    back = threading.Thread(target=copy, args=(there, self.connection))
                    back.start()
                    copy(self.connection, there)
                    back.join()
            self.close_connection = True

    with served(Proxy) as own_port:
        yield f"http://127.0.0.1:{own_port}", asked


def copy(source: socket.socket, target: socket.socket) -> None:
    """Until one side hangs up."""
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
