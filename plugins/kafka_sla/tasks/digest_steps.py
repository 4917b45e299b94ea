"""The making of digests as Airflow tasks. Knows Airflow and the doors of `digests`, nothing of what a digest says."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import get_current_context, task

from kafka_sla.airflow_versions import AirflowSkipException, airflow_address
from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Interval
from kafka_sla.tasks.connections import connection
from kafka_sla.tasks.run_context import data_interval, frozen, plain, read_settings
from kafka_sla.tasks.run_plan import Frozen

log = logging.getLogger(__name__)


class Wanted(Frozen):
    """A digest to make; travels through XCom."""

    digest: str
    at: str
    """An instant of its period."""
    send_to: str


@task
def find_due_digests() -> list[Wanted]:
    """The digests of this run: the one that the form names, else those that fell due in the data interval."""
    from kafka_sla.notifications import digest_delivery

    (settings, kept), asked = read_settings(), get_current_context()["params"]
    if asked["digest"]:
        if asked["send_to"] == "preview" and not asked["preview_to"]:
            raise BadRequest("Preview to is empty; give an e-mail address, or choose whom else to send to")
        at = digest_delivery.day_asked(settings.digest(asked["digest"]), asked["day"], datetime.now(UTC))
        return [Wanted(**kept, digest=asked["digest"], at=at.isoformat(), send_to=asked["send_to"])]
    found = digest_delivery.digests_due(settings, _interval())
    log.info("Due: %s.", ", ".join(one["digest"] for one in found) or "nothing")
    if not found:
        raise AirflowSkipException("no digest fell due in this interval")
    return [Wanted(**kept, digest=one["digest"], at=one["at"], send_to="readers") for one in found]


@task(map_index_template="{{ task.op_kwargs['wanted']['digest'] }}")
def digest(wanted: Wanted) -> dict[str, Any]:
    """Write one digest into the archive, and mail it: a scheduled one to each reader once."""
    from kafka_sla.notifications import digest_delivery

    context, (settings, store) = get_current_context(), frozen(wanted)
    name, at = wanted["digest"], datetime.fromisoformat(wanted["at"])
    made = digest_delivery.make_digest(settings, store, name, at)
    log.info("%s, %s: %s Page: %s", name, made["period"], made["summary"], made["page"])
    if wanted["send_to"] == "nobody":
        return made
    if not settings.smtp_connection:
        raise BadRequest("the configuration names no smtp_connection; name one, or send to nobody")
    to = [context["params"]["preview_to"]] if wanted["send_to"] == "preview" else []
    again = context["run_id"] if wanted["send_to"] == "recipients" else ""
    smtp, reached = connection(settings.smtp_connection), replace(settings, base_url=airflow_address(settings.base_url))
    sent = digest_delivery.mail_digest(reached, store, name, at, smtp, to=to, again=again)
    log.info("Mailed to: %s.", "; ".join(sent["mailed"]) or "nobody, all have it already")
    return made | sent


def _interval() -> Interval:
    """The run's data interval, or the hour before a run by hand."""
    after = plain(get_current_context()["dag_run"].run_after)
    return data_interval() or Interval(after - timedelta(hours=1), after)
