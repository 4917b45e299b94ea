"""What notifiers are told of burns of error budgets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kafka_sla.model.entities import Sla
from kafka_sla.notifications.burn_email import subject
from kafka_sla.notifications.notices import BurnMessage, BurnNotice
from kafka_sla.notifications.webhooks.lines import CHAT, enumerated
from kafka_sla.reporting.templates import visible
from kafka_sla.sla.wording import burning, end_reason
from kafka_sla.text.formatting import moment


def about_burns(sla: Sla, message: BurnMessage) -> dict[str, Any]:
    """What a notifier's templates may use besides Airflow's own context, `sla` being that of the first burn; `miss` is
    none, and `misses` are."""
    first = message.notices[0]
    return {
        "kind": f"burn_{message.kind}",
        "message": visible(burn_message(sla, first) if message.is_single else burns_message(message))[:CHAT],
        "sla": sla.name,
        "team": sla.team,
        "miss": None,
        "misses": [],
        "still_open": [],
        "burn": _burn(first),
        "burns": [_burn(notice) for notice in message.notices],
        "still_burning": [_burn(notice) for notice in message.still_open],
        "incident": message.incident,
        "run_url": first.run_url,
    }


def burn_message(sla: Sla, notice: BurnNotice) -> str:
    """One line for a chat."""
    burn = notice.burn
    if reason := end_reason(notice.end_reason):
        return f"Burn ended ({burn.severity}): {sla.name}, {reason}"
    if notice.kind == "over":
        return f"Burn over ({burn.severity}): {sla.name} at {moment(burn.end)}, since {moment(burn.start)}"
    return f"Burn ({burn.severity}): {sla.name}, since {moment(burn.start)}: {burning(burn, sla.objective_of)}"


def burns_message(message: BurnMessage) -> str:
    """The same for several burns: what, how many, why, and SLAs by name, as many as fit."""
    names, still = (enumerated([n.burn.sla for n in of]) for of in (message.notices, message.still_open))
    return f"{subject(message)}: {names}{f'; still burning: {still}' if still else ''}"


def _burn(notice: BurnNotice) -> dict[str, Any]:
    """Under the id by which it was first told."""
    return asdict(notice.burn) | {"id": notice.thread or notice.burn.id}
