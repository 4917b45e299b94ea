"""Who cannot be reached by one process hears of it from the next one that can, once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Interval, Notifier, Sla, Webhook
from kafka_sla.pipeline import steps
from tests.kafka_sla.loads import at
from tests.kafka_sla.notifications import receivers
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, slas, slow
from tests.kafka_sla.notifications.receivers import Receiver, serving
from tests.kafka_sla.notifications.webhooks.test_webhook import TAKES
from tests.kafka_sla.pipeline.test_burn_alerts import SLA as BURNING
from tests.kafka_sla.pipeline.test_burn_alerts import STORY, put


def hearing(sla: Sla) -> Sla:
    """No mail, but a notifier and a webhook."""
    return replace(sla, recipients=(), notifiers=(Notifier("company.Chat"),), webhooks=(Webhook("pd", "pagerduty"),))


def a_miss(store: Store) -> tuple[Sla, Interval]:
    sla = hearing(slas(1)[0])
    judged(Ledger(store), [sla], [slow(sla)])
    return sla, INTERVAL


def a_burn(store: Store) -> tuple[Sla, Interval]:
    sla = hearing(BURNING)
    return sla, put(Ledger(store), at("8:00"), STORY[:75], sla)


@pytest.mark.parametrize("story", [a_miss, a_burn])
@pytest.mark.parametrize("can", [set(), {"call"}, {"login"}])
def test_what_this_process_cannot_reach_waits_for_one_that_can(tmp_path: Path, story: Any, can: set[str]) -> None:
    store = Store.embedded(tmp_path)
    sla, interval = story(store)
    settings = Settings((Cluster(sla.cluster, None),), (sla,))
    receiver, heard = Receiver(receivers.pagerduty), Counter[str]()

    def call(notifier: Notifier, *_: Any) -> None:
        heard[notifier.path] += 1

    with serving(receiver, **TAKES["pagerduty"][1]) as connection:
        for able in (can, {"call", "login"}, {"call", "login"}):
            steps.notify(
                settings,
                store,
                [sla.name],
                interval,
                None,
                RUN,
                call if "call" in able else None,
                (lambda _: connection) if "login" in able else None,
            )
            if able == can:
                assert (heard["company.Chat"], len(receiver.bodies)) == ("call" in can, "login" in can)

    assert (heard["company.Chat"], len(receiver.bodies)) == (1, 1)
