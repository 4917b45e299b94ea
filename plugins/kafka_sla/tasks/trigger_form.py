"""The trigger form and the runbook that the Airflow UI shows. Ranges are checked by the plan, not here."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from kafka_sla.tasks.dag_config import Menu

WHEN = "Which time"
WHAT = "Which SLAs"
HOW = "How"
_INSTANT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$"
"""Airflow itself checks the format date-time only where an optional package is installed."""


def form(menu: Menu, *, sends_mail: bool) -> dict[str, Param]:
    """The form of a manual run; `sends_mail`: this DAG sends e-mails, so the form asks whether to."""
    fields = {
        "from": _instant(
            "From",
            "Start of the time to measure, in the time zone that these pages are set to (your user menu). Leave both"
            " empty for the last complete interval.",
        ),
        "to": _instant("To", "End of the time to measure, exclusive, in the same time zone; not in the future."),
        "facts": Param(
            "ask",
            type="string",
            enum=["ask", "stored"],
            values_display={"ask": "Ask Kafka, and use what is stored", "stored": "Only what is stored"},
            title="Facts",
            description="Only what is stored: nothing is read from Kafka. For an SLA that is new, or was changed.",
            section=HOW,
        ),
        "clusters": _names("Clusters", "Empty: all clusters.", menu.clusters),
        "slas": _names("SLAs", "Empty: all SLAs of the chosen clusters.", menu.slas),
    }
    return (
        fields
        | ({"notify": _notify()} if sends_mail else {})
        | {
            "driver_memory": Param(
                "1g",
                type="string",
                pattern="^[1-9][0-9]*[mg]$",
                title="Spark driver memory",
                description="As Spark writes it, such as 800m or 4g. Long ranges of many partitions need more.",
                section=HOW,
            )
        }
    )


def digest_form(menu: Menu) -> dict[str, Param]:
    """The form of a digest sent by hand."""
    names: dict[str, Any] = {"enum": [None, *menu.digests]} if menu.digests else {}
    return {
        "digest": Param(
            None,
            type=["null", "string"],
            title="Digest",
            section=WHAT,
            **names,
            description="Empty: those that fell due in the run's interval, as a scheduled run does.",
        ),
        "day": Param(
            None,
            type=["null", "string"],
            format="date",
            pattern=r"^\d{4}-\d{2}-\d{2}$",
            title="Day",
            section=WHEN,
            description="Any day of the period to report, by the digest's clock. Empty: the last whole period.",
        ),
        "send_to": Param(
            "preview",
            type="string",
            enum=["preview", "recipients", "nobody"],
            title="Send to",
            section=HOW,
            values_display={
                "preview": "Only to the address below",
                "recipients": "Everybody who gets it, also when they have it already",
                "nobody": "Nobody: only write the page into the archive",
            },
            description="What a digest sent by hand does. It concerns no scheduled run.",
        ),
        "preview_to": Param(
            None,
            type=["null", "string"],
            format="email",
            pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$",
            title="Preview to",
            section=HOW,
            description="An e-mail address; needed for a preview.",
        ),
    }


def runbook(text: str | None, menu: Menu) -> str:
    """The DAG's documentation, headed by what is wrong with the configuration, if anything is."""
    if menu.problem is None:
        return text or ""
    warning = "## The configuration cannot be used\n\nEvery run fails until this is put right:"
    return f"{warning}\n\n```\n{menu.problem}\n```\n\n{text}"


def _instant(title: str, description: str) -> Param:
    return Param(
        None,
        type=["null", "string"],
        format="date-time",
        pattern=_INSTANT,
        title=title,
        description=description,
        section=WHEN,
    )


def _names(title: str, description: str, names: tuple[str, ...]) -> Param:
    items = {"type": "string"} | ({"enum": list(names)} if names else {})
    return Param(
        [],
        type=["null", "array"],  # without null, Airflow's form stars it as required
        items=items,
        examples=list(names),
        uniqueItems=True,
        title=title,
        description=description,
        section=WHAT,
    )


def _notify() -> Param:
    return Param(
        "auto",
        type="string",
        enum=["auto", "always", "never"],
        values_display={
            "auto": "As a scheduled run: only for the interval that just ended",
            "always": "Yes, also for a time in the past",
            "never": "No",
        },
        title="Send mails",
        description="A miss is e-mailed once, however often a run is repeated. A backfill sends no e-mail.",
        section=HOW,
    )
