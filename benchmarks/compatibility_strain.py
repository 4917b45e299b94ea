"""Snapshots of a broker that makes it hard: tokens that expire all the time, quotas that are used up. How many were
answered, how long they waited, and whether any said something wrong."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from demo.broker import Cluster as Broker
from demo.quotas import limit
from demo.token_server import TokenServer
from kafka_sla.errors import KafkaUnreachable

HEAD = (
    "| the broker | snapshots | answered | with a wrong figure | median | slowest | beside |\n"
    "|---|---|---|---|---|---|---|"
)
_TOKEN_S, _WITH_TOKENS, _WITH_QUOTAS = 5.0, 200, 10
Look = Callable[[dict[str, str]], bool]
"""Whether a snapshot through this login saw what is there."""


@dataclass(frozen=True, slots=True)
class Strain:
    """What became of some snapshots."""

    broker: str
    right: tuple[bool, ...]
    """Of those that were answered."""
    failed: int
    seconds: tuple[float, ...]
    beside: str = "–"

    def line(self) -> str:
        """A row of the table."""
        asked, wrong = len(self.right) + self.failed, len(self.right) - sum(self.right)
        median, slowest = statistics.median(self.seconds), max(self.seconds)
        return (
            f"| {self.broker} | {asked} | {len(self.right)} | {wrong} | {median:.1f} s | {slowest:.1f} s"
            f" | {self.beside} |"
        )

    @property
    def holds(self) -> bool:
        """Everything was answered, and rightly."""
        return not self.failed and all(self.right)


def strained(traffic: Callable[[dict[str, str]], None], look: Look) -> Iterator[Strain]:
    """Each broker with this traffic, looked at again and again."""
    with Broker(secure=True) as broker, TokenServer(life_s=_TOKEN_S) as tokens:
        traffic(broker.client())
        login = {key: broker.client()[key] for key in ("bootstrap.servers", "ssl.ca.location")} | tokens.client()
        found = _asked(f"tokens that live {_TOKEN_S:.0f} s", look, login, _WITH_TOKENS)
        yield Strain(found.broker, found.right, found.failed, found.seconds, f"{len(tokens.issued)} tokens issued")
    for text, kind, rate in (
        ("fetches 500 bytes a second", "consumer_byte_rate", 500),
        ("uses 1 % of a thread", "request_percentage", 1),
    ):
        with Broker() as broker:
            traffic(broker.client())
            limit(broker, rate, kind)
            yield _asked(f"a quota: a client {text}", look, broker.client(), _WITH_QUOTAS)


def _asked(broker: str, look: Look, login: dict[str, str], times: int) -> Strain:
    right, failed, seconds = list[bool](), 0, list[float]()
    for _ in range(times):
        began = time.monotonic()
        try:
            right.append(look(login))
        except KafkaUnreachable:
            failed += 1
        seconds.append(time.monotonic() - began)
    return Strain(broker, tuple(right), failed, tuple(seconds))
