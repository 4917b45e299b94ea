"""A mail server that takes long to answer delays no writer of the store, and a kill while it answers sends no other
mail."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time
from pathlib import Path
from threading import Event

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Digest, FreshnessAlert
from kafka_sla.notifications.digest_delivery import mail_digest
from kafka_sla.notifications.late_run_email import LateRun
from kafka_sla.notifications.late_runs import tell_if_late
from kafka_sla.pipeline import steps
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, slas, slow
from tests.kafka_sla.notifications.test_smtp import Mailbox, serving

SLAS = tuple(slas(1))
SETTINGS = Settings(
    (Cluster("main", None),), SLAS, digests=(Digest("daily", "day", time(8), recipients=("ann@example.com",)),)
)
LATE = LateRun("kafka_sla", "late", INTERVAL, "running", "https://airflow.example.com")


class SlowMailbox(Mailbox):
    """Keeps each mail, and answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.received, self.may_answer = Event(), Event()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        answer = await super().handle_DATA(server, session, envelope)
        self.received.set()
        await asyncio.to_thread(self.may_answer.wait, 20)
        return answer


def store_with_a_miss(folder: Path) -> Store:
    store = Store.embedded(folder)
    judged(Ledger(store), SLAS, [slow(SLAS[0])])
    return store


def notify(store: Store, smtp: Connection) -> None:
    steps.notify(SETTINGS, store, [SLAS[0].name], INTERVAL, smtp, RUN)


def mail_the_digest(store: Store, smtp: Connection) -> None:
    mail_digest(SETTINGS, store, "daily", datetime(2026, 3, 2, tzinfo=UTC), smtp)


def report_the_late_run(store: Store, smtp: Connection) -> None:
    alert = FreshnessAlert(("ann@example.com",), 600_000)
    tell_if_late(lambda: store, alert, LATE, ["main"], smtp)


@pytest.mark.parametrize("send", [notify, mail_the_digest, report_the_late_run])
def test_others_write_to_an_embedded_store_while_a_mail_server_takes_its_time(
    tmp_path: Path, send: Callable[[Store, Connection], None]
) -> None:
    store, box = store_with_a_miss(tmp_path), SlowMailbox()

    with serving(box) as smtp, ThreadPoolExecutor(1) as sender:
        sending = sender.submit(send, store, smtp)
        assert box.received.wait(60)
        steps.keep_unjudged(store, SLAS[0].name, INTERVAL, ValueError("another process writes"))
        answered = sending.done()
        box.may_answer.set()
        sending.result(timeout=60)

    assert not answered
    assert len(box.mails) == 1


def test_a_mail_is_sent_again_with_the_same_message_id_if_its_sender_was_killed(tmp_path: Path) -> None:
    store, box = store_with_a_miss(tmp_path), SlowMailbox()

    with serving(box) as smtp:
        sender = multiprocessing.get_context("spawn").Process(target=notify, args=(store, smtp))
        sender.start()
        assert box.received.wait(60)
        os.kill(sender.pid or 0, signal.SIGKILL)
        sender.join()
        box.may_answer.set()
        for _ in range(2):
            notify(store, smtp)

    first, second = box.mails
    assert first["Message-ID"] == second["Message-ID"]
