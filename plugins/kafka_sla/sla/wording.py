"""What an SLA requires and how a miss broke it, in the words of every page, mail, report and message. Pure; knows no
store and no HTML."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from kafka_sla.model.entities import Miss, Sla, SlaWindow
from kafka_sla.text.formatting import latency, moment, span


def limit(of: Sla | SlaWindow | Miss) -> str:
    """The threshold, for tables and captions: `30 s`, `30 s, 2 d before expiry`."""
    expiry = f", {span(of.min_time_to_expiry_ms)} before expiry" if of.min_time_to_expiry_ms else ""
    return span(of.max_latency_ms) + expiry


def limits(windows: Iterable[SlaWindow], sla: Sla) -> str:
    """The thresholds that these windows were judged by, in time order; of an SLA without any, the configured one."""
    ordered = sorted(windows, key=lambda window: window.window)
    return ", then ".join(text for text, _ in groupby(map(limit, ordered))) or limit(sla)


def requirement(of: Sla | Miss) -> str:
    """`every record is consumed within 30 s; a miss opens after 5 min of violations`."""
    expiry = f" and at least {span(of.min_time_to_expiry_ms)} before it expires" if of.min_time_to_expiry_ms else ""
    lasting = f"; a miss opens after {span(of.for_ms)} of violations" if of.for_ms else ""
    return f"every record is consumed within {span(of.max_latency_ms)}{expiry}{lasting}"


def violation(miss: Miss) -> str:
    """What was measured, beside what was required: `worst latency 17 min, threshold 30 s`."""
    expiry = miss.evidence.get("unread_expiry")
    if expiry and not late(miss):
        required = f", at least {span(miss.min_time_to_expiry_ms)} required" if miss.min_time_to_expiry_ms else ""
        return f"{expiry}{required}"
    return f"worst latency {span(miss.worst_latency_ms)}, threshold {span(miss.max_latency_ms)}"


def late(miss: Miss) -> bool:
    """Was its worst latency above the threshold, or did only unread records expire too soon?"""
    return miss.worst_latency_ms > miss.max_latency_ms


def place(miss: Miss) -> str:
    """Where the worst latency was: `group payments, orders-3`."""
    return f"group {miss.worst_group}, {miss.worst_topic}-{miss.worst_partition}"


def worst(miss: Miss) -> str:
    """Its worst latency with the bounds: `17 min (bounds 16 min – 18 min)`."""
    return latency(miss.worst_latency_ms, miss.worst_latency_low_ms, miss.worst_latency_high_ms)


def doubt(miss: Miss) -> str:
    """Nothing, or that its bounds allow for another verdict."""
    return (
        "" if miss.is_certain else "Within the bounds of the measurement, some of its bad windows may have met the SLA."
    )


def duration(miss: Miss) -> str:
    """From when to when and how long, or since when."""
    return f"{moment(miss.start)} to {moment(miss.end)} ({span(miss.length_ms)})" if miss.end else (
        f"since {moment(miss.start)}, still open")  # fmt: skip
