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
from kafka_sla.text.formatting import moment, span

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
    miss = notice.miss
    where = f"{miss.worst_group} on {miss.worst_topic}-{miss.worst_partition}"
    if notice.kind == "recovered":
        return f"SLA recovered: {sla.name}, missed from {moment(miss.start)} to {moment(miss.end)}, {where}"
    promised = f"promised {span(sla.max_latency_ms)}, worst {span(miss.worst_latency_ms)}"
    return f"SLA missed: {sla.name} since {moment(miss.start)}, {promised}, {where}"


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
