"""What an event says to people and pagers, whether it reports misses or burns. Knows no receiver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_sla.model.entities import Severity
from kafka_sla.notifications.webhooks.burn_event import BurnEvent, ReportedBurn
from kafka_sla.notifications.webhooks.event import ReportedMiss, WebhookEvent
from kafka_sla.notifications.webhooks.lines import Line, still
from kafka_sla.text.natural_order import natural

R = TypeVar("R", ReportedMiss, ReportedBurn)


@dataclass(frozen=True, slots=True)
class Part(Generic[R]):
    """One miss or burn of the event."""

    of: R
    said: str
    why: str
    labels: Mapping[str, str]
    """Beside SLA, cluster and team: the same when it begins and when it is over."""

    @property
    def text(self) -> str:
        """`payments within 30 s (Billing): worst latency 17 min, threshold 30 s; group payments, orders-3`."""
        return f"{self.of.sla}{f' ({self.of.team})' if self.of.team else ''}: {self.said}"


@dataclass(frozen=True, slots=True)
class Message:
    """Why it was missed or burns, each part in a line, and what still is or does."""

    incident: str
    title: str
    why: str
    """Empty where that is not known."""
    cause: str
    """A word for it."""
    shared: str
    """What the parts have in common."""
    severity: Severity
    parts: tuple[Part[ReportedMiss] | Part[ReportedBurn], ...]
    still: str
    """`Still missed: payments within 30 s, and 12 more`; empty where none is."""
    left: tuple[str, ...]
    """The SLAs of which that is said."""
    lists: tuple[str, str]
    """What the event calls the parts, and those that are left."""
    ended: bool
    """Are these parts over?"""
    link: tuple[str, str]
    """Name and address of the page about all of it."""
    about: Mapping[str, str]
    """Group and topic, where they are known."""

    @property
    def is_over(self) -> bool:
        """Is nothing of the incident left?"""
        return self.ended and not self.left

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Names and addresses, without those that nobody knows."""
        return tuple(link for link in (("Runbook", self.parts[0].of.runbook), self.link) if link[1])

    @property
    def teams(self) -> list[str]:
        """Those of the parts that have one."""
        return sorted({part.of.team for part in self.parts if part.of.team}, key=natural)

    def lines(self) -> Iterator[Line]:
        """Each part, and what is left."""
        for part in self.parts:
            yield Line(part.text, part.of.sla, part.of.url)
        yield Line(self.still)


def message_of(event: WebhookEvent | BurnEvent) -> Message:
    """What the event says."""
    return _of_burns(event) if isinstance(event, BurnEvent) else _of_misses(event)


def _of_misses(event: WebhookEvent) -> Message:
    first, left = event.misses[0], tuple(miss.sla for miss in event.still_open)
    return Message(
        event.incident,
        event.title,
        first.sentence,
        first.cause,
        event.cause,
        "page",
        tuple(
            Part(
                miss,
                f"{miss.violation}; group {miss.group}, {miss.topic}-{miss.partition}",
                miss.sentence,
                {"alertname": "KafkaSlaMissed", "miss": miss.id},
            )
            for miss in event.misses
        ),
        still("Still missed", left),
        left,
        ("misses", "still_open"),
        event.kind == "recovered",
        ("Misses", event.url),
        {"component": first.topic, "group": first.group},
    )


def _of_burns(event: BurnEvent) -> Message:
    left = tuple(burn.sla for burn in event.still_burning)
    return Message(
        event.incident,
        event.title,
        event.sentence,
        "burn_rate",
        event.cause,
        event.severity,
        tuple(
            Part(
                burn,
                burn.sentence,
                event.sentence,
                {"alertname": "KafkaSlaBurns", "burn": burn.id, "severity": event.severity},
            )
            for burn in event.burns
        ),
        still("Still burning", left),
        left,
        ("burns", "still_burning"),
        event.kind == "burn_over",
        ("SLA" if len(event.burns) == 1 else "SLAs", event.url),
        {},
    )
