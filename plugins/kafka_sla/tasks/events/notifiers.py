"""Any Airflow notifier as a listener to misses. Knows Airflow's notifiers, not when or how often they are called."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any, cast

from airflow.sdk import BaseNotifier, Context

from kafka_sla.config.notifier_classes import NOTIFIER_ALLOWED, verify_notifier
from kafka_sla.errors import SettingsError
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.model.entities import Notifier, Sla
from kafka_sla.notifications.incident_email import subject
from kafka_sla.notifications.notices import IncidentNotice, Notice, burn_message, miss_message
from kafka_sla.notifications.webhooks.lines import CHAT, enumerated
from kafka_sla.reporting.templates import visible
from kafka_sla.sla.wording import duration, miss_outcome, place, violation
from kafka_sla.tasks.events.burn_notifiers import about_burns

log = logging.getLogger(__name__)


def caller(context: Context) -> Callable[[Notifier, Sla, AlertMessage], None]:
    """What the pipeline calls to run a notifier in this task's context."""

    def call(notifier: Notifier, sla: Sla, message: AlertMessage) -> None:
        is_miss = message.kind == "miss"
        values = about(sla, miss_message(message)) if is_miss else about_burns(sla, burn_message(message))
        _make_notifier(notifier, sla)(cast(Context, {**context, **values}))
        log.info("Called %s: %s", notifier.path, values["message"])

    return call


def about(sla: Sla, notice: IncidentNotice) -> dict[str, Any]:
    """What a notifier's templates may use besides Airflow's own context; `sla`: that of the first miss."""
    first = notice.notices[0]
    return {
        "kind": notice.kind,
        "message": visible(message(sla, first) if notice.is_single else incident_message(notice))[:CHAT],
        "sla": sla.name,
        "team": sla.team,
        "miss": asdict(first.miss),
        "misses": [asdict(one.miss) for one in notice.notices],
        "still_open": [asdict(other.miss) for other in notice.still_open],
        "incident": notice.incident,
        "run_url": first.run_url,
    }


def message(sla: Sla, notice: Notice) -> str:
    """One line for a chat."""
    miss, what = notice.miss, miss_outcome(notice.miss) if notice.kind == "recovered" else "missed"
    return f"SLA {what}: {sla.name}, {duration(miss)}: {violation(miss)}, {place(miss)}"


def incident_message(notice: IncidentNotice) -> str:
    """The same for several misses: what, how many, why, and SLAs by name, as many as fit."""
    rest = f"; still missed: {enumerated([other.miss.sla for other in notice.still_open])}" if notice.still_open else ""
    return f"{subject(notice)}: {enumerated([one.miss.sla for one in notice.notices])}{rest}"


def _make_notifier(notifier: Notifier, sla: Sla) -> BaseNotifier:
    """An instance of the configured class. SettingsError if the class is no notifier, cannot be imported or refuses its
    arguments; a module whose source shows no notifier is not even imported."""
    where = f"the notifier {notifier.path} of the SLA {sla.name!r} cannot be used"
    try:
        verify_notifier(notifier.path)
        module, _, name = notifier.path.rpartition(".")
        kind = getattr(import_module(module), name)
        if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
            raise SettingsError(f"{notifier.path} is not an Airflow notifier; allowed: {NOTIFIER_ALLOWED}")
        return kind(**notifier.kwargs)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from error
    except Exception as error:
        raise SettingsError(
            f"{where}: {type(error).__name__}: {error}; see path and kwargs in the configuration, and whether its"
            " provider is installed"
        ) from error
