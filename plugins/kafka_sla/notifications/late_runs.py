"""Is a scheduled run late, and do its operators know? Knows ledger and mails, nothing of Airflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kafka_sla.config.store import Store
from kafka_sla.errors import ConnectionMissing, StoreError
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection, FreshnessAlert
from kafka_sla.notifications.late_run_email import LateRun, late_mail
from kafka_sla.notifications.smtp import deliver, sender_of


def tell_if_late(
    store: Callable[[], Store], freshness_alert: FreshnessAlert, run: LateRun, clusters: Sequence[str], smtp: Connection
) -> str:
    """Mail the operators unless all clusters are published and the run has ended, or they know. Answers what was done.

    A store that cannot be asked is a reason to mail, every time: it is what keeps the runs from ending.
    """
    sender = sender_of(smtp)
    try:
        ledger = Ledger(store())
        late = _late(ledger, run, clusters)
        if not late:
            return f"{run.interval} is published, and the run has ended: not late"
        message = late_mail(freshness_alert, run, late, None, sender)
        told = ledger.sent_once.send_late_run(late, run.interval.end, lambda: deliver(smtp, message))
    except (StoreError, ConnectionMissing) as error:
        deliver(smtp, late_mail(freshness_alert, run, {}, str(error), sender))
        return f"mailed to {', '.join(freshness_alert.recipients)}, without knowing what is published: {error}"
    named = ", ".join(sorted(late))
    return f"mailed to {', '.join(freshness_alert.recipients)}: {named}" if told else f"late, already mailed: {named}"


def _late(ledger: Ledger, run: LateRun, clusters: Sequence[str]) -> dict[str, datetime | None]:
    """The clusters that the run owes, and until when each is published; a run that goes on owes all."""
    owed = (
        clusters if run.state not in ("failed", "success") else ledger.publications.incomplete(clusters, run.interval)
    )
    found = {name: ledger.publications.latest(name, run.interval.end) for name in owed}
    return {name: publication.interval.end if publication else None for name, publication in found.items()}
