"""What an SLA requires and how a miss broke it, also where only unread records expired too soon."""

from __future__ import annotations

from dataclasses import replace

from kafka_sla.sla.wording import doubt, duration, limit, limits, requirement, violation, worst
from tests.kafka_sla.notifications.misses import hour, miss, promise

HOURS = 3_600_000


def test_an_sla_requires_a_latency_for_a_time_and_perhaps_a_distance_from_expiry() -> None:
    plain, both = promise(), promise(min_time_to_expiry_ms=6 * HOURS, for_ms=0)

    assert requirement(plain) == "every record is consumed within 30 s; a miss opens after 2 min of violations"
    assert requirement(both) == "every record is consumed within 30 s and at least 6 h before it expires"
    assert [limit(plain), limit(both)] == ["30 s", "30 s, 6 h before expiry"]


def test_a_miss_is_worded_by_what_was_violated_in_it() -> None:
    late = miss()
    expiring = miss(
        worst_latency_ms=1_000.0,
        min_time_to_expiry_ms=6 * HOURS,
        evidence={"unread_expiry": "unread records of audit in orders-3 expire in 5 h"},
    )

    assert violation(late) == "worst latency 17 min 24 s, threshold 30 s"
    assert violation(expiring) == "unread records of audit in orders-3 expire in 5 h, at least 6 h required"
    assert worst(late) == "17 min 24 s (bounds 16 min 32 s – 18 min 16 s)"
    assert duration(late) == "2026-03-02 10:00:00 UTC to 2026-03-02 10:21:00 UTC (21 min)"
    assert duration(miss(end=None)) == "since 2026-03-02 10:00:00 UTC, still open"
    assert (doubt(late), bool(doubt(miss(is_certain=False)))) == ("", True)


def test_thresholds_come_in_the_order_of_time_and_without_windows_from_the_configuration() -> None:
    edited = [replace(window, max_latency_ms=300_000 if n >= 40 else 30_000) for n, window in enumerate(hour())]

    assert limits(reversed(edited), promise()) == "30 s, then 5 min"
    assert limits([], promise(max_latency_ms=60_000)) == "1 min"
