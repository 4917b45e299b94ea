"""`kafka-sla exclusions`: exclude time of an SLA afterwards, list what was excluded, take it back. Changes no verdict
itself."""

from __future__ import annotations

import argparse
import getpass
import os
from dataclasses import asdict
from datetime import UTC, datetime

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.requested import interval_of
from kafka_sla.cli.console.results import aligned, show
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Exclusion
from kafka_sla.sla.exclusion_request import exclusion_request
from kafka_sla.sla.wording import judged_next
from kafka_sla.text.formatting import moment


def command(place: Workplace, asked: argparse.Namespace) -> int:
    """Run what was asked for."""
    return {"add": _add, "list": _list, "undo": _undo}[asked.what](place, asked)


def _add(place: Workplace, asked: argparse.Namespace) -> int:
    settings, who = place.settings, _author(asked)
    wanted = exclusion_request(
        settings.sla(asked.sla),
        (asked.start, asked.end),
        asked.reason,
        who,
        now=datetime.now(UTC),
        window_ms=settings.window_ms,
    )
    ledger = Ledger(place.known_store)
    added = ledger.exclusions.add(wanted)
    text = f"{added.id}: {added.sla}: {added.span} is excluded: {added.reason}"
    show(asked, _values(added), lambda: _with_burns(ledger, added, text))
    return 0


def _undo(place: Workplace, asked: argparse.Namespace) -> int:
    ledger = Ledger(place.known_store)
    undone = ledger.exclusions.undo(asked.id, _author(asked), asked.reason)
    text = f"{undone.id}: {undone.sla}: {undone.span} counts again"
    show(asked, _values(undone), lambda: _with_burns(ledger, undone, text))
    return 0


def _author(asked: argparse.Namespace) -> str:
    """Who is named, else the user of the shell, whom a container may know by number only."""
    try:
        return asked.author or getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _with_burns(ledger: Ledger, one: Exclusion, text: str) -> str:
    """The answer, and what it does not change at once."""
    waiting = judged_next(ledger.burns.of([one.sla]))
    return f"{text}\n{waiting}" if waiting else text


def _list(place: Workplace, asked: argparse.Namespace) -> int:
    slas = [place.settings.sla(asked.sla).name] if asked.sla else None
    found = Ledger(place.known_store).exclusions.listed(slas, interval_of(asked))
    header = ("id", "SLA", "from", "to", "by", "at", "state", "reason")
    rows = [
        (
            one.id,
            one.sla,
            moment(one.span.start),
            moment(one.span.end),
            one.author,
            moment(one.at),
            _state(one),
            one.reason,
        )
        for one in found
    ]
    show(asked, [_values(one) for one in found], lambda: aligned(header, rows) if rows else "nothing is excluded")
    return 0


def _state(one: Exclusion) -> str:
    if not one.undone_at:
        return "excluded"
    why = f": {one.undone_reason}" if one.undone_reason else ""
    return f"undone by {one.undone_by} at {moment(one.undone_at)}{why}"


def _values(one: Exclusion) -> dict[str, object]:
    values = asdict(one)
    del values["span"]
    return values | {"start_at": one.span.start, "end_at": one.span.end}
