"""Which alerts that open in one run are one message: those of the same cause that go to the same address."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256

from kafka_sla.ledger.alerts.report_plan import Opening
from kafka_sla.model.entities import Miss, Sla
from kafka_sla.notifications.notices import miss_of_burn
from kafka_sla.sla.root_cause.shared_cause import shared_causes

FindAddress = Callable[[Sla, str], object]
"""From an SLA and a channel to who is addressed, as JSON-able data; None: each alert is reported on its own."""


def name_causes(openings: Sequence[Opening], find_address: FindAddress) -> list[Opening]:
    """The openings, in their order, each with a name of its cause: the same for those that are one message.

    Kind, severity, channel and address are part of the name. Pages and tickets are apart, because they go to different
    people or wake them at different hours.
    """
    places = [_name_place(opening, find_address(opening.sla, opening.channel)) for opening in openings]
    misses = [_bad_time(opening) for opening in openings]
    causes = [opening.alert.id for opening in openings]
    for place in dict.fromkeys(filter(None, places)):
        same = [i for i, other in enumerate(places) if other == place]
        for i, cause in zip(same, shared_causes([misses[i] for i in same]), strict=True):
            causes[i] = f"{place} {cause}"
    return [replace(opening, cause=cause) for opening, cause in zip(openings, causes, strict=True)]


def _bad_time(opening: Opening) -> Miss:
    alert = opening.alert
    if alert.burn:
        return miss_of_burn(alert.burn, alert.miss)
    assert alert.miss
    return alert.miss


def _name_place(opening: Opening, address: object) -> str:
    """A digest, because a list of recipients may be long; empty if each alert is reported on its own."""
    text = json.dumps([opening.channel, address], sort_keys=True, default=str)
    alert = opening.alert
    return "" if address is None else f"{alert.kind} {alert.severity} {sha256(text.encode()).hexdigest()[:16]}"
