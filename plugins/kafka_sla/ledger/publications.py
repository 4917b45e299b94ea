"""Which load is visible when: publications, one row each, the only switch a load has."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from kafka_sla.ledger.ingestions import landings_after
from kafka_sla.ledger.storage.database import delete_each
from kafka_sla.ledger.storage.schema import PUBLICATIONS, RETIRED_LOADS, SLA_RULES
from kafka_sla.ledger.storage.store_identity import StoreDatabase
from kafka_sla.model.entities import EVERYTHING, Interval, floor_time, hull


class Slice(NamedTuple):
    """For this cluster and time, the rows of this load are the published ones."""

    cluster: str
    interval: Interval
    load_id: str


def clipped(slices: Iterable[Slice], interval: Interval) -> list[Slice]:
    """What of these slices lies in the interval."""
    return [one._replace(interval=part) for one in slices if (part := one.interval.within(interval))]


@dataclass(frozen=True, slots=True)
class Publication:
    """One load made visible for one cluster; the highest `seq` that covers an instant wins it."""

    seq: int
    cluster: str
    interval: Interval
    load_id: str
    facts_seq: int
    """Newest landing of facts that the load had seen."""
    published_at: datetime


@dataclass(frozen=True, slots=True)
class LoadExtent:
    """Over which interval a load was made visible, and for which clusters something of it is; `retired`: for others
    nothing is any more."""

    clusters: frozenset[str]
    interval: Interval
    retired: bool

    def is_all_of(self, shown: Iterable[Slice]) -> bool:
        """Do these slices show every row of the load?"""
        return not self.retired and {(s.cluster, s.interval) for s in shown} == {
            (cluster, self.interval) for cluster in self.clusters
        }


def by_load(slices: Iterable[Slice]) -> dict[str, list[Slice]]:
    """Where each load is shown."""
    found: dict[str, list[Slice]] = defaultdict(list)
    for one in slices:
        found[one.load_id].append(one)
    return found


def visible(
    publications: Iterable[Publication], interval: Interval | None = None
) -> list[tuple[Interval, Publication]]:
    """Who is visible when, in time order: a sweep over the bounds of the publications of one cluster."""
    clipped = [(span, p) for p in publications if (span := p.interval.within(interval or EVERYTHING))]
    bounds = sorted({at for span, _ in clipped for at in (span.start, span.end)})
    waiting = sorted(clipped, key=lambda c: c[0].start, reverse=True)
    active: list[tuple[int, datetime, Publication]] = []
    found: list[tuple[Interval, Publication]] = []
    for start, end in itertools.pairwise(bounds):
        while waiting and waiting[-1][0].start <= start:
            span, publication = waiting.pop()
            heapq.heappush(active, (-publication.seq, span.end, publication))
        while active and active[0][1] <= start:
            heapq.heappop(active)
        if active:
            _extend(found, Interval(start, end), active[0][2])
    return found


def _extend(found: list[tuple[Interval, Publication]], span: Interval, publication: Publication) -> None:
    """Append a visible span, or lengthen the last one when it is its continuation."""
    if found and found[-1][1] is publication and found[-1][0].end == span.start:
        found[-1] = (Interval(found[-1][0].start, span.end), publication)
    else:
        found.append((span, publication))


class Publications:
    """The publications of the ledger."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    def publish(
        self, clusters: Sequence[str], interval: Interval, load_id: str, facts_seq: int | Mapping[str, int]
    ) -> None:
        """Make a load visible for these clusters and this interval, in one commit. Doing it again changes nothing,
        also when a newer load has replaced it since."""
        now = datetime.now(UTC)
        with self._database.writing("publications") as connection:
            for cluster in clusters:
                if _was_published(connection, load_id, cluster):
                    continue
                seq = facts_seq if isinstance(facts_seq, int) else facts_seq[cluster]
                _show(connection, cluster, interval, load_id, seq, now)
        self._database.advance()

    def merge(self, slices: Sequence[Slice], load_id: str) -> bool:
        """Show a load that holds the rows of these slices, which follow each other in each cluster, in their place;
        False when anything else is published there by now. It is trusted no further than they were."""
        span = hull(s.interval for s in slices)
        clusters = sorted({s.cluster for s in slices})
        with self._database.writing("publications") as connection:
            shown = {c: visible(rows, span) for c, rows in _overlapping(connection, clusters, span).items()}
            if {Slice(c, part, p.load_id) for c, parts in shown.items() for part, p in parts} != set(slices):
                return False
            for cluster, parts in shown.items():
                rules = select(SLA_RULES.c.since_seq).where(SLA_RULES.c.cluster == cluster)
                adopted = [(seq, EVERYTHING.start) for seq in connection.execute(rules).scalars()]
                seen = _seen_by_all(parts, [*landings_after(connection, cluster, 0), *adopted])
                _show(connection, cluster, span, load_id, seen, max(p.published_at for _, p in parts))
        self._database.advance()
        return True

    def slices(self, clusters: Sequence[str] | None, interval: Interval) -> list[Slice]:
        """The visible slices of the interval, by cluster and time; None: of all clusters."""
        with self._database.reading() as connection:
            found = _overlapping(connection, clusters, interval)
        return [
            Slice(cluster, span, publication.load_id)
            for cluster, rows in sorted(found.items())
            for span, publication in visible(rows, interval)
        ]

    def incomplete(self, clusters: Sequence[str], interval: Interval) -> list[str]:
        """The clusters of which not all of the interval is published."""
        covered = dict.fromkeys(clusters, timedelta())
        for part in self.slices(clusters, interval):
            covered[part.cluster] += part.interval.end - part.interval.start
        return [name for name, time in covered.items() if time < interval.end - interval.start]

    def latest(self, cluster: str, at: datetime) -> Publication | None:
        """The newest publication that ends at or before `at`."""
        rows = select(PUBLICATIONS).where(PUBLICATIONS.c.cluster == cluster, PUBLICATIONS.c.interval_end <= at)
        newest = rows.order_by(PUBLICATIONS.c.interval_end.desc(), PUBLICATIONS.c.seq.desc()).limit(1)
        return next(_rows(self._database.rows(newest)), None)

    def carry(self, cluster: str, before: datetime, window_ms: int = 60_000) -> tuple[datetime, int] | None:
        """The newest window end at or before `before` whose published rows may be carried over, and the `facts_seq` of
        their publication. Rows are trusted up to the start of the oldest facts that landed after they were measured."""
        for look_back in (timedelta(hours=2), timedelta(days=2), None):
            start = before - look_back if look_back else EVERYTHING.start
            with self._database.reading() as connection:
                found = _overlapping(connection, [cluster], Interval(start, before)).get(cluster, [])
                landings = landings_after(connection, cluster, min((p.facts_seq for p in found), default=0))
            for span, publication in reversed(visible(found, Interval(start, before))):
                trusted = min((at for seq, at in landings if seq > publication.facts_seq), default=before)
                end = floor_time(min(span.end, trusted), window_ms)
                if end > span.start:
                    return end, publication.facts_seq
        return None

    def start_of(self, load_ids: Sequence[str]) -> datetime | None:
        """Where the first interval of these loads starts; None unless all of them are published."""
        rows = select(PUBLICATIONS.c.load_id, PUBLICATIONS.c.interval_start).where(PUBLICATIONS.c.load_id.in_(load_ids))
        starts = {row.load_id: row.interval_start for row in self._database.rows(rows)}
        return min(starts.values()) if starts and len(starts) == len(set(load_ids)) else None

    def withdraw(self, load_ids: Collection[str]) -> None:
        """Show these loads no more: what an earlier one published of their time was forgotten long ago, so that nothing
        is published there until it is measured again."""
        now, ours = datetime.now(UTC), PUBLICATIONS.c.load_id.in_(load_ids)
        with self._database.writing("publications") as connection:
            p = PUBLICATIONS.c
            columns = (p.load_id, p.cluster, p.interval_start, p.interval_end)
            found = connection.execute(select(*columns).where(ours)).all()
            if found:
                connection.execute(delete(PUBLICATIONS).where(ours))
                connection.execute(insert(RETIRED_LOADS), [{**row._mapping, "retired_at": now} for row in found])

    def extents(self, interval: Interval) -> dict[str, LoadExtent]:
        """The loads that were ever published for some of the interval, as far as versions before knew when."""
        overlaps = (RETIRED_LOADS.c.interval_start < interval.end, RETIRED_LOADS.c.interval_end > interval.start)
        with self._database.reading() as connection:
            found = _overlapping(connection, None, interval)
            retired = connection.execute(select(RETIRED_LOADS).where(*overlaps)).all()
        extents = {
            r.load_id: LoadExtent(frozenset(), Interval(r.interval_start, r.interval_end), True) for r in retired
        }
        for publication in itertools.chain.from_iterable(found.values()):
            known = extents.get(publication.load_id, LoadExtent(frozenset(), publication.interval, False))
            extents[publication.load_id] = replace(known, clusters=known.clusters | {publication.cluster})
        return extents

    def retired_loads(self, before: datetime) -> list[str]:
        """Loads of which nothing has been visible since `before`."""
        alive = select(PUBLICATIONS.c.load_id)
        late = select(RETIRED_LOADS.c.load_id).where(RETIRED_LOADS.c.retired_at >= before)
        gone = (
            select(RETIRED_LOADS.c.load_id)
            .distinct()
            .where(RETIRED_LOADS.c.load_id.not_in(alive), RETIRED_LOADS.c.load_id.not_in(late))
        )
        with self._database.reading() as connection:
            return sorted(connection.execute(gone).scalars())

    def forget_retired(self, before: datetime, but: Collection[str]) -> list[str]:
        """Forget loads of which nothing has been visible since `before`, except these; answers which."""
        gone = sorted(set(self.retired_loads(before)) - set(but))
        with self._database.writing("publications") as connection:
            delete_each(connection, delete(RETIRED_LOADS), RETIRED_LOADS.c.load_id, gone)
        return gone

    def known_loads(self, load_ids: Sequence[str]) -> set[str]:
        """Those of these loads that were ever published."""
        with self._database.reading() as connection:
            return _known_loads(connection, load_ids)


def _was_published(connection: Connection, load_id: str, cluster: str) -> bool:
    for table in (PUBLICATIONS, RETIRED_LOADS):
        one = select(table.c.load_id).where(table.c.load_id == load_id, table.c.cluster == cluster)
        if connection.execute(one).first():
            return True
    return False


def _known_loads(connection: Connection, load_ids: Sequence[str]) -> set[str]:
    """Of all, as there may be more of these than a statement can name."""
    known = (connection.execute(select(table.c.load_id)).scalars() for table in (PUBLICATIONS, RETIRED_LOADS))
    return set(load_ids).intersection(itertools.chain.from_iterable(known))


def _seen_by_all(parts: Sequence[tuple[Interval, Publication]], landings: Sequence[tuple[int, datetime]]) -> int:
    """The newest landing of facts, or of an SLA's rules, that one load instead of these may claim to have seen: no
    landing up to it changed what was measured before it."""
    newest = max(publication.facts_seq for _, publication in parts)
    unseen = (
        seq
        for seq, since in landings
        for part, publication in parts
        if publication.facts_seq < seq <= newest and since < part.end
    )
    return min(unseen, default=newest + 1) - 1


def _show(
    connection: Connection, cluster: str, interval: Interval, load_id: str, facts_seq: int, published_at: datetime
) -> None:
    """Make the load the newest one there, and retire those that it hides."""
    connection.execute(
        insert(PUBLICATIONS).values(
            cluster=cluster,
            interval_start=interval.start,
            interval_end=interval.end,
            load_id=load_id,
            facts_seq=facts_seq,
            published_at=published_at,
        )
    )
    _retire_hidden(connection, cluster, interval, datetime.now(UTC))


def _retire_hidden(connection: Connection, cluster: str, interval: Interval, now: datetime) -> None:
    """Delete publications of which newer ones leave nothing visible; remember when, for those still reading them."""
    touched = _overlapping(connection, [cluster], interval)[cluster]
    around = _overlapping(connection, [cluster], hull(p.interval for p in touched))[cluster]
    seen = {publication.seq for _, publication in visible(around)}
    hidden = [p for p in touched if p.seq not in seen]
    if hidden:
        connection.execute(delete(PUBLICATIONS).where(PUBLICATIONS.c.seq.in_([p.seq for p in hidden])))
        rows = [
            {
                "load_id": p.load_id,
                "cluster": cluster,
                "retired_at": now,
                "interval_start": p.interval.start,
                "interval_end": p.interval.end,
            }
            for p in hidden
        ]
        connection.execute(insert(RETIRED_LOADS), rows)


def _overlapping(
    connection: Connection, clusters: Sequence[str] | None, interval: Interval
) -> dict[str, list[Publication]]:
    rows = select(PUBLICATIONS).where(
        PUBLICATIONS.c.interval_start < interval.end, PUBLICATIONS.c.interval_end > interval.start
    )
    if clusters is not None:
        rows = rows.where(PUBLICATIONS.c.cluster.in_(clusters))
    found: dict[str, list[Publication]] = defaultdict(list)
    for publication in _rows(connection.execute(rows)):
        found[publication.cluster].append(publication)
    return found


def _rows(result: Iterable[Sequence[object]]) -> Iterator[Publication]:
    for row in result:
        seq, cluster, start, end, load_id, facts_seq, published_at = row
        yield Publication(seq, cluster, Interval(start, end), load_id, facts_seq, published_at)  # type: ignore[arg-type]
