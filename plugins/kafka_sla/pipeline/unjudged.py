"""Keeps that an SLA could not be judged, and why: others are judged, and so is later time. Judges nothing."""

from __future__ import annotations

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval

_LONGEST_REASON = 1_000


def keep_unjudged(store: Store, sla: str, interval: Interval, error: BaseException) -> None:
    """Keep why the SLA was not judged in the interval, for `status` and the page of coverage, until it is."""
    reason = " ".join(str(error).split()) or type(error).__name__
    Ledger(store).failures.add_unjudged(sla, interval, reason[:_LONGEST_REASON])
