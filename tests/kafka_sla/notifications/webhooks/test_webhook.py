"""Webhooks against receivers that take only what their vendors' documents allow."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import ReceiverUnavailable, WebhookRefused, WebhookUnavailable
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Miss, Sla, Webhook, WebhookFormat
from kafka_sla.notifications.webhooks import webhook as door
from kafka_sla.notifications.webhooks.event import AlertEvent, event_of, schema
from kafka_sla.notifications.webhooks.webhook import send
from kafka_sla.pipeline import steps
from tests.kafka_sla.network.served import served
from tests.kafka_sla.notifications import receivers
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, minutes_pass, slas, slow
from tests.kafka_sla.notifications.receivers import Receiver, serving
from tests.kafka_sla.notifications.test_incident_email import OPENED, SOME, incident

SCHEMA = Path(__file__).parents[4] / "docs/reference/webhook.schema.json"
KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TAKES: dict[str, tuple[receivers.Handle, dict[str, Any]]] = {
    "json": (lambda receiver, path, headers, body: jsonschema.validate(body, schema()) or 200, {}),
    "slack": (receivers.slack, {"password": "services/T0/B0/x"}),
    "teams": (receivers.teams, {"password": "workflows/w1/triggers/manual/paths/invoke?api-version=1&sig=x"}),
    "pagerduty": (receivers.pagerduty, {"password": 32 * "a"}),
    "opsgenie": (receivers.opsgenie, {"password": "s3cret"}),
    "alertmanager": (receivers.alertmanager, {}),
}


def known(number: int = 5) -> dict[str, Sla]:
    return {sla.name: sla for sla in slas(number)}


def event(*, ended: bool = False, number: int = 5, still_open: int = 0) -> AlertEvent:
    found = [slow(sla, end=ended) for sla in slas(number)]
    kept = len(found) - still_open
    return event_of(known(number), incident("recovered" if ended else "opened", found[:kept], found[kept:], number))


def received(format: str, *events: AlertEvent, **options: Any) -> Receiver:
    """What a receiver of this format makes of these events."""
    handle, login = TAKES[format]
    receiver = Receiver(handle)
    with serving(receiver, **login, **options) as connection:
        for one in events:
            send(connection, Webhook("receiver", format), one)  # type: ignore[arg-type]
    return receiver


def test_a_miss_that_goes_on_has_the_id_under_which_it_was_reported_first() -> None:
    over = incident("recovered", [slow(sla) for sla in slas(2)])
    moved = replace(over, notices=over.notices[:1], still_open=(replace(over.notices[1], thread="first"),))

    assert [one.id for one in event_of(known(2), moved).still_open] == ["first"]


def test_every_format_has_a_receiver_here() -> None:
    assert set(get_args(WebhookFormat)) == set(TAKES)


@pytest.mark.parametrize("format", TAKES)
@pytest.mark.parametrize("number", [1, 500])
def test_receivers_take_openings_and_recoveries_of_any_size(format: str, number: int) -> None:
    receiver = received(
        format,
        event(number=number),
        event(ended=True, number=number, still_open=number // 2),
        event(ended=True, number=number),
    )

    assert receiver.refused == []
    assert len(receiver.bodies) == 3


@pytest.mark.parametrize("format", ["json", "slack", "pagerduty", "alertmanager"])
def test_all_of_five_hundred_misses_are_named(format: str) -> None:
    (body,) = received(format, event(number=500)).bodies

    text = json.dumps(body)
    assert [name for name in known(500) if name not in text] == []


@pytest.mark.parametrize("format", ["slack", "teams"])
def test_a_name_is_shown_as_it_is_and_is_no_mark_up_no_link_and_calls_nobody(format: str) -> None:
    """Runs of text are shown as they are by both; whatever else a block may hold would be read as mark-up."""
    name = "<!channel> *a*_b_ [x](http://evil.example) ${{DATE(now)}} \u202etxt"
    misses = [replace(slow(sla), sla=name, worst_group=name) for sla in slas(1)]
    sla = replace(slas(1)[0], name=name)
    (body,) = received(format, event_of({name: sla}, incident("opened", misses))).bodies
    runs = [run for run in objects(body) if run.get("type") in ("text", "link", "TextRun")]
    seen = name.replace("\u202e", "\N{REPLACEMENT CHARACTER}")

    assert any(seen in run["text"] for run in runs)
    assert not any("\u202e" in text for text in map(json.dumps, runs))
    assert {one.get("type") for one in objects(body)} & {"mrkdwn", "TextBlock"} == set()
    assert body.get("mrkdwn", False) is False
    assert "<!channel>" not in body.get("text", "")


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON value."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(one)


def test_a_card_holds_what_teams_takes_of_names_in_any_script() -> None:
    number, long = 300, "\N{HIRAGANA LETTER A}" * 90
    misses = [replace(slow(sla), sla=f"{long}{n}") for n, sla in enumerate(slas(number))]
    named = {miss.sla: replace(sla, name=miss.sla) for miss, sla in zip(misses, slas(number), strict=True)}
    receiver = received("teams", event_of(named, incident("opened", misses[:150], misses[150:], number)))

    assert len(receiver.raw[0]) < 28_000
    assert "more" in receiver.bodies[0]["attachments"][0]["content"]["body"][-1]["inlines"][0]["text"]


def test_alertmanager_keeps_a_miss_firing_that_began_months_ago() -> None:
    now = datetime.now(UTC)
    old = replace(slow(slas(1)[0]), start=now - timedelta(days=90))
    (body,) = received("alertmanager", event_of(known(1), replace(incident("opened", [old]), incident=old.id))).bodies

    assert datetime.fromisoformat(body[0]["endsAt"]) > now + timedelta(days=1)


@pytest.mark.parametrize(
    ("format", "opened", "some", "over"),
    [("pagerduty", "trigger", "trigger", "resolve"), ("opsgenie", "open", "noted", "closed")],
)
def test_an_alert_of_an_incident_is_resolved_by_its_last_recovery(
    format: str, opened: str, some: str, over: str
) -> None:
    story = [event(), event(ended=True, still_open=2), event(ended=True)]

    states = [received(format, *story[: n + 1]).states for n in range(3)]

    assert states == [{OPENED.incident: opened}, {OPENED.incident: some}, {OPENED.incident: over}]


def test_pagerduty_and_opsgenie_know_a_miss_that_is_alone_by_its_id() -> None:
    alone = slow(slas(1)[0])
    single = event_of(known(1), replace(incident("opened", [alone]), incident=alone.id))

    assert list(received("pagerduty", single).states) == list(received("opsgenie", single).states) == [alone.id]


def test_pagerduty_hears_of_the_topic_and_the_group_of_a_miss() -> None:
    (body,) = received("pagerduty", event()).bodies

    assert (body["payload"]["component"], body["payload"]["group"]) == ("orders", "group-000")


def test_alertmanager_keeps_each_miss_firing_until_that_one_recovers() -> None:
    receiver = received("alertmanager", event(), event(ended=True, still_open=2))

    assert sorted(receiver.states.values()) == ["firing", "firing", "resolved", "resolved", "resolved"]


def test_the_published_schema_is_that_of_the_code_and_holds_for_events() -> None:
    written = json.loads(SCHEMA.read_text())

    assert written == schema(), "run `make docs`"
    for body in received("json", event_of(known(), OPENED), event_of(known(), SOME)).bodies:
        jsonschema.validate(body, written)


def test_a_signature_can_be_checked_as_standard_webhooks_says() -> None:
    receiver = received("json", event(), extra={"signing_key": f"whsec_{KEY}"})

    (headers,), (raw,) = receiver.headers, receiver.raw
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
    digest = base64.b64encode(hmac.new(base64.b64decode(KEY), signed, sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert headers["webhook-id"] == "m-billing.alerts-000.opened"


@pytest.mark.parametrize(
    ("login", "authorization"),
    [
        ({"password": "t0ken"}, "Bearer t0ken"),
        ({"login": "sla", "password": "s3cret"}, "Basic c2xhOnMzY3JldA=="),
        ({"extra": {"headers": {"Authorization": "Token x"}}}, "Token x"),
    ],
)
def test_the_login_of_the_connection_is_used(login: dict[str, Any], authorization: str) -> None:
    assert received("json", event(), **login).headers[0]["authorization"] == authorization


def test_a_receiver_that_is_busy_gets_the_same_event_again() -> None:
    receiver = Receiver(TAKES["json"][0], fail_first=2)
    with serving(receiver) as connection:
        send(connection, Webhook("receiver"), event())

    assert [headers["webhook-id"] for headers in receiver.headers] == ["m-billing.alerts-000.opened"]


def test_a_receiver_that_stays_busy_refuses_or_is_gone_is_named_without_its_secret() -> None:
    login = TAKES["pagerduty"][1]
    busy = "connection 'receiver': it answered 503, 3 times; the next run"
    with (
        serving(Receiver(receivers.pagerduty, fail_first=9)) as connection,
        pytest.raises(WebhookUnavailable, match=busy),
    ):
        send(connection, Webhook("receiver", "pagerduty"), event())
    with (
        serving(Receiver(receivers.slack)) as connection,
        pytest.raises(WebhookRefused, match="answered 404") as caught,
    ):
        send(replace(connection, password="services/T0/wrong"), Webhook("receiver", "slack"), event())
    assert "T0/wrong" not in str(caught.value)
    assert not isinstance(caught.value, WebhookUnavailable)
    with pytest.raises(WebhookUnavailable, match="no answer"):
        send(replace(connection, **login), Webhook("receiver", "pagerduty"), event())


ECHOED = {
    "the path of Slack": (
        "slack",
        {"password": "services/T0123/B4567/s3cretS3CRET"},
        "/services/T0123/B4567/s3cretS3CRET",
    ),
    "its last part": ("slack", {"password": "services/T0123/B4567/s3cretS3CRET"}, "s3cretS3CRET"),
    "its last part, in JSON": ("slack", {"password": 'T0/s3"cret'}, 's3\\"cret'),
    "a password": ("json", {"password": "s3cret t0ken"}, "s3cret t0ken"),
    "a percent-encoded password": ("json", {"password": "s3cret/t0ken"}, "s3cret%2Ft0ken"),
    "a login as it is sent": ("json", {"login": "me", "password": "s3cret"}, "bWU6czNjcmV0"),
    "a header": ("json", {"extra": {"headers": {"X-Key": "s3cret-key"}}}, "s3cret-key"),
    "a signing key": ("json", {"extra": {"signing_key": "whsec_c2VjcmV0"}}, "whsec_c2VjcmV0"),
}


@pytest.mark.parametrize(("format", "login", "secret"), ECHOED.values(), ids=ECHOED)
def test_a_receiver_that_repeats_a_secret_puts_it_into_no_error(
    format: WebhookFormat, login: dict[str, Any], secret: str
) -> None:
    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(400)
            self.end_headers()
            self.wfile.write(f"invalid_payload for {secret}: {'x' * 150}{secret}".encode())

    with served(Echo) as port, pytest.raises(WebhookRefused, match="it answered 400: 'invalid_payload for ") as caught:
        send(Connection("hook", f"http://127.0.0.1:{port}", **login), Webhook("hook", format), event())

    assert secret not in str(caught.value)
    assert "(hidden)" in str(caught.value)


def test_a_receiver_that_redirects_gets_no_second_request() -> None:
    seen = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            seen.append(self.path)

    with served(Elsewhere) as port, pytest.raises(WebhookRefused, match="it answered 307"):
        send(Connection("hook", f"http://127.0.0.1:{port}/hook"), Webhook("hook"), event())

    assert seen == ["/hook"]


@pytest.mark.parametrize("after", ["\u00b2", "1e999", "-1", "NaN", "9" * 400, "", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_receiver_that_names_no_time_to_wait_is_busy_as_any_other(after: str) -> None:
    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(503)
            self.send_header("Retry-After", after)
            self.end_headers()

    with served(Busy) as port, pytest.raises(WebhookUnavailable, match="it answered 503, 3 times"):
        send(Connection("hook", f"http://127.0.0.1:{port}"), Webhook("hook"), event())


@pytest.mark.parametrize(("code", "absent"), [(500, False), (408, False), (429, True), (502, True), (504, True)])
def test_a_busy_receiver_that_may_take_another_event_is_told_from_one_that_takes_none(code: int, absent: bool) -> None:
    with serving(Receiver(lambda *_: code)) as connection, pytest.raises(WebhookRefused, match=str(code)) as refused:
        send(connection, Webhook("receiver"), event())

    assert isinstance(refused.value, ReceiverUnavailable) is absent


@pytest.mark.parametrize(
    ("connection", "reason"),
    [
        (Connection("hook"), "needs a host"),
        (Connection("hook", "ftp://example.com"), "needs a host"),
        (Connection("hook", "example.com", extra={"signing_key": "no base64!"}), "must be base64"),
    ],
)
def test_a_connection_that_can_be_no_webhook_is_refused(connection: Connection, reason: str) -> None:
    with pytest.raises(WebhookRefused, match=f"connection 'hook': .*{reason}"):
        door.check(connection)


def run(settings: Settings, store: Store, connection: Connection, misses: Sequence[Miss]) -> dict[str, Any]:
    judged(Ledger(store), settings.slas, misses)
    return steps.notify(
        settings, store, [sla.name for sla in settings.slas], INTERVAL, None, RUN, login=lambda _: connection
    )


def test_a_run_reports_all_that_share_a_cause_in_one_event_and_what_failed_with_the_next_run(tmp_path: Path) -> None:
    store = Store.embedded(tmp_path)
    hooked = tuple(replace(sla, webhooks=(Webhook("pagerduty", "pagerduty"),)) for sla in slas(5))
    settings = Settings((Cluster("main", None),), hooked)
    receiver = Receiver(receivers.pagerduty, fail_first=3)
    with serving(receiver, **TAKES["pagerduty"][1]) as connection:
        with pytest.raises(WebhookRefused):
            run(settings, store, connection, [slow(sla) for sla in hooked])
        run(settings, store, connection, [slow(sla) for sla in hooked])
        assert [body["event_action"] for body in receiver.bodies] == ["trigger"]

        run(settings, store, connection, [slow(sla, end=n < 3) for n, sla in enumerate(hooked)])
        run(settings, store, connection, [slow(sla, end=True) for sla in hooked])

    assert [body["event_action"] for body in receiver.bodies] == ["trigger", "trigger", "resolve"]
    assert len({body["dedup_key"] for body in receiver.bodies}) == 1


def hooked(format: WebhookFormat, number: int) -> Settings:
    webhooks = (Webhook("receiver", format),)
    return Settings((Cluster("main", None),), tuple(replace(sla, webhooks=webhooks) for sla in slas(number)))


def test_an_alertmanager_that_was_restarted_hears_from_the_next_run_what_is_still_missed(tmp_path: Path) -> None:
    settings, store, receiver = hooked("alertmanager", 5), Store.embedded(tmp_path), Receiver(receivers.alertmanager)
    with serving(receiver) as connection:
        run(settings, store, connection, [slow(sla) for sla in settings.slas])
        told = dict(receiver.states)
        receiver.states.clear()
        run(settings, store, connection, [slow(sla) for sla in settings.slas])
        assert receiver.states == told and set(told.values()) == {"firing"}

        minutes_pass(store, 10)
        run(settings, store, connection, [slow(sla, end=n < 3) for n, sla in enumerate(settings.slas)])
        run(settings, store, connection, [slow(sla, end=n < 3) for n, sla in enumerate(settings.slas)])
        assert sorted(receiver.states.values()) == ["firing", "firing", "resolved", "resolved", "resolved"]

        receiver.bodies.clear()
        run(settings, store, connection, [slow(sla, end=True) for sla in settings.slas])
        run(settings, store, connection, [slow(sla, end=True) for sla in settings.slas])
        assert [len(body) for body in receiver.bodies] == [2]


def test_alertmanager_hears_long_enough_of_a_miss_to_pass_it_on_however_short_it_was(tmp_path: Path) -> None:
    """It says nothing of an alert that is resolved when it next looks at its group, by default after five minutes."""
    settings, store, receiver = hooked("alertmanager", 3), Store.embedded(tmp_path), Receiver(receivers.alertmanager)
    short, open_, new = settings.slas
    with serving(receiver) as connection:
        run(replace(settings, slas=(short, open_)), store, connection, [slow(short, end=True), slow(open_)])
        assert list(receiver.states.values()) == ["firing", "firing"]

        minutes_pass(store, 5)
        run(settings, store, connection, [slow(short, end=True), slow(open_, end=True), slow(new)])
        assert list(receiver.states.values()) == ["firing", "firing", "firing"]

        minutes_pass(store, 2)
        run(settings, store, connection, [slow(short, end=True), slow(open_, end=True), slow(new)])
        assert sorted(receiver.states.values()) == ["firing", "resolved", "resolved"]


def test_an_alert_of_a_miss_ends_later_with_each_run_that_finds_it_open(tmp_path: Path) -> None:
    settings, store, receiver = hooked("alertmanager", 1), Store.embedded(tmp_path), Receiver(receivers.alertmanager)
    ends = []
    with serving(receiver) as connection:
        for _ in range(3):
            run(settings, store, connection, [slow(sla) for sla in settings.slas])
            ends.append(receiver.bodies[-1][0]["endsAt"])

    assert ends == sorted(set(ends))


@pytest.mark.parametrize("format", [format for format in TAKES if format != "alertmanager"])
def test_no_other_receiver_hears_of_a_miss_again(format: WebhookFormat, tmp_path: Path) -> None:
    handle, login = TAKES[format]
    settings, store, receiver = hooked(format, 2), Store.embedded(tmp_path), Receiver(handle)
    with serving(receiver, **login) as connection:
        for _ in range(2):
            run(settings, store, connection, [slow(sla) for sla in settings.slas])

    assert len(receiver.bodies) == 1


def test_an_alertmanager_that_is_gone_keeps_no_mail_and_no_other_receiver_waiting(tmp_path: Path) -> None:
    webhooks = (Webhook("gone", "alertmanager"), Webhook("receiver", "pagerduty"))
    settings = Settings((Cluster("main", None),), tuple(replace(sla, webhooks=webhooks) for sla in slas(1)))
    store, receiver = Store.embedded(tmp_path), Receiver(receivers.pagerduty)
    forgetful = Receiver(receivers.alertmanager)
    with serving(receiver, **TAKES["pagerduty"][1]) as there, serving(forgetful) as gone:
        logins = {"receiver": there, "gone": gone}

        def runs(*, end: bool) -> None:
            judged(Ledger(store), settings.slas, [slow(sla, end=end) for sla in settings.slas])
            names = [sla.name for sla in settings.slas]
            steps.notify(settings, store, names, INTERVAL, None, RUN, login=lambda name: logins[name])

        runs(end=False)
        minutes_pass(store, 10)
        forgetful.failures = 9
        with pytest.raises(WebhookUnavailable):
            runs(end=False)
        with pytest.raises(WebhookUnavailable):
            runs(end=True)
        forgetful.failures = 0
        runs(end=True)

    assert list(receiver.states.values()) == ["resolve"]
    assert list(forgetful.states.values()) == ["resolved"]
