"""Each notice once, however many tasks try."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.outbox import Notice, NoticeKind
from kafka_sla.model.entities import Digest, Interval, Miss, Patterns, Sla, SlaWindow, SteadyState
from tests.kafka_sla.loads import MINUTE, at

WHERE: dict[str, Any] = {
    "worst_latency_ms": 45_000.0,
    "worst_group": "g",
    "worst_topic": "t",
    "worst_partition": 0,
    "max_latency_ms": 30_000,
}
SLA = Sla("payments", "a", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))


def miss(id: str = "m1", start: str = "10:00", end: str | None = None, sla: str = "payments") -> Miss:
    begun = at(start)
    return Miss(
        id,
        sla,
        "a",
        begun,
        at(end) if end else None,
        begun + 2 * MINUTE,
        2,
        True,
        45_000.0,
        44_000.0,
        None,
        begun,
        "g",
        "t",
        0,
        {"cause": "stopped"},
        state="recovered" if end else "open",
        bad_until=at(end) if end else begun + 2 * MINUTE,
        max_latency_ms=30_000,
        for_ms=120_000,
    )


def notice(kind: NoticeKind = "opened", **fields: str) -> Notice:
    return Notice(kind, miss(**fields), "http://airflow/run")


def told(ledger: Ledger) -> list[tuple[str, str, str]]:
    sent: list[Notice] = []
    ledger.outbox.queue.deliver(sent.append)
    return [(n.kind, n.miss.id, n.thread) for n in sent]


def now_judged(ledger: Ledger, *misses: Miss, bad: tuple[str, str] = ("10:00", "10:01")) -> None:
    """These are the misses of the SLA at present, and bad windows in this time."""
    minutes = Interval(at(bad[0]), at(bad[1])).windows(60_000)
    windows = [SlaWindow("payments", w, "bad", True, "", **WHERE) for w in minutes]
    ledger.verdicts.replace(SLA, Interval(at("0:00"), at("24:00")), windows, lambda *_: misses)


def test_a_notice_comes_out_as_it_went_in_with_its_thread(ledger: Ledger) -> None:
    assert ledger.outbox.enqueue(notice())
    assert ledger.outbox.queue.waiting() == [Notice("opened", miss(), "http://airflow/run", "m1")]


def test_a_notice_is_queued_once_and_sent_once(ledger: Ledger) -> None:
    assert [ledger.outbox.enqueue(notice()) for _ in range(3)] == [True, False, False]
    assert told(ledger) == [("opened", "m1", "m1")]
    assert not ledger.outbox.enqueue(notice())
    assert told(ledger) == []


def test_a_recovery_follows_its_opening(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice())
    assert ledger.outbox.enqueue(notice("recovered", end="10:10"))
    assert told(ledger) == [("opened", "m1", "m1"), ("recovered", "m1", "m1")]


def test_a_recovery_of_what_was_never_told_is_not_told(ledger: Ledger) -> None:
    assert not ledger.outbox.enqueue(notice("recovered", end="10:10"))


def test_a_miss_whose_start_was_moved_by_late_facts_is_not_told_again(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice(id="m1", start="10:00"))
    now_judged(ledger, miss("m2", "9:55"))
    assert not ledger.outbox.enqueue(notice(id="m2", start="9:55"))
    assert ledger.outbox.enqueue(notice("recovered", id="m2", start="9:55", end="10:10"))
    assert told(ledger) == [("opened", "m1", "m1"), ("recovered", "m2", "m1")]
    now_judged(ledger, miss("m3", "9:50", "10:10"))
    assert not ledger.outbox.enqueue(notice("recovered", id="m3", start="9:50", end="10:10"))


def test_a_miss_whose_first_minutes_were_good_after_all_is_not_told_again(ledger: Ledger) -> None:
    now_judged(ledger, replace(miss("m1", "10:00"), bad_until=at("10:35")))
    ledger.outbox.enqueue(notice(id="m1", start="10:00"))
    now_judged(ledger, miss("m2", "10:30"))
    assert not ledger.outbox.enqueue(notice(id="m2", start="10:30"))
    now_judged(ledger, miss("m2", "10:30", "10:40"))
    assert ledger.outbox.enqueue(notice("recovered", id="m2", start="10:30", end="10:40"))
    now_judged(ledger, miss("m2", "10:30", "10:40"), miss("m3", "10:50"))
    assert ledger.outbox.enqueue(notice(id="m3", start="10:50"))


def test_the_next_miss_is_told_although_the_last_one_was_open_when_told(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice(id="m1", start="10:00"))
    now_judged(ledger, miss("m1", "10:00", "10:10"), miss("m2", "10:20"))
    assert ledger.outbox.enqueue(notice(id="m2", start="10:20"))


def test_a_miss_inside_the_time_of_another_that_is_still_one_is_told(ledger: Ledger) -> None:
    """Late facts cut the first one short, which was over when it was told, and its time falls into two misses."""
    now_judged(ledger, miss("m1", "10:00", "10:30"), bad=("10:00", "10:30"))
    ledger.outbox.enqueue(notice(id="m1", start="10:00", end="10:30"))
    ledger.outbox.enqueue(notice("recovered", id="m1", start="10:00", end="10:30"))
    now_judged(ledger, miss("m1", "10:00", "10:10"), miss("m2", "10:20"), bad=("10:00", "10:10"))

    assert ledger.outbox.enqueue(notice(id="m2", start="10:20"))
    assert [waiting.thread for waiting in ledger.outbox.queue.waiting()] == ["m1", "m1", "m2"]


def test_a_miss_that_only_touches_one_that_is_none_any_more_is_told(ledger: Ledger) -> None:
    """The first was known until 10:02."""
    ledger.outbox.enqueue(notice(id="m1", start="10:00"))

    assert not ledger.outbox.enqueue(notice(id="m4", start="10:01", end="10:03"))
    assert ledger.outbox.enqueue(notice(id="m2", start="10:02"))
    assert ledger.outbox.enqueue(notice(id="m3", start="9:50", end="10:00"))
    assert [waiting.thread for waiting in ledger.outbox.queue.waiting()] == ["m1", "m2", "m3"]


def test_two_misses_that_late_facts_made_one_are_over_in_the_threads_of_both(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice(id="m2", start="10:20"))
    ledger.outbox.enqueue(notice(id="m1", start="10:00", end="10:10"))
    ledger.outbox.enqueue(notice("recovered", id="m3", start="9:55", end="10:30"))

    assert [waiting.thread for waiting in ledger.outbox.queue.waiting()] == ["m2", "m1", "m2", "m1"]
    assert not ledger.outbox.enqueue(notice("recovered", id="m3", start="9:55", end="10:30"))


def test_a_miss_that_goes_on_after_it_was_told_to_be_over_is_told_again_in_a_thread_of_its_own(ledger: Ledger) -> None:
    over = notice("recovered", end="10:10")
    now_judged(ledger, miss())
    for _ in range(2):
        assert ledger.outbox.enqueue(notice())
        assert ledger.outbox.enqueue(over)
        assert not ledger.outbox.enqueue(over)
        assert not ledger.outbox.enqueue(notice(end="10:10"))
        ledger.outbox.queue.deliver_together(lambda _: None, lambda notices: ["alone"] * len(notices))
    assert ledger.outbox.enqueue(notice())

    assert [waiting.thread for waiting in ledger.outbox.queue.waiting()] == ["m1-3"]


def test_a_miss_that_was_read_as_open_before_its_end_was_told_is_not_told_again(ledger: Ledger) -> None:
    now_judged(ledger, miss(end="10:10"))
    ledger.outbox.enqueue(notice())
    ledger.outbox.enqueue(notice("recovered", end="10:10"))
    ledger.outbox.queue.deliver(lambda _: None)

    assert not ledger.outbox.enqueue(notice())


def test_an_end_that_nobody_was_told_of_is_taken_back_when_the_miss_goes_on(ledger: Ledger) -> None:
    now_judged(ledger, miss())
    ledger.outbox.enqueue(notice())
    ledger.outbox.enqueue(notice("recovered", end="10:10"))

    assert not ledger.outbox.enqueue(notice())
    assert told(ledger) == [("opened", "m1", "m1")]
    assert ledger.outbox.enqueue(notice("recovered", end="10:20"))


def test_what_waits_is_in_the_order_in_which_it_was_queued(ledger: Ledger) -> None:
    for name in ("payments", "orders", "refunds"):
        ledger.outbox.enqueue(notice(id=f"miss of {name}", sla=name))
    asked = ["orders", "payments"]

    assert [waiting.miss.sla for waiting in ledger.outbox.queue.waiting(asked)] == ["payments", "orders"]
    sent: list[str] = []
    ledger.outbox.queue.deliver(lambda one: sent.append(one.miss.sla), asked)
    assert sent == ["payments", "orders"]


def test_another_sla_missed_at_the_same_time_is_told(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice(id="m1"))
    assert ledger.outbox.enqueue(notice(id="m2", sla="orders"))


def test_only_the_asked_slas_are_delivered(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice(id="m1"))
    ledger.outbox.enqueue(notice(id="m2", sla="orders"))
    sent: list[Notice] = []
    assert ledger.outbox.queue.deliver(sent.append, ["orders"]) == 1
    assert [n.miss.id for n in sent] == ["m2"]
    assert [n.miss.id for n in ledger.outbox.queue.waiting()] == ["m1"]


def test_a_notice_that_fails_waits_while_the_others_are_sent_and_its_recovery_with_it(ledger: Ledger) -> None:
    for queued in (notice(), notice("recovered", end="10:10"), notice(id="m2", sla="orders")):
        ledger.outbox.enqueue(queued)
    sent = []

    def send(one: Notice) -> None:
        if one.miss.id == "m1":
            raise ConnectionRefusedError("no mail server")
        sent.append(one.miss.id)

    with pytest.raises(ConnectionRefusedError, match="no mail server"):
        ledger.outbox.queue.deliver(send)
    assert sent == ["m2"]
    assert told(ledger) == [("opened", "m1", "m1"), ("recovered", "m1", "m1")]


def test_several_failures_are_raised_together(ledger: Ledger) -> None:
    ledger.outbox.enqueue(notice(id="m1"))
    ledger.outbox.enqueue(notice(id="m2", sla="orders"))

    def send(one: Notice) -> None:
        raise TimeoutError(one.miss.id)

    with pytest.raises(ExceptionGroup, match="2 notices could not be sent") as caught:
        ledger.outbox.queue.deliver(send)
    assert [str(error) for error in caught.value.exceptions] == ["m1", "m2"]


def reported(ledger: Ledger, end: str, **until: str | None) -> bool:
    """Are operators told at the run whose interval ends at `end` that these clusters are published only so far?"""
    late = {cluster: at(clock) if clock else None for cluster, clock in until.items()}
    calls: list[str] = []
    assert ledger.outbox.send_late_once(late, at(end), lambda: calls.append(end)) == bool(calls)
    return calls == [end]


def test_a_late_cluster_is_told_again_once_some_of_it_was_published_and_an_hour_is_over(ledger: Ledger) -> None:
    assert reported(ledger, "10:10", a="10:00")
    assert not reported(ledger, "10:20", a="10:00")
    assert not reported(ledger, "11:09", a="10:30")  # within an hour
    assert not reported(ledger, "13:00", a="10:09")  # nothing was published since
    assert reported(ledger, "13:10", a="10:10")
    assert not reported(ledger, "14:09", a="14:00")
    assert reported(ledger, "14:10", a="14:00")


def test_a_cluster_of_which_nothing_was_ever_published_is_told_once(ledger: Ledger) -> None:
    assert reported(ledger, "10:10", a=None)
    assert not reported(ledger, "23:50", a=None)
    assert reported(ledger, "10:20", b=None)
    assert reported(ledger, "10:30", a=None, b=None, c=None)


def test_an_alarm_that_could_not_be_sent_is_told_by_the_next_run(ledger: Ledger) -> None:
    def refuse() -> None:
        raise ConnectionRefusedError("no mail server")

    with pytest.raises(ConnectionRefusedError):
        ledger.outbox.send_late_once({"a": at("10:00")}, at("10:10"), refuse)
    assert reported(ledger, "10:10", a="10:00")


def test_a_digest_is_sent_to_each_recipient_once_a_period(ledger: Ledger) -> None:
    daily, weekly = Digest("daily", "day", time(8)), Digest("weekly", "week", time(8))
    first, second = Interval(at("0:00"), at("12:00")), Interval(at("12:00"), at("24:00"))
    sent: list[str] = []

    def send(digest: Digest, period: Interval, recipient: str) -> bool:
        return ledger.outbox.send_digest_once(digest, period, recipient, lambda: sent.append(recipient))

    assert [send(daily, first, "ann"), send(daily, first, "ann"), send(daily, first, "bob")] == [True, False, True]
    assert [send(daily, second, "ann"), send(weekly, first, "ann")] == [True, True]
    assert sent == ["ann", "bob", "ann", "ann"]
    known = [ledger.outbox.digest_sent(daily, period, who) for period in (first, second) for who in ("ann", "bob")]
    assert known == [True, True, True, False]


def deliver_into(store: Store, file: str, start: datetime) -> None:
    ledger = Ledger(store)
    for number in range(20):
        ledger.outbox.enqueue(Notice("opened", miss(f"m{number}", f"{number}:00")))

    def send(one: Notice) -> None:
        with Path(file).open("a") as lines:
            lines.write(f"{one.miss.id}\n")

    ledger.outbox.queue.deliver(send)


@pytest.mark.slow
def test_four_processes_at_once_send_each_notice_once(store: Store, tmp_path: Path) -> None:
    file = str(tmp_path / "sent")
    spawn = multiprocessing.get_context("spawn")
    tasks = [spawn.Process(target=deliver_into, args=(store, file, at("0:00"))) for _ in range(4)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert [task.exitcode for task in tasks] == [0] * 4
    assert sorted(Path(file).read_text().split()) == sorted(f"m{number}" for number in range(20))


def test_each_channel_is_told_on_its_own(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        ledger.outbox.enqueue(replace(notice(), channel=channel))

    def mail_only(sent: Notice) -> None:
        if sent.channel == "chat":
            raise ConnectionError("the chat is down")

    with pytest.raises(ConnectionError):
        ledger.outbox.queue.deliver(mail_only)
    assert [waiting.channel for waiting in ledger.outbox.queue.waiting()] == ["chat"]
    assert not ledger.outbox.enqueue(replace(notice(), channel="mail"))


def test_a_channel_that_is_not_asked_for_waits(ledger: Ledger) -> None:
    ledger.outbox.enqueue(replace(notice(), channel="chat"))

    assert ledger.outbox.queue.deliver(lambda _: None, channels=["mail"]) == 0
    assert [waiting.channel for waiting in ledger.outbox.queue.waiting()] == ["chat"]
