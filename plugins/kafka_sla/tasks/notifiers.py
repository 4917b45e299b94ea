"""Any Airflow notifier as a listener to misses. Knows Airflow's notifiers, not when or how often they are called."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any, cast

from airflow.sdk import Context

from kafka_sla.errors import SettingsError
from kafka_sla.ledger.outbox import Notice
from kafka_sla.model.entities import Notifier, Sla
from kafka_sla.sla.wording import duration, place, violation

log = logging.getLogger(__name__)


def caller(context: Context) -> Callable[[Notifier, Sla, Notice], None]:
    """What the pipeline calls to run a notifier in this task's context."""

    def call(notifier: Notifier, sla: Sla, notice: Notice) -> None:
        _made(notifier, sla)(cast(Context, {**context, **about(sla, notice)}))
        log.info("Called %s: %s", notifier.path, message(sla, notice))

    return call


def about(sla: Sla, notice: Notice) -> dict[str, Any]:
    """What a notifier's templates may use besides Airflow's own context."""
    return {
        "kind": notice.kind,
        "message": message(sla, notice),
        "sla": sla.name,
        "team": sla.team,
        "miss": asdict(notice.miss),
        "run_url": notice.run_url,
    }


def message(sla: Sla, notice: Notice) -> str:
    """One line for a chat."""
    miss, what = notice.miss, "recovered" if notice.kind == "recovered" else "missed"
    return f"SLA {what}: {sla.name}, {duration(miss)}: {violation(miss)}, {place(miss)}"


def _made(notifier: Notifier, sla: Sla) -> Callable[[Context], None]:
    module, _, name = notifier.path.rpartition(".")
    try:
        made: Callable[[Context], None] = getattr(import_module(module), name)(**notifier.kwargs)
    except (ImportError, AttributeError, TypeError) as error:
        raise SettingsError(
            f"the notifier {notifier.path} of the SLA {sla.name!r} cannot be made: {error}; see path and kwargs in the"
            " configuration, and whether its provider is installed"
        ) from error
    return made
