"""Digests and alarms about late runs, each sent once."""

from __future__ import annotations

from datetime import time

import pytest

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Digest, Interval
from tests.kafka_sla.loads import at


def reported(ledger: Ledger, end: str, **until: str | None) -> bool:
    """Whether operators are mailed, at the run whose interval ends at `end`, that these clusters are published only so
    far."""
    late = {cluster: at(clock) if clock else None for cluster, clock in until.items()}
    calls: list[str] = []
    assert ledger.sent_once.send_late_run(late, at(end), lambda: calls.append(end)) == bool(calls)
    return calls == [end]


def test_a_late_cluster_is_reported_again_once_some_of_it_was_published_and_an_hour_has_passed(ledger: Ledger) -> None:
    assert reported(ledger, "10:10", a="10:00")
    assert not reported(ledger, "10:20", a="10:00")
    assert not reported(ledger, "11:09", a="10:30")  # within an hour
    assert not reported(ledger, "13:00", a="10:09")  # nothing was published since
    assert reported(ledger, "13:10", a="10:10")
    assert not reported(ledger, "14:09", a="14:00")
    assert reported(ledger, "14:10", a="14:00")


def test_a_cluster_of_which_nothing_was_ever_published_is_reported_once(ledger: Ledger) -> None:
    assert reported(ledger, "10:10", a=None)
    assert not reported(ledger, "23:50", a=None)
    assert reported(ledger, "10:20", b=None)
    assert reported(ledger, "10:30", a=None, b=None, c=None)


def test_an_alarm_that_could_not_be_sent_is_sent_by_the_next_run(ledger: Ledger) -> None:
    def refuse() -> None:
        raise ConnectionRefusedError("no mail server")

    with pytest.raises(ConnectionRefusedError):
        ledger.sent_once.send_late_run({"a": at("10:00")}, at("10:10"), refuse)
    assert reported(ledger, "10:10", a="10:00")


def test_a_digest_is_sent_to_each_recipient_once_a_period(ledger: Ledger) -> None:
    daily, weekly = Digest("daily", "day", time(8)), Digest("weekly", "week", time(8))
    first, second = Interval(at("0:00"), at("12:00")), Interval(at("12:00"), at("24:00"))
    sent: list[str] = []

    def send(digest: Digest, period: Interval, recipient: str) -> bool:
        return ledger.sent_once.send_digest(digest, period, recipient, lambda: sent.append(recipient))

    assert [send(daily, first, "ann"), send(daily, first, "ann"), send(daily, first, "bob")] == [True, False, True]
    assert [send(daily, second, "ann"), send(weekly, first, "ann")] == [True, True]
    assert sent == ["ann", "bob", "ann", "ann"]
    known = [ledger.sent_once.digest_sent(daily, period, who) for period in (first, second) for who in ("ann", "bob")]
    assert known == [True, True, True, False]
