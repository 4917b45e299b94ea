"""Time of SLAs that people exclude after it was judged, and take back: rows with who, when and why, never changed.
Verdicts, misses and rollups follow in the same transaction. Judges nothing."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, insert, null, select, update

from kafka_sla.errors import BadRequest
from kafka_sla.ledger.judged_windows import unpack_days, windows_between
from kafka_sla.ledger.rollups import recount
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.miss_rows import miss_of_row, row_of_miss
from kafka_sla.ledger.storage.schema import EXCLUSIONS, SLA_MISSES, SLA_WINDOWS
from kafka_sla.model.entities import EVERYTHING, Exclusion, Interval, Miss
from kafka_sla.sla.exclusion_request import ExclusionRequest, check_length
from kafka_sla.sla.miss_rule import NO_LONGER_JUDGED, exclude_miss, reopen_miss
from kafka_sla.text.formatting import moment

_AFTERWARDS = "excluded afterwards by "
_WIDEST = timedelta(days=1)
"""A window that overlaps a time begins no longer before it."""


class Exclusions:
    """The exclusions of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, wanted: ExclusionRequest) -> Exclusion:
        """Exclude this time; BadRequest where nothing was judged in it. The same request twice is one exclusion."""
        sla, span = wanted.sla.name, wanted.span
        with self._database.writing(f"sla {sla}") as connection:
            known = exclusions_in_force(connection, sla)
            new = Exclusion(secrets.token_hex(6), sla, span, wanted.reason, wanted.author, datetime.now(UTC))
            if same := next((one for one in known if replace(new, id=one.id, at=one.at) == one), None):
                return same
            unpack_days(connection, sla, _widened(span))
            _check_judged(connection, sla, span)
            _insert(connection, new, wanted.sla.cluster, None)
            _follow(connection, sla, span)
            return new

    def undo(self, exclusion_id: str, author: str, reason: str = "") -> Exclusion:
        """Take an exclusion back; BadRequest where there is none, or somebody did already."""
        check_length(reason, author)
        sla = self._find(exclusion_id).sla
        with self._database.writing(f"sla {sla}") as connection:
            found = next(one for one in _listed(connection, None, None) if one.id == exclusion_id)
            if found.undone_at:
                raise BadRequest(f"{exclusion_id} was undone by {found.undone_by} at {moment(found.undone_at)}")
            row = replace(found, id=secrets.token_hex(6), reason=reason, author=author, at=datetime.now(UTC))
            cluster = select(EXCLUSIONS.c.cluster).where(EXCLUSIONS.c.exclusion_id == exclusion_id)
            unpack_days(connection, sla, _widened(found.span))
            _insert(connection, row, connection.execute(cluster).scalar_one(), exclusion_id)
            _follow(connection, sla, found.span)
            return replace(found, undone_by=author, undone_at=row.at, undone_reason=reason)

    def listed(self, slas: Sequence[str] | None = None, interval: Interval | None = None) -> list[Exclusion]:
        """Those that overlap the interval, the newest time first; also those that were taken back."""
        with self._database.reading() as connection:
            return _listed(connection, slas, interval)

    def recount(self, sla: str, interval: Interval) -> None:
        """Let rollups that were added up while somebody excluded some of their time agree with the verdicts."""
        with self._database.writing(f"sla {sla}") as connection:
            if _ever_excluded(connection, sla, interval):
                _recount(connection, sla, interval)

    def _find(self, exclusion_id: str) -> Exclusion:
        for one in self.listed():
            if one.id == exclusion_id:
                return one
        raise BadRequest(
            f"there is no exclusion {exclusion_id}; `kafka-sla exclusions list` shows those that there are"
        )


def _check_judged(connection: Connection, sla: str, span: Interval) -> None:
    t = SLA_WINDOWS.c
    inside = select(t.sla).where(t.sla == sla, t.window_start >= span.start, t.window_start < span.end).limit(1)
    if connection.execute(inside).first() is None:
        raise BadRequest(f"the SLA {sla!r} was not judged in {span}: there is nothing to exclude; check the time")


def _insert(connection: Connection, one: Exclusion, cluster: str, undoes: str | None) -> None:
    row = {
        "exclusion_id": one.id,
        "sla": one.sla,
        "cluster": cluster,
        "start_at": one.span.start,
        "end_at": one.span.end,
        "undoes": undoes,
        "reason": one.reason,
        "author": one.author,
        "recorded_at": one.at,
    }
    connection.execute(insert(EXCLUSIONS).values(row))


def _follow(connection: Connection, sla: str, span: Interval) -> None:
    """Verdicts, misses and rollups of this time as the exclusions in force want them."""
    in_force = exclusions_in_force(connection, sla)
    _restore_windows(connection, sla, span)
    exclude_windows(connection, sla, span, in_force)
    _mark_misses(connection, sla, span, in_force)
    _recount(connection, sla, span)


def _recount(connection: Connection, sla: str, span: Interval) -> None:
    recount(connection, sla, span, partial(windows_between, connection, sla))


def _listed(connection: Connection, slas: Sequence[str] | None, interval: Interval | None) -> list[Exclusion]:
    t, time = EXCLUSIONS.c, interval or EVERYTHING
    rows = select(EXCLUSIONS).where(t.start_at < time.end, t.end_at > time.start).order_by(t.start_at.desc())
    if slas is not None:
        rows = rows.where(t.sla.in_(slas))
    found = connection.execute(rows.order_by(t.recorded_at.desc())).all()
    undone = {row.undoes: row for row in found if row.undoes}
    listed = []
    for row in found:
        if row.undoes is None:
            by = undone.get(row.exclusion_id)
            one = _exclusion(row)
            listed.append(
                one
                if by is None
                else replace(one, undone_by=by.author, undone_at=by.recorded_at, undone_reason=by.reason)
            )
    return listed


def exclusions_in_force(connection: Connection, sla: str) -> list[Exclusion]:
    """Of one SLA, in the order in which they were recorded: the first that covers a window gives its reason."""
    undone = EXCLUSIONS.alias("undone")
    taken_back = exists().where(undone.c.undoes == EXCLUSIONS.c.exclusion_id)
    rows = select(EXCLUSIONS).where(EXCLUSIONS.c.sla == sla, EXCLUSIONS.c.undoes.is_(None), ~taken_back)
    rows = rows.order_by(EXCLUSIONS.c.recorded_at, EXCLUSIONS.c.exclusion_id)
    return [_exclusion(row) for row in connection.execute(rows)]


def _exclusion(row: Row[Any]) -> Exclusion:
    return Exclusion(
        row.exclusion_id, row.sla, Interval(row.start_at, row.end_at), row.reason, row.author, row.recorded_at
    )


def _ever_excluded(connection: Connection, sla: str, interval: Interval) -> bool:
    """Was any of this time excluded, or is it still?"""
    t = EXCLUSIONS.c
    rows = select(t.exclusion_id).where(t.sla == sla, t.start_at < interval.end, t.end_at > interval.start)
    return connection.execute(rows.limit(1)).first() is not None


def exclude_windows(connection: Connection, sla: str, within: Interval, excluded: Sequence[Exclusion]) -> None:
    """Exclude the windows of a time that these exclusions touch, and keep how they were judged."""
    t = SLA_WINDOWS.c
    for one in excluded:
        if one.span.overlaps(within):
            still = and_(*_overlapping(sla, within), *_overlapping(sla, one.span), t.judged_verdict.is_(None))
            connection.execute(
                update(SLA_WINDOWS)
                .where(still)
                .values(judged_verdict=t.verdict, judged_reason=t.reason, verdict="excluded", reason=_words(one))
            )


def _restore_windows(connection: Connection, sla: str, within: Interval) -> None:
    """The windows of a time as they were judged."""
    t = SLA_WINDOWS.c
    excluded = and_(*_overlapping(sla, within), t.judged_verdict.is_not(None))
    connection.execute(
        update(SLA_WINDOWS)
        .where(excluded)
        .values(verdict=t.judged_verdict, reason=t.judged_reason, judged_verdict=null(), judged_reason=null())
    )


def _mark_misses(connection: Connection, sla: str, within: Interval, excluded: Sequence[Exclusion]) -> None:
    """Let the misses that overlap a time follow the exclusions in force."""
    t = SLA_MISSES.c
    mine = and_(t.sla == sla, t.start_at < within.end, t.bad_until > within.start)
    for row in connection.execute(select(SLA_MISSES).where(mine)).all():
        miss = apply_exclusions(miss_of_row(row), excluded)
        connection.execute(update(SLA_MISSES).where(t.miss_id == miss.id).values(row_of_miss(miss)))


def apply_exclusions(miss: Miss, excluded: Sequence[Exclusion]) -> Miss:
    """The miss with who excluded all of it and why. One that is still bad in excluded time is no longer judged."""
    if miss.end_reason.startswith(f"{NO_LONGER_JUDGED}{_AFTERWARDS}"):
        miss = reopen_miss(miss)
    latest = next((one for one in excluded if one.span.start < miss.bad_until <= one.span.end), None)
    if miss.state == "open" and latest:
        miss = exclude_miss(miss, _words(latest))
    return replace(miss, exclusion=_covering(miss.start, miss.end, excluded))


def _words(one: Exclusion) -> str:
    """Who and why, as the reason of a window."""
    return f"{_AFTERWARDS}{one.author}: {one.reason}"


def _widened(span: Interval) -> Interval:
    """Windows that overlap the span start in here."""
    return Interval(span.start - _WIDEST, span.end)


def _overlapping(sla: str, time: Interval) -> tuple[Any, ...]:
    t = SLA_WINDOWS.c
    near = t.window_start >= time.start - _WIDEST
    return (t.sla == sla, near, t.window_start < time.end, t.window_end > time.start)


def _covering(start: datetime, end: datetime | None, excluded: Sequence[Exclusion]) -> str | None:
    if end is None:
        return None
    reached, used = start, list[str]()
    for one in sorted(excluded, key=lambda one: one.span):
        if one.span.start <= reached < min(one.span.end, end):
            reached = one.span.end
            used.append(_words(one))
    return "; ".join(dict.fromkeys(used)) if reached >= end else None
