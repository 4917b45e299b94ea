"""What is published of brokers, replication or unread records in a span, added up: from the sums of its loads, and from
rows where a load has none or only a part of a slot is shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.lake.duckdb_reader import shown
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.load_sums import SUMMED, WIDTHS, sums_of_rows, unpacked
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.load_sums import Piece
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import Table
from kafka_sla.sla.rollups import in_widths
from kafka_sla.sql import database


def totals(
    lake: Lake, ledger: Ledger, table: Table, span: Interval, query: str, most_rows: int
) -> tuple[list[dict[str, Any]], datetime]:
    """The query over the view `totals`, the sums of the span by key, and from when on they are: rows are read of the
    newest time only where there are more than `most_rows`."""
    pieces, rest = _divided(ledger.publications.slices(None, span))
    kept = ledger.load_sums.read(table.name, pieces)
    rest += [Slice(cluster, p.span, p.load_id) for p in pieces if p not in kept for cluster in pieces[p]]
    rest = _joined(rest)
    read = lake.newest_slices(table, rest, most_rows)
    start = min(s.interval.start for s in read) if read != rest else span.start
    sums = list(_unpacked({p: packed for p, packed in kept.items() if p.start >= start}, pieces))
    if files := lake.published_files(table, read):
        sums.append(sums_of_rows(table, files, read, shown(table.time)))
    if not sums:
        return [], start
    with database(sums=pa.concat_tables(sums)) as db:
        db.run(f"CREATE TEMP VIEW totals AS {SUMMED[table.name].of_spans('sums')}")
        return db.rows(query), start


def _divided(published: Sequence[Slice]) -> tuple[dict[Piece, list[str]], list[Slice]]:
    """The widest pieces that these slices show whole, with the clusters that they show of them; and what is left."""
    pieces: dict[Piece, list[str]] = defaultdict(list)
    rest = []
    for one in published:
        for part, width_ms in in_widths(one.interval, WIDTHS):
            if not width_ms:
                rest.append(one._replace(interval=part))
                continue
            for span in part.windows(width_ms):
                pieces[Piece(one.load_id, width_ms, span.start)].append(one.cluster)
    return pieces, rest


def _joined(slices: Sequence[Slice]) -> list[Slice]:
    """Slices of a load that follow each other as one."""
    found: list[Slice] = []
    for one in sorted(slices):
        last = found[-1] if found else None
        if last and (last.cluster, last.load_id, last.interval.end) == (one.cluster, one.load_id, one.interval.start):
            found[-1] = one._replace(interval=Interval(last.interval.start, one.interval.end))
        else:
            found.append(one)
    return found


def _unpacked(kept: Mapping[Piece, bytes], pieces: Mapping[Piece, Sequence[str]]) -> Iterator[pa.Table]:
    for piece, packed in kept.items():
        if (sums := unpacked(packed)) is not None:
            yield sums.filter(pc.is_in(sums["cluster"], pa.array(pieces[piece], pa.string())))
