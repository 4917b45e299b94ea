"""What receivers are told, run after run: verdicts change late, the configuration is edited, runs notify nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import pytest

from demo.postgres import postgres
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import MailRefused, MailServerUnavailable, ReceiverUnavailable, WebhookRefused
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import BurnPair, Cluster, Connection, Miss, Sla, Webhook, WebhookFormat
from kafka_sla.pipeline import steps
from kafka_sla.sla.exclusion_request import exclusion_request
from tests.kafka_sla.ledger.test_verdicts import SLA as VERDICTS_SLA
from tests.kafka_sla.ledger.test_verdicts import windows
from tests.kafka_sla.loads import at, span
from tests.kafka_sla.notifications import receivers
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, minutes_pass, slas, slow
from tests.kafka_sla.notifications.receivers import Receiver, serving
from tests.kafka_sla.notifications.test_smtp import Mailbox
from tests.kafka_sla.notifications.test_smtp import serving as mail_serving
from tests.kafka_sla.pipeline.test_burn_alerts import PAGE
from tests.kafka_sla.pipeline.test_burn_alerts import SLA as BURNING
from tests.kafka_sla.pipeline.test_burn_alerts import put as put_burning

SLA = replace(VERDICTS_SLA, recipients=("oncall@example.com",))
FORMATS: list[WebhookFormat] = ["pagerduty", "alertmanager"]
OVER = {"resolve", "resolved"}


class World:
    """Runs that judge minutes, a letter each, and notify; one receiver of webhooks and one mail server."""

    def __init__(self, folder: Path, receiver: Receiver, webhook: Connection, box: Mailbox, smtp: Connection) -> None:
        self.store = Store.embedded(folder)
        self.ledger = Ledger(self.store)
        self.receiver, self.webhook, self.box, self.smtp = receiver, webhook, box, smtp

    def judge(self, start: str, end: str, letters: str, sla: Sla) -> None:
        """A run that nobody is notified of."""

        def explain_misses(misses: Sequence[Miss], *_: object) -> list[Miss]:
            return [replace(miss, evidence={"cause": "stopped", "sentence": "It stopped."}) for miss in misses]

        found = windows(start, letters, sla)
        self.ledger.verdicts.replace(sla, span(start, end), found, explain_misses, timedelta(minutes=30))

    def run(self, start: str, end: str, letters: str, sla: Sla, *, smtp: Connection | None = None) -> None:
        self.judge(start, end, letters, sla)
        self.notify(sla, start=start, end=end, smtp=smtp)

    def notify(self, *known: Sla, start: str = "", end: str = "", smtp: Connection | None = None) -> None:
        settings = Settings((Cluster("a", None), Cluster("main", None)), known)
        interval = span(start, end) if start else INTERVAL
        server = smtp or self.smtp
        names = [sla.name for sla in known]
        steps.notify(settings, self.store, names, interval, server, RUN, login=lambda _: self.webhook)

    def states(self) -> set[str]:
        return set(self.receiver.states.values())

    def mailed(self) -> list[tuple[str, str]]:
        return [(str(mail["To"]), str(mail["Subject"])) for mail in self.box.mails]


def world_of(handle: receivers.Handle, folder: Path) -> Iterator[World]:
    receiver, box = Receiver(handle), Mailbox()
    with serving(receiver, password=32 * "a") as webhook, mail_serving(box) as smtp:
        yield World(folder, receiver, webhook, box, smtp)


@pytest.fixture(params=FORMATS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """With a receiver of the format that `told` has."""
    yield from world_of(getattr(receivers, request.param), tmp_path)


def told(world: World, sla: Sla = SLA) -> Sla:
    """The SLA, heard of through the webhook alone."""
    name: WebhookFormat = "pagerduty" if world.receiver.handle is receivers.pagerduty else "alertmanager"
    return replace(sla, webhooks=(Webhook("receiver", name),), recipients=())


def good_hour(world: World, sla: Sla) -> None:
    minutes_pass(world.store, 10)
    for minute in range(10, 55, 5):
        world.run(f"10:{minute}", f"10:{minute + 5}", "ggggg", sla)


def test_the_end_that_a_run_found_that_notified_nobody_is_told_by_the_next(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbbb", sla)
    world.judge("10:05", "10:10", "bgggg", sla)
    good_hour(world, sla)

    assert world.states() <= OVER


def test_a_miss_that_an_edit_makes_none_is_told_to_be_over(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbbb", sla)
    longer = replace(sla, for_ms=1_800_000)
    world.run("10:05", "10:10", "bbbbb", longer)
    good_hour(world, longer)

    assert world.states() <= OVER


def test_a_miss_that_late_facts_take_back_is_told_to_be_over(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbbb", sla)
    world.judge("10:00", "10:05", "ggggg", sla)
    good_hour(world, sla)

    assert world.states() <= OVER


def test_misses_that_late_facts_make_one_are_both_told_to_be_over(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbgg", sla)
    world.run("10:05", "10:10", "bbbbb", sla)
    world.judge("10:00", "10:05", "gbbbb", sla)
    good_hour(world, sla)

    assert world.states() <= OVER


def test_while_one_part_of_a_miss_that_came_apart_goes_on_its_receiver_knows_it_to(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:20", "g" + 19 * "b", sla)
    minutes_pass(world.store, 10)
    world.run("10:00", "10:20", "gggbbb" + "gg" + 12 * "b", sla)

    assert not world.states() & OVER


def test_a_miss_that_goes_on_although_its_end_was_told_is_told_again(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbbg", sla)
    minutes_pass(world.store, 10)
    world.run("10:00", "10:05", "gbbbg", sla)
    assert world.states() <= OVER

    world.run("10:00", "10:10", "gbbbbbbbbb", sla)
    assert world.states() - OVER


@pytest.fixture
def mails(tmp_path: Path) -> Iterator[World]:
    yield from world_of(receivers.pagerduty, tmp_path)


def mailed_to(team: str, *known: Sla) -> list[Sla]:
    return [replace(sla, recipients=(f"{team}@example.com",), team=team) for sla in known]


def judge_slow(world: World, *known: Sla, end: bool = False) -> None:
    judged(world.ledger, known, [slow(sla, end=end) for sla in known])


def test_who_is_to_hear_of_an_sla_by_now_hears_of_what_was_told_to_others_together(mails: World) -> None:
    first, second = mailed_to("billing", *slas(2))
    judge_slow(mails, first, second)
    mails.notify(first, second)
    (moved,) = mailed_to("ledger", first)
    judge_slow(mails, moved, second, end=True)
    mails.notify(moved, second)

    together, *apart = mails.mailed()
    assert together[0] == "billing@example.com" and "missed: 2" in together[1]
    assert sorted(to for to, _ in apart) == ["billing@example.com", "ledger@example.com"]


def test_what_nobody_is_to_hear_of_by_now_keeps_nothing_from_others(mails: World) -> None:
    first, second = mailed_to("billing", *slas(2))
    judge_slow(mails, first, second)
    mails.notify(first, second)
    silent = replace(first, recipients=())
    judge_slow(mails, silent, second, end=True)
    mails.notify(silent, second)

    assert [to for to, _ in mails.mailed()] == ["billing@example.com"] * 2


@pytest.mark.parametrize("removed", [0, 1])
def test_an_sla_that_is_removed_while_a_message_waits_keeps_nothing_of_the_others(mails: World, removed: int) -> None:
    known = mailed_to("billing", *slas(3))
    judge_slow(mails, *known)
    with pytest.raises(MailServerUnavailable):
        mails.notify(*known, smtp=replace(mails.smtp, port=1))
    left = known[:removed] + known[removed + 1 :]
    mails.notify(*left)
    judge_slow(mails, *left, end=True)
    mails.notify(*left)

    subjects = [subject for _, subject in mails.mailed()]
    assert len(subjects) == 2 and "missed" in subjects[0] and "recovered" in subjects[1]
    assert not mails.ledger.alert_reports.unsent([sla.name for sla in left])


def test_an_sla_that_is_removed_keeps_no_incident_of_others_open(mails: World) -> None:
    first, second = [told(mails, sla) for sla in slas(2)]
    judge_slow(mails, first, second)
    mails.notify(first, second)
    judge_slow(mails, second, end=True)
    mails.notify(second)

    assert mails.states() == {"resolve"}


def test_nobody_hears_of_an_end_before_its_beginning(mails: World) -> None:
    """In one run one miss of an incident is over, and another begins and is over."""
    first, late, other = mailed_to("billing", *slas(3))
    judge_slow(mails, first, other)
    mails.notify(first, other)
    judged(mails.ledger, [first, late, other], [slow(first, end=True), slow(late, end=True), slow(other)])
    mails.notify(first, late, other)

    texts = [(subject, text_of(mail)) for (_, subject), mail in zip(mails.mailed(), mails.box.mails, strict=True)]
    assert "missed" in next(subject for subject, text in texts if late.name in text)
    assert "recovered" in [subject for subject, text in texts if late.name in text][-1]


def test_a_mail_waits_for_who_has_a_server(tmp_path: Path, mails: World) -> None:
    mails.judge("10:00", "10:05", "gbbbb", SLA)
    settings = Settings((Cluster("a", None),), (SLA,))
    steps.notify(settings, mails.store, [SLA.name], span("10:00", "10:05"), None, RUN)
    mails.run("10:05", "10:10", "ggggg", SLA)

    assert [subject[:10] for _, subject in mails.mailed()] == ["SLA missed", "SLA recove"]


def test_a_mail_that_waited_tells_of_its_own_miss_alone(mails: World) -> None:
    down = replace(mails.smtp, port=1)
    for start, end, letters in [("10:00", "10:05", "gbbbb"), ("10:05", "10:10", "ggggg")]:
        with pytest.raises(MailServerUnavailable):
            mails.run(start, end, letters, SLA, smtp=down)
    mails.run("12:00", "13:00", 50 * "g" + 9 * "b" + "g", SLA)

    assert "(4 min)" in text_of(mails.box.mails[0])


def test_a_receiver_that_knows_a_miss_by_its_team_hears_of_its_end_under_the_team_of_its_beginning(
    tmp_path: Path,
) -> None:
    for world in world_of(receivers.alertmanager, tmp_path):
        sla = replace(told(world), team="Billing")
        world.run("10:00", "10:05", "gbbbb", sla)
        renamed = replace(sla, team="Payments")
        world.run("10:05", "10:10", "bbbbb", renamed)
        good_hour(world, renamed)

        assert world.states() == {"resolved"}


def test_a_clock_that_was_ahead_keeps_no_end_from_its_receiver(tmp_path: Path) -> None:
    for world in world_of(receivers.alertmanager, tmp_path):
        sla = told(world)
        world.run("10:00", "10:05", "gbbbb", sla)
        minutes_pass(world.store, -60 * 24)
        world.run("10:05", "10:10", "ggggg", sla)

        assert world.states() == {"resolved"}


@pytest.mark.parametrize("pairs", [(), (replace(PAGE, severity="ticket", burn_rate=1_000.0),)])
def test_a_burn_whose_alerts_are_taken_away_is_over_and_told_to_be(world: World, pairs: tuple[BurnPair, ...]) -> None:
    sla = told(world, BURNING)
    interval = put_burning(world.ledger, at("8:00"), 60 * "g" + 15 * "b", sla)
    world.notify(sla, start=f"{interval.start:%H:%M}", end=f"{interval.end:%H:%M}")
    assert world.states() and not world.states() & OVER

    minutes_pass(world.store, 10)
    without = replace(sla, burn_pairs=pairs)
    put_burning(world.ledger, at("9:15"), "ggggg", without)
    world.notify(without, start="9:15", end="9:20")

    assert world.states() <= OVER
    assert not world.ledger.burns.of([sla.name])
    assert len(world.ledger.burns.of([sla.name], span("8:00", "10:00"))) == 1


@pytest.mark.parametrize(("is_notified", "states"), [(True, 2), (False, 1)])
def test_a_miss_that_is_gone_is_over_and_what_is_left_of_its_reported_time_continues_it(
    world: World, is_notified: bool, states: int
) -> None:
    """Edited to a shorter `for`, the miss falls apart, and late facts take back its first part. A run that notified
    reported the second part as another miss."""
    long = told(world, replace(SLA, for_ms=600_000))
    short = replace(long, for_ms=120_000)
    world.run("10:00", "10:15", "g" + 14 * "b", long)
    minutes_pass(world.store, 10)
    (world.run if is_notified else world.judge)("10:00", "10:15", "gbbbgggbbbbbbbb", short)
    world.judge("10:00", "10:15", "gggggggbbbbbbbb", short)
    for _ in range(2):
        world.notify(short, start="10:10", end="10:15")

    assert len(world.states() - OVER) == 1
    assert len(world.receiver.states) == states


def test_an_end_that_could_not_be_sent_is_taken_back_when_the_miss_goes_on(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbbb", sla)
    minutes_pass(world.store, 10)
    world.receiver.failures = 99
    with pytest.raises(ReceiverUnavailable):
        world.run("10:00", "10:05", "gbbbg", sla)
    world.receiver.failures = 0
    world.run("10:00", "10:10", "gbbbbbbbbb", sla)
    assert not world.states() & OVER

    good_hour(world, sla)
    assert world.states() <= OVER


def test_other_dags_hear_each_time_that_a_miss_goes_on_and_ends(tmp_path: Path) -> None:
    store, kinds = Store.embedded(tmp_path), list[str]()
    settings, ledger = Settings((Cluster("a", None),), (SLA,)), Ledger(store)
    for end, letters in [("10:05", "gbbbg"), ("10:10", "gbbbbbbbbb"), ("10:15", "gbbbbbbbbbggggg")]:
        interval = span("10:00", end)
        ledger.verdicts.replace(SLA, interval, windows("10:00", letters, SLA))
        steps.announce(settings, store, [SLA.name], interval, lambda message: kinds.append(message.state))

    assert kinds == ["open", "resolved"] * 2


def test_an_address_that_is_refused_keeps_no_others_from_what_they_were_told_of_together(mails: World) -> None:
    first, second = mailed_to("billing", *slas(2))
    judge_slow(mails, first, second)
    mails.notify(first, second)
    mistyped = replace(first, recipients=("billling@example.com",))
    mails.box.refused = ("billling@example.com",)
    judge_slow(mails, mistyped, second, end=True)
    with pytest.raises(MailRefused):
        mails.notify(mistyped, second)

    assert [to for to, _ in mails.mailed()] == ["billing@example.com"] * 2


def test_nobody_hears_that_what_is_not_alerted_on_any_more_began(world: World) -> None:
    sla = told(world, BURNING)
    put_burning(world.ledger, at("8:00"), 60 * "g" + 15 * "b", sla)
    without = replace(sla, burn_pairs=())
    put_burning(world.ledger, at("9:15"), "ggggg", without)
    world.notify(without, start="9:15", end="9:20")

    assert not world.receiver.bodies


def test_runs_of_some_of_the_slas_of_a_message_send_none_of_it_twice(tmp_path: Path) -> None:
    """One run waits for the receiver with the message of three, when another one comes for two of them."""
    known = [replace(sla, recipients=(), webhooks=(Webhook("receiver", "json"),)) for sla in slas(3)]
    names, settings = [sla.name for sla in known], Settings((Cluster("main", None),), tuple(known))
    down, sending, go_on, said = [True], Event(), Event(), list[str]()

    def handle(_: Receiver, __: str, ___: dict[str, str], body: Any) -> int:
        if down[0]:
            return 400
        sending.set()
        assert go_on.wait(60)
        said.extend(one["sla"] for one in body["alerts"])
        return 200

    with TemporaryDirectory() as folder, postgres(Path(folder) / "data", durable=False) as urls:
        store = Store(str(tmp_path / "warehouse"), urls["kafka_sla"])
        ledger = Ledger(store)
        ledger.open(writing=True)
        judged(ledger, known, [slow(sla) for sla in known])
        with serving(Receiver(handle)) as webhook, ThreadPoolExecutor(2) as pool:

            def run(some: list[str]) -> None:
                steps.notify(settings, store, some, INTERVAL, None, RUN, login=lambda _: webhook)

            with pytest.raises(WebhookRefused):
                run(names)
            down[0] = False
            whole = pool.submit(run, names)
            assert sending.wait(60)
            some = pool.submit(run, names[1:])
            wait([some], timeout=1)
            go_on.set()
            whole.result(timeout=60)
            some.result(timeout=60)

    assert sorted(said) == sorted(names)


def test_a_recipient_who_is_added_while_a_miss_is_open_is_told_of_it_once(mails: World) -> None:
    mails.run("10:00", "10:05", "gbbbb", SLA)
    more = replace(SLA, recipients=("lead@example.com", "oncall@example.com"))
    for start, end, letters in [("10:05", "10:10", "bbbbb"), ("10:10", "10:15", "bbbbb"), ("10:15", "10:20", "ggggg")]:
        mails.run(start, end, letters, more)

    assert [(to, subject[:10]) for to, subject in mails.mailed()] == [
        ("oncall@example.com", "SLA missed"),
        ("lead@example.com", "SLA missed"),
        ("lead@example.com, oncall@example.com", "SLA recove"),
    ]


def test_a_receiver_that_is_removed_while_a_miss_is_open_is_told_its_end(world: World) -> None:
    sla = told(world)
    world.run("10:00", "10:05", "gbbbb", sla)
    minutes_pass(world.store, 10)
    world.run("10:05", "10:10", "bbbbb", replace(sla, webhooks=(), recipients=("oncall@example.com",)))

    assert world.states() <= OVER
    assert [subject[:10] for _, subject in world.mailed()] == ["SLA missed"]


def test_the_recipients_of_an_sla_that_is_removed_are_told_why_its_miss_ends(mails: World) -> None:
    other = replace(SLA, name="orders")
    mails.run("10:00", "10:05", "gbbbb", SLA)
    for _ in range(2):
        mails.run("10:05", "10:10", "ggggg", other)

    assert [" ".join(subject.split()) for _, subject in mails.mailed()][1:] == [
        "SLA no longer judged: payments after 4 min"
    ]


def test_a_miss_that_is_excluded_is_closed_and_not_called_recovered(mails: World) -> None:
    mails.run("10:00", "10:05", "gbbbb", SLA)
    wanted = exclusion_request(SLA, (at("10:00"), at("10:10")), "load test", "ada", now=at("10:20"), window_ms=60_000)
    mails.ledger.exclusions.add(wanted)
    mails.run("10:05", "10:10", "bgggg", SLA)

    assert [subject.partition(":")[0] for _, subject in mails.mailed()] == ["SLA missed", "SLA no longer judged"]


def text_of(mail: object) -> str:
    return str(mail.get_payload()[0].get_payload(decode=True).decode())  # type: ignore[attr-defined]
