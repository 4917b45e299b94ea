"""The read API: JSON behind the same right as the pages. Computes nothing itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, HTTPException, Query

from kafka_sla.ledger.verdicts import FoundMisses
from kafka_sla.model.entities import Miss, MissState
from kafka_sla.sla.miss_rule import remove_miss
from kafka_sla.web.api.params import Chosen, Filter, NamedSla, RequestContext, Span
from kafka_sla.web.queries import catching_up, chains, gaps, other_metrics
from kafka_sla.web.queries.catching_up import newest_catch_ups
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.coverage import coverage_days, published_spans
from kafka_sla.web.queries.heatmap import heat_map
from kafka_sla.web.queries.one_moment import OneMoment
from kafka_sla.web.queries.overview import burn_answer, overview, with_curves
from kafka_sla.web.queries.readers import readers
from kafka_sla.web.queries.schemas import (
    BrokerPairLatency,
    BurnAnswer,
    CatchUp,
    ChainStatus,
    CoverageDay,
    Exclusion,
    HeatMap,
    MissAnswer,
    Quality,
    Readers,
    ReplicationStatus,
    SlaStatus,
    StatusLine,
    Timeline,
    Unread,
)
from kafka_sla.web.queries.series import pieces, step_ms
from kafka_sla.web.queries.timeline import answer, timeline

router = APIRouter(prefix="/api/v1", tags=["kafka_sla"], route_class=OneMoment)
MOST_STEPS, HEAT_STEPS, MOST_BROKEN, MOST_MISSES = 500, 250, 500, 500

Steps = Annotated[int, Query(ge=10, le=2_000, description="at most so many steps")]
Most = Annotated[int, Query(ge=1, le=10_000, description="at most so many")]
State = Annotated[Literal["", MissState], Query(description="only misses in this state")]


@router.get("/slas", summary="Every SLA as it stands, the worst first")
def slas(context: RequestContext, chosen: Chosen) -> list[SlaStatus]:
    return with_curves(context, overview(context, chosen.chosen(context.settings)))


@router.get("/slas/{sla:path}/timeline", summary="Latency, verdicts and rates of one SLA over time")
def sla_timeline(context: RequestContext, sla: NamedSla, span: Span, steps: Steps = MOST_STEPS) -> Timeline:
    misses = found_misses(context, Filter(sla=sla.name), span).misses
    return timeline(pieces(context, sla, span, steps), misses, context.ledger.alert_reports.incidents_of(misses))


@router.get("/slas/{sla:path}/partitions", summary="The worst latency of each partition of one SLA over time")
def sla_partitions(context: RequestContext, sla: NamedSla, span: Span, steps: Steps = HEAT_STEPS) -> HeatMap:
    return heat_map(pieces(context, sla, span, steps))


@router.get("/slas/{sla:path}/status", summary="Consumer status of one SLA over time")
def sla_status(context: RequestContext, sla: NamedSla, span: Span, steps: Steps = HEAT_STEPS) -> StatusLine:
    return other_metrics.status_lines(context, sla, span, step_ms(span, context.settings.window_ms, steps))


@router.get("/slas/{sla:path}/readers", summary="Members that read the partitions of one SLA, brokers that lead them")
def sla_readers(context: RequestContext, sla: NamedSla, span: Span) -> Readers:
    return readers(context, sla, span.end)


@router.get("/slas/{sla:path}/catch-up", summary="When the consumers of one SLA will have caught up; null: unpublished")
def sla_catch_up(context: RequestContext, sla: NamedSla) -> CatchUp | None:
    found = newest_catch_ups(context, [sla])
    return catching_up.answer(found[sla.name]) if found else None


@router.get("/slas/{sla:path}/chain", summary="What each stage of a chain adds now; null: no chain, or unpublished")
def sla_chain(context: RequestContext, sla: NamedSla) -> ChainStatus | None:
    found = chains.chains_now(context, [sla])
    return chains.answer(found[sla.name]) if found else None


@router.get("/slas/{sla:path}/burns", summary="Burns of the error budget of one SLA that touch a span")
def sla_burns(context: RequestContext, sla: NamedSla, span: Span) -> list[BurnAnswer]:
    return [burn_answer(burn) for burn in context.ledger.burns.of([sla.name], span)]


@router.get("/slas/{sla:path}", summary="One SLA as it stands")
def sla_now(context: RequestContext, sla: NamedSla) -> SlaStatus:
    return with_curves(context, overview(context, [sla]))[0]


@router.get("/misses", summary="Misses that overlap a span, open ones first, then the newest")
def misses(
    context: RequestContext, chosen: Chosen, span: Span, state: State = "", most: Most = MOST_MISSES
) -> list[MissAnswer]:
    known = {sla.name: sla for sla in context.settings.slas}
    found = found_misses(context, chosen, span, state, most).misses
    incidents = context.ledger.alert_reports.incidents_of(found)
    return [answer(known.get(miss.sla), miss, incidents.get(miss.id)) for miss in found]


@router.get("/misses/{miss_id}", summary="One miss")
def one_miss(context: RequestContext, miss_id: str) -> MissAnswer:
    found = find_miss(context, miss_id)
    sla = next((sla for sla in context.settings.slas if sla.name == found.sla), None)
    return answer(sla, found, context.ledger.alert_reports.incidents_of([found]).get(found.id))


@router.get("/exclusions", summary="Time that was excluded afterwards and overlaps a span, the newest first")
def exclusions(context: RequestContext, chosen: Chosen, span: Span) -> list[Exclusion]:
    wanted = [sla.name for sla in chosen.chosen(context.settings)]
    return [
        Exclusion(
            **{name: value for name, value in asdict(one).items() if name != "span"},
            start=one.span.start,
            end=one.span.end,
        )
        for one in context.ledger.exclusions.listed(wanted, span)
    ]


@router.get("/quality", summary="The result of each expectation for the newest load of each table")
def quality(context: RequestContext) -> list[Quality]:
    return [Quality(**row) for row in context.ledger.queries.newest_validations()]


@router.get("/quality/broken", summary="Expectations that failed for loads of a span, the newest first")
def broken(context: RequestContext, span: Span) -> list[Quality]:
    return [Quality(**row) for row in context.ledger.queries.failed_expectations(span, MOST_BROKEN)]


@router.get("/quality/quarantine", summary="Rows of a load that broke an expectation, as JSON objects")
def quarantine(context: RequestContext, load_id: str, expectation_id: str) -> list[str]:
    return context.ledger.queries.quarantined_rows(load_id, expectation_id, MOST_BROKEN)


@router.get("/coverage", summary="What was measured, reconstructed and missing per day; 100 days at most")
def coverage(context: RequestContext, span: Span) -> list[CoverageDay]:
    return coverage_days(context, span, published_spans(context, span))


@router.get("/missing", summary="Time that was not published or not judged, and the commands that measure it")
def missing_time(context: RequestContext, span: Span) -> gaps.Missing:
    return gaps.missing(context, span, published_spans(context, span))


@router.get("/brokers", summary="Fetch latency of each pair of brokers")
def brokers(context: RequestContext, span: Span) -> list[BrokerPairLatency]:
    return other_metrics.pairs(context, span)


@router.get("/replication", summary="What each replication flow has yet to copy")
def replication(context: RequestContext, span: Span) -> list[ReplicationStatus]:
    return other_metrics.flows(context, span)


@router.get("/unread", summary="Records removed unread, or about to be")
def unread(context: RequestContext, span: Span) -> list[Unread]:
    return other_metrics.unread(context, span)


def found_misses(context: Context, chosen: Filter, span: Span, state: str = "", most: int = MOST_MISSES) -> FoundMisses:
    """Open ones first, then the newest; of SLAs that have left the configuration, too, unless something is filtered by,
    or open ones are asked for: nobody judges any more whether theirs go on, so that they are in their turn only."""
    judged = [sla.name for sla in chosen.chosen(context.settings)]
    of_all = chosen == Filter() and state != "open"
    states = [state] if state else get_args(MissState)
    found = context.ledger.verdicts.newest_misses(None if of_all else judged, span, states, most, open_first=judged)
    return found._replace(misses=[_if_removed(context, miss) for miss in found.misses])


def find_miss(context: Context, miss_id: str) -> Miss:
    known = context.ledger.queries.sla_of_miss(miss_id)
    found = (
        next((miss for miss in context.ledger.verdicts.misses(known[0]) if miss.id == miss_id), None) if known else None
    )
    if found is None:
        raise HTTPException(404, f"there is no miss {miss_id}; it may have been judged anew since")
    return _if_removed(context, found)


def _if_removed(context: Context, miss: Miss) -> Miss:
    """The miss as the next run will store it if its SLA has just left the configuration."""
    return miss if any(sla.name == miss.sla for sla in context.settings.slas) else remove_miss(miss)
