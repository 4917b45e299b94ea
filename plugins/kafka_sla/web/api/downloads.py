"""Published rows as files: CSV, JSON and Parquet, as `kafka-sla export` writes them."""

from __future__ import annotations

import codecs
import io
from datetime import UTC, datetime, timedelta
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, HTTPException, Query, Response

from kafka_sla.lake.duckdb_reader import opened
from kafka_sla.lake.files.export_files import Format, write_stream
from kafka_sla.model.entities import Interval, Sla, floor_time
from kafka_sla.model.tables import SLA_WINDOWS, TABLES, Table
from kafka_sla.sla.rollups import DAY_MS
from kafka_sla.web.api.params import NamedSla, RequestContext, Span
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.one_moment import OneMoment
from kafka_sla.web.queries.series import pieces
from kafka_sla.web.queries.timeline import timeline

router = APIRouter(prefix="/api/v1", tags=["downloads"], route_class=OneMoment)
As = Annotated[Format, Query(alias="format", description="csv, json or parquet")]
Bom = Annotated[bool, Query(description="csv begins with a byte order mark, by which Excel knows UTF-8")]
Cluster = Annotated[str, Query(description="one cluster; empty: all")]
KINDS = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
MOST_ROWS = 1_000_000
"""What one request may ask for: the web server holds the rows in memory."""
_POINTS = 2_000
_DAY = timedelta(days=1)


@router.get("/tables/{table}", summary="The rows of any table, published ones only")
def rows_of_table(
    context: RequestContext, table: str, span: Span, cluster: Cluster = "", form: As = "csv", bom: Bom = False
) -> Response:
    if table not in TABLES:
        raise HTTPException(404, f"there is no table {table}; there are {', '.join(sorted(TABLES))}")
    clusters = [cluster] if cluster else None
    _check_size(context, TABLES[table], span, clusters)
    return _file(context.lake.published(table, span, clusters), form, table, bom)


@router.get("/slas/{sla:path}/windows", summary="The verdicts on one SLA, window by window")
def windows_of_sla(context: RequestContext, sla: NamedSla, span: Span, form: As = "csv", bom: Bom = False) -> Response:
    if (found := _judged_windows(context, sla, span)) > MOST_ROWS:
        raise _too_many(found)
    rows = pa.concat_tables(_windows(context, sla, piece) for piece in span.pieces(_DAY))
    return _file(rows, form, "sla_windows", bom)


def _judged_windows(context: Context, sla: Sla, span: Interval) -> float:
    """How many windows of the SLA the days of the span have, by what is summed up of each."""
    days = Interval(floor_time(span.start, DAY_MS), span.end)
    judged = context.ledger.rollups.judged_by_day([sla.name], days)[sla.name]
    return sum(judged.values(), timedelta()) / timedelta(milliseconds=context.settings.window_ms)


def _windows(context: Context, sla: Sla, piece: Interval) -> pa.Table:
    """Read with those of the other SLAs of the cluster: therefore not of all the time at once."""
    rows = context.lake.published(SLA_WINDOWS.name, piece, [sla.cluster])
    return rows.filter(pc.equal(rows["sla"], sla.name))


@router.get("/slas/{sla:path}/timeline.csv", summary="What the page of one SLA draws")
def timeline_of_sla(context: RequestContext, sla: NamedSla, span: Span, bom: Bom = False) -> Response:
    drawn = timeline(pieces(context, sla, span, _POINTS))
    columns = drawn.model_dump(exclude={"sla", "start", "end", "step_ms", "resolution", "objective", "misses", "at_ms"})
    starts = [datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at) for at in drawn.at_ms]
    at = pa.array(starts, pa.timestamp("us", "UTC"))
    return _file(pa.table({"start": at, **columns}), "csv", "timeline", bom)


def _file(rows: pa.Table, form: Format, name: str, bom: bool) -> Response:
    stream = io.BytesIO()
    if bom and form == "csv":
        stream.write(codecs.BOM_UTF8)
    write_stream(rows, form, stream)
    attached = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return Response(stream.getvalue(), media_type=KINDS[form], headers=attached)


def _check_size(context: Context, table: Table, span: Interval, clusters: list[str] | None) -> None:
    """Count before reading; rows of the small SQL tables are not counted."""
    if table.kind == "ledger":
        return
    slices = context.ledger.publications.slices(clusters, span) if table.kind == "metric" else []
    metric = table.kind == "metric"
    files = (
        context.lake.published_files(table, slices) if metric else context.lake.fact_files(table, span.start, span.end)
    )
    if not files:
        return
    counted = f'SELECT count(*) AS rows FROM files WHERE "{table.time}" >= $start AND "{table.time}" < $end'
    with opened(table, files, slices) as db:
        (found,) = db.rows(counted, start=span.start, end=span.end)
    if found["rows"] > MOST_ROWS:
        raise _too_many(found["rows"])


def _too_many(found: float) -> HTTPException:
    return HTTPException(
        413, f"{found:,.0f} rows, which is more than {MOST_ROWS:,} rows; ask for less time, or use `kafka-sla export`"
    )
