"""What an SLA requires and how a miss broke it, in the words of every page, mail, report and message. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from kafka_sla.model.entities import BurnPair, Miss, ObjectiveOf, Sla, SlaWindow
from kafka_sla.sla.burn import Burn
from kafka_sla.text.formatting import burn as rate_text
from kafka_sla.text.formatting import latency, moment, plural, rate, share, span
from kafka_sla.text.periods import any_period

if TYPE_CHECKING:  # these import DuckDB, which must not be loaded while Airflow parses DAG files
    from kafka_sla.sla.catch_up import CatchUp
    from kafka_sla.sla.chains import ChainState


class Limited(Protocol):
    """Whatever was judged by a threshold, ms."""

    @property
    def max_latency_ms(self) -> int: ...

    @property
    def min_time_to_expiry_ms(self) -> int | None: ...


END_REASONS: Mapping[str, str] = {
    "excluded": "its time is excluded",
    "removed": "late facts or an edited configuration took it away",
    "no_longer_alerted": "the configuration no longer alerts here",
    "merged": "it is part of another one by now",
}
"""Why an alert ended that did not recover, by `kafka_sla.sla.alerts.EndReason`."""


def end_reason(reason: str) -> str:
    """`its time is excluded`; empty if it recovered, or is open."""
    return END_REASONS.get(reason, "")


def limit(of: Limited) -> str:
    """The threshold, for tables and captions: `30 s`, `30 s, 2 d before expiry`."""
    expiry = f", {span(of.min_time_to_expiry_ms)} before expiry" if of.min_time_to_expiry_ms else ""
    return span(of.max_latency_ms) + expiry


def limits(windows: Iterable[SlaWindow], sla: Sla) -> str:
    """The thresholds that these windows were judged by, in time order; of an SLA without any, the configured one."""
    ordered = sorted(windows, key=lambda window: window.window)
    return limits_of(ordered, sla)


def limits_of(applied: Iterable[Limited], sla: Sla) -> str:
    """The same of what is in time order."""
    return ", then ".join(text for text, _ in groupby(map(limit, applied))) or limit(sla)


def requirement(of: Sla | Miss) -> str:
    """`every record is consumed within 30 s; a miss opens after 5 min of violations`."""
    done = f"passes all {len(stages)} stages" if (stages := _stages(of)) else "is consumed"
    expiry = f" and at least {span(of.min_time_to_expiry_ms)} before it expires" if of.min_time_to_expiry_ms else ""
    lasting = f"; a miss opens after {span(of.for_ms)} of violations" if of.for_ms else ""
    return f"every record {done} within {span(of.max_latency_ms)}{expiry}{lasting}"


def _stages(of: Sla | Miss) -> Sequence[object]:
    return of.chain if isinstance(of, Sla) else of.evidence.get("chain") or ()


def chain(of: Sla) -> str:
    """`order-enricher on orders.placed.v2 → billing.invoice-writer on orders.enriched.v1`."""
    return " → ".join(map(str, of.chain))


def chained(found: ChainState) -> str:
    """`28 s to 45 s; slowest stage 2 of 3, billing.invoice-writer on orders.enriched.v1, adds 25 s to 40 s`."""
    took = between(found.latency_low_ms, found.latency_high_ms)
    reason = f" ({found.reason})" if found.reason else ""
    if found.slowest_stage is None:
        return "nothing passed, and nothing waits"
    slowest = found.stages[found.slowest_stage - 1]
    added = between(slowest.added_low_ms, slowest.added_high_ms)
    return (
        f"{took}{reason}; slowest stage {slowest.stage} of {len(found.stages)}, {slowest.group} on"
        f" {slowest.topic}, adds {added}"
    )


def late_stage(found: Mapping[str, Any]) -> str:
    """`Stage 2 of 3, billing.invoice-writer on orders.enriched.v1, was late: it added 25 s to 40 s.`"""
    number, stages = found["chain_stage"], found["chain"]
    added = between(found["chain_added_low_ms"], found["chain_added_high_ms"])
    return f"Stage {number} of {len(stages)}, {stages[number - 1]}, was late: it added {added}."


def between(low_ms: float, high_ms: float | None) -> str:
    """Two bounds: `25 s to 40 s`, `25 s or more`."""
    if high_ms is None:
        return f"{span(low_ms)} or more"
    return span(high_ms) if span(low_ms) == span(high_ms) else f"{span(low_ms)} to {span(high_ms)}"


def objective(of: Sla) -> str:
    """`99.9 % of the month`, `99 % of the records of any 28 days`."""
    counted = "the records of " if of.objective_of == "records" else ""
    return f"{share(of.objective)} of {counted}{any_period(of.period)}"


class Budgeted(Protocol):
    """An attainment, of the library or of the API."""

    @property
    def objective_of(self) -> ObjectiveOf: ...
    @property
    def attainment(self) -> float | None: ...
    @property
    def attainment_low(self) -> float | None: ...
    @property
    def attainment_high(self) -> float | None: ...
    @property
    def budget_ms(self) -> float | None: ...
    @property
    def budget_left_ms(self) -> float | None: ...
    @property
    def budget_records(self) -> float | None: ...
    @property
    def budget_left_records(self) -> float | None: ...


def budget(of: Budgeted) -> str:
    """All that the objective allows: `43 min 12 s`, `1,200 records`."""
    return _amount(of.budget_ms, of.budget_records)


def budget_left(of: Budgeted) -> str:
    """What is left of it, with a minus where it is overspent."""
    return _amount(of.budget_left_ms, of.budget_left_records)


def share_of_budget_left(of: Budgeted) -> float | None:
    """Negative: overspent; None: there is no budget."""
    whole = of.budget_ms if of.objective_of == "time" else of.budget_records
    left = of.budget_left_ms if of.objective_of == "time" else of.budget_left_records
    return left / whole if whole and left is not None else None


def attained(of: Budgeted) -> str:
    """`99.2 %`, and where the records do not say it exactly: `99.2 % (bounds 98.7 % – 99.4 %)`."""
    low, high = share(of.attainment_low), share(of.attainment_high)
    return (
        share(of.attainment)
        if low == high or of.attainment is None
        else (f"{share(of.attainment)} (bounds {low} – {high})")
    )


def _amount(ms: float | None, records: float | None) -> str:
    """Records that are not late any more do not come in parts: what is left of them is cut."""
    if records is None:
        return span(ms)
    return f"{'−' if records < 0 else ''}{plural(math.floor(abs(records) + 1e-9), 'record')}"


def burning(of: Burn, of_objective: ObjectiveOf) -> str:
    """`the error budget burned 15 times as fast as it lasts over 1 h; alerted above 14.4 there and over 5 min, …`."""
    floor = (
        plural(of.pair.min_bad, "late record") if of_objective == "records" else f"{span(of.pair.min_bad)} of bad time"
    )
    return (
        f"the error budget burned {rate_text(of.burn_rate)} times as fast as it lasts over {span(of.pair.long_ms)};"
        f" alerted above {of.pair.burn_rate:g} there and over {span(of.pair.short_ms)}, from {floor} on"
    )


def judged_next(open_burns: Sequence[Burn]) -> str:
    """What becomes of these burns when time is excluded afterwards or counts again; nothing where there are none."""
    if not open_burns:
        return ""
    each = ", ".join(f"{burn.severity} since {moment(burn.start)}" for burn in open_burns)
    return f"the error budget burns ({each}): the next run judges that again"


def alerted_above(pairs: Iterable[BurnPair]) -> str:
    """`alerted above a burn rate of 14.4 over 1 h and 5 min, or of 6 over 6 h and 30 min`."""
    limits = sorted({(pair.burn_rate, pair.long_ms, pair.short_ms) for pair in pairs}, reverse=True)
    each = ", or ".join(f"of {rate:g} over {span(long)} and {span(short)}" for rate, long, short in limits)
    return f"alerted above a burn rate {each}"


def violation(miss: Miss) -> str:
    """What was measured, beside what was required: `worst latency 17 min, threshold 30 s`."""
    expiry = miss.evidence.get("unread_expiry")
    if expiry and not late(miss):
        required = f", at least {span(miss.min_time_to_expiry_ms)} required" if miss.min_time_to_expiry_ms else ""
        return f"{expiry}{required}"
    return f"worst latency {span(miss.worst_latency_ms)}, threshold {span(miss.max_latency_ms)}"


def lacking(files: Sequence[str]) -> str:
    """What evidence does not take into account."""
    return f"{plural(len(files), 'damaged file')} of that time could not be read: run kafka-sla store check."


def late(miss: Miss) -> bool:
    """Was its worst latency above the threshold, or did only unread records expire too soon?"""
    return miss.worst_latency_ms > miss.max_latency_ms


def place(miss: Miss) -> str:
    """Where the worst latency was: `group payments, orders-3`."""
    return f"group {miss.worst_group}, {miss.worst_topic}-{miss.worst_partition}"


def worst(miss: Miss) -> str:
    """Its worst latency with the bounds: `17 min (bounds 16 min – 18 min)`."""
    return latency(miss.worst_latency_ms, miss.worst_latency_low_ms, miss.worst_latency_high_ms)


def doubt(miss: Miss) -> str:
    """Empty for a certain miss, else that the SLA may have been met in some of its time."""
    return "" if miss.is_certain else "Within the bounds of the measurement, some of this time may have met the SLA."


def miss_outcome(miss: Miss) -> str:
    """How a miss stands, to follow the word SLA: `missed`, `recovered`, `no longer judged`."""
    return {"open": "missed", "recovered": "recovered"}.get(miss.state, "no longer judged")


def duration(miss: Miss) -> str:
    """From when to when and how long, or since when; why it is no longer judged, or does not count."""
    if miss.end is None:
        return f"since {moment(miss.start)}, still open"
    not_counted = f"not counted: {miss.exclusion}" if miss.exclusion else ""
    lasted = f"{moment(miss.start)} to {moment(miss.end)} ({span(miss.length_ms)})"
    return ", ".join(filter(None, [lasted, not_counted or miss.end_reason]))


def catching_up(found: CatchUp) -> str:
    """When it will have caught up and what that rests on: `in 12 min to 15 min at the pace of the last 15 min`."""
    return f"{caught_up_in(found)}{_rests_on(found)}"


def caught_up_because(found: CatchUp) -> str:
    """What `caught_up_in` rests on, where both stand apart: `at the pace of the last 15 min`; empty for nothing."""
    return _rests_on(found).lstrip(" :;")


def _rests_on(found: CatchUp) -> str:
    if found.state == "caught_up":
        return _bootstrapping(found)
    if found.state == "unknown":
        return f": {_not_known(found)}{_bootstrapping(found)}"
    slowest = found.slowest
    pace = f" at the pace of the last {span(slowest.measured_ms)}" if slowest else ""
    grows = f", its lag grows by {rate(-slowest.pace)}" if slowest and slowest.pace and slowest.pace < 0 else ""
    more = f"; {_not_known(found)}" if found.unknown else ""
    return f"{pace}{grows}{more}{_bootstrapping(found)}"


def caught_up_in(found: CatchUp) -> str:
    """The same for a column: `caught up`, `in 12 min to 15 min`, `never`, `not known`."""
    low, high = found.in_low_ms, found.in_high_ms
    if found.state == "never":
        return "never" if low is None else f"never, or in {span(low)} at the earliest"
    if found.state == "unknown":
        return f"not known, in {span(low)} at the earliest" if low else "not known"
    if high is None:
        return f"in {span(found.in_ms)}, bounds {span(low)} to never" if found.in_ms else "caught up, or never"
    if not found.in_ms:
        return f"caught up, or in {span(high)} at the latest" if high else "caught up"
    return f"in {span(low)} to {span(high)}" if span(low) != span(high) else f"in {span(found.in_ms)}"


def _not_known(found: CatchUp) -> str:
    more = f"{plural(found.unknown, 'partition')} of {found.partitions:,}, " if found.unknown > 1 else ""
    return more + found.reason


def _bootstrapping(found: CatchUp) -> str:
    if not found.bootstrapping:
        return ""
    return f"; {found.bootstrapping:,} of {plural(found.partitions, 'partition')} bootstrapping"
