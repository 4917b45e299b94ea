"""Burns of error budgets, replaced by interval like verdicts. Decides nothing about rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import SLA_BURNS
from kafka_sla.model.entities import Interval
from kafka_sla.sla.burn import Burn

_BURN = TypeAdapter(Burn)


class Burns:
    """The burns of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace(self, slas: Sequence[str], interval: Interval, judge: Callable[[str, list[Burn]], list[Burn]]) -> None:
        """Put what `judge` makes of the burns that were open when the interval began in the place of all that began or
        ended in it; one that is still open at its end keeps a later end. Most SLAs have none and are not written."""
        with self._database.reading() as connection:
            known = _touching(connection, slas, interval)
        changed = [sla for sla in slas if _judged(known[sla], interval, partial(judge, sla)) != known[sla]]
        if changed:
            self._replace(changed, interval, judge)

    def _replace(self, slas: Sequence[str], interval: Interval, judge: Callable[[str, list[Burn]], list[Burn]]) -> None:
        """In one transaction: what burns by one cause changes at once. Another run may have changed it meanwhile."""
        with self._database.writing("burns") as connection:
            there = _touching(connection, slas, interval)
            found = {sla: _judged(there[sla], interval, partial(judge, sla)) for sla in slas}
            replaced = [burn.id for burns in there.values() for burn in burns]
            connection.execute(delete(SLA_BURNS).where(SLA_BURNS.c.burn_id.in_(replaced)))
            if rows := [_row(burn) for burns in found.values() for burn in burns]:
                connection.execute(insert(SLA_BURNS), rows)

    def end(self, burns: Sequence[Burn], at: datetime) -> None:
        """Those of these burns that are open are over."""
        if not burns:
            return
        with self._database.writing("burns") as connection:
            for burn in burns:
                row = _row(replace(burn, end=at))
                still_open = SLA_BURNS.c.burn_id == burn.id, SLA_BURNS.c.end_at.is_(None)
                connection.execute(update(SLA_BURNS).where(*still_open).values(row))

    def of(self, slas: Sequence[str], interval: Interval | None = None) -> list[Burn]:
        """Burns in order of their start: those that are open, or that touch the interval."""
        t = SLA_BURNS.c
        rows = select(SLA_BURNS).where(t.sla.in_(slas)).order_by(t.start_at, t.sla)
        if interval is None:
            rows = rows.where(t.end_at.is_(None))
        else:
            ended = or_(t.end_at.is_(None), t.end_at >= interval.start)
            rows = rows.where(t.start_at <= interval.end, ended)
        return [_burn(row) for row in self._database.rows(rows)]


def _touching(connection: Connection, slas: Sequence[str], interval: Interval) -> dict[str, list[Burn]]:
    t = SLA_BURNS.c
    found: dict[str, list[Burn]] = {sla: [] for sla in slas}
    rows = select(SLA_BURNS).where(t.sla.in_(slas), t.start_at <= interval.end)
    rows = rows.where(or_(t.end_at.is_(None), t.end_at > interval.start)).order_by(t.start_at)
    for row in connection.execute(rows):
        found[row.sla].append(_burn(row))
    return found


def _judged(there: Sequence[Burn], interval: Interval, judge: Callable[[list[Burn]], list[Burn]]) -> list[Burn]:
    found = judge([burn for burn in there if burn.start <= interval.start])
    later = {burn.severity: burn.end for burn in there if burn.end and burn.end > interval.end}
    kept = [burn if burn.end else replace(burn, end=later.get(burn.severity)) for burn in found]
    return sorted(kept, key=lambda burn: burn.start)


def _row(burn: Burn) -> dict[str, Any]:
    return {
        "burn_id": burn.id,
        "sla": burn.sla,
        "severity": burn.severity,
        "start_at": burn.start,
        "end_at": burn.end,
        "burn_rate": burn.burn_rate,
        "burn": _BURN.dump_json(burn).decode(),
    }


def _burn(row: Row[Any]) -> Burn:
    return _BURN.validate_json(row.burn)
