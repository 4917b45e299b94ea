"""The cause of a miss in one sentence with its figures. Knows no rows and no SLA."""

from __future__ import annotations

from collections.abc import Callable

from kafka_sla.sla.root_cause.classify import Cause, Evidence
from kafka_sla.text.formatting import count, moment, plural, rate, span


def sentence(e: Evidence) -> str:
    """Why the promise was missed, as far as the figures tell."""
    return _SENTENCES[e.cause](e)


def _stopped(e: Evidence) -> str:
    what = f"Group {e.group} kept committing on {e.topic} but did not move" if e.commits_without_progress else (
        f"Group {e.group} committed nothing on {e.topic}")  # fmt: skip
    waited = f"while up to {plural(e.lag_worst, 'record')} waited" if e.lag_worst else "while records waited"
    if e.stalled_from is None:
        return f"{what} for {e.stalled_share:.0%} of the time {waited}."
    if e.stalled_until is None:
        return f"{what} after {moment(e.stalled_from)} {waited}."
    return f"{what} from {moment(e.stalled_from)} until {moment(e.stalled_until)} {waited}."


def _jumped(e: Evidence) -> str:
    times = (e.produce_rate_during or 0) / (e.produce_rate_before or 1)
    return (
        f"The produce rate of {e.topic} jumped from {rate(e.produce_rate_before)} to {rate(e.produce_rate_during)} "
        f"({times:.1f} times as much); group {e.group} consumed {rate(e.consume_rate_during)}."
    )


def _too_slow(e: Evidence) -> str:
    before = "" if e.consume_rate_before is None else f" ({rate(e.consume_rate_before)} before)"
    usual = "" if e.produce_rate_before is None else f" ({rate(e.produce_rate_before)} before)"
    return (
        f"Group {e.group} was too slow: it consumed {rate(e.consume_rate_during)}{before} "
        f"while {rate(e.produce_rate_during)}{usual} were produced to {e.topic}."
    )


def _unclear(e: Evidence) -> str:
    missing = f"; not measured: {', '.join(e.around.not_measured)}" if e.around.not_measured else ""
    return (
        f"No single cause shows: {rate(e.produce_rate_during)} produced, {rate(e.consume_rate_during)} consumed, "
        f"{count(e.lag_worst)} records waiting at worst{missing}."
    )


def _nobody(e: Evidence) -> str:
    before = "" if e.around.members_before is None else f" ({plural(e.around.members_before, 'member')} before)"
    return f"Nobody was in group {e.group}{before}: it{_stopped(e).removeprefix(f'Group {e.group}')}"


def _rewound(e: Evidence) -> str:
    return (
        f"Group {e.group} went back {plural(e.rewound_records or 0, 'record')} on {e.topic} after "
        f"{moment(e.rewound_at)} and reads them again: {rate(e.consume_rate_during)} consumed while "
        f"{rate(e.produce_rate_during)} were produced."
    )


def _slow_broker(e: Evidence) -> str:
    sure = "" if e.around.broker_confidence is None else f" (confidence {e.around.broker_confidence:.0%})"
    return (
        f"Brokers were slow: {e.around.broker_reason}{sure}, which was not so before; group {e.group} consumed "
        f"{rate(e.consume_rate_during)} of {rate(e.produce_rate_during)} produced to {e.topic}."
    )


def _replication(e: Evidence) -> str:
    return (
        f"Records reached {e.topic} late: {e.around.replication_flow} took up to "
        f"{span(e.around.replication_latency_worst_ms)} to copy them and was "
        f"{plural(e.around.replication_lag_worst or 0, 'record')} behind at worst."
    )


def _expired(e: Evidence) -> str:
    return (
        f"Records of {e.topic} expired before group {e.group} read them: at least "
        f"{plural(e.around.expired_unread_low or 0, 'record')}."
    )


def _contradictory(e: Evidence) -> str:
    return f"The evidence contradicts itself: {e.contradiction}; look at group {e.group} and its commits on {e.topic}."


_SENTENCES: dict[Cause, Callable[[Evidence], str]] = {
    "no_members": _nobody, "stopped": _stopped, "stalled": _stopped, "rewound": _rewound, "slow_broker": _slow_broker,
    "replication": _replication, "produce_rate_jumped": _jumped, "too_slow": _too_slow, "records_expired": _expired,
    "contradictory": _contradictory, "unclear": _unclear,
}  # fmt: skip
