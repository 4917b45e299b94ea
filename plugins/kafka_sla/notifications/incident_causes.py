"""Which opened misses, and which burns that began, are one message: those of the same cause that go to the same people.
Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256

from kafka_sla.ledger.notices.burn_notices import BurnNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Miss, MissState
from kafka_sla.sla.root_cause.shared_cause import shared_causes

Destination = Callable[[Notice], object]
"""Who hears of a notice, as JSON-able data; None: each miss is reported on its own."""
BurnDestination = Callable[[BurnNotice], object]


def name_causes(notices: Sequence[Notice], destination: Destination) -> list[str]:
    """A name for each notice, in their order: the same for notices that are one message. Who hears of them is part of
    it as a digest, for it may be long."""
    places = [_place(notice.channel, destination(notice)) for notice in notices]
    return _named([notice.miss for notice in notices], places)


def name_burn_causes(notices: Sequence[BurnNotice], destination: BurnDestination) -> list[str]:
    """The same of burns. Pages and tickets are apart, for they go to different people or wake them at different
    hours."""
    severities = [notice.burn.severity for notice in notices]
    places = [_place(notice.channel, destination(notice)) for notice in notices]
    named = [f"{severity} {place}" if place else "" for severity, place in zip(severities, places, strict=True)]
    return _named([as_miss(notice) for notice in notices], named)


def as_miss(notice: BurnNotice) -> Miss:
    """The bad time behind a burn, as if it had been missed for as long as it burned."""
    burn = notice.burn
    nothing = Miss(
        burn.id,
        burn.sla,
        burn.cluster,
        burn.start,
        None,
        burn.start,
        0,
        False,
        0.0,
        None,
        None,
        burn.start,
        "",
        "",
        0,
        state="open",
        bad_until=burn.start,
        max_latency_ms=0,
        for_ms=0,
    )
    state: MissState = "recovered" if burn.end else "open"
    return replace(notice.behind or nothing, id=burn.id, state=state, start=burn.start, end=burn.end)


def _named(misses: Sequence[Miss], places: Sequence[str]) -> list[str]:
    names = [miss.id for miss in misses]
    for place in dict.fromkeys(places):
        mine = [i for i, other in enumerate(places) if other == place and place]
        for i, cause in zip(mine, shared_causes([misses[i] for i in mine]), strict=True):
            names[i] = f"{place} {cause}"
    return names


def _place(channel: str, goes_to: object) -> str:
    text = json.dumps([channel, goes_to], sort_keys=True, default=str)
    return "" if goes_to is None else sha256(text.encode()).hexdigest()[:16]
