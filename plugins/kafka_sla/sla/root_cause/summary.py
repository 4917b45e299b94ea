"""The cause of a miss in one sentence, from the figures that are known."""

from __future__ import annotations

from collections.abc import Callable

from kafka_sla.sla.root_cause.classify import Cause, Evidence
from kafka_sla.text.formatting import moment, plural, rate, span


def sentence(e: Evidence) -> str:
    """Why the SLA was missed, as far as the figures tell."""
    return f"{_SENTENCES[e.cause](e)}."


def _stood_still(e: Evidence) -> str:
    how = (
        f"kept committing on {e.topic} without progress"
        if e.commits_without_progress
        else (f"consumed nothing from {e.topic}")
    )
    backlog = plural(e.lag_worst, "record") if e.lag_worst else "records"
    if e.stalled_from is None:
        return f"Group {e.group} {how} while {backlog} waited"
    since, until = moment(e.stalled_from), e.stalled_until and moment(e.stalled_until)
    when = f"between {since} and {until}" if until else f"after {since}"
    return f"Group {e.group} {how} {when} while {'up to ' if e.lag_worst else ''}{backlog} waited"


def _open_transaction(e: Evidence) -> str:
    transaction = e.open_transaction
    assert transaction is not None
    producer = "an unknown producer" if transaction.producer_id is None else f"producer id {transaction.producer_id}"
    named = f" (transactional.id {transaction.transactional_id})" if transaction.transactional_id else ""
    since = f" since {moment(transaction.since)}" if transaction.since else ""
    return (
        f"A transaction of {producer}{named} has been open on {e.topic}-{transaction.partition}{since}:"
        f" group {e.group} reads committed records only and waits before it{_backlog(e)}"
    )


def _produced_late(e: Evidence) -> str:
    return (
        f"Records of {e.topic} were up to {span(e.append_delay_ms)} old when they reached Kafka: they were late before"
        f" group {e.group} could read them"
    )


def _left_topic(e: Evidence) -> str:
    instead = f"; they read {', '.join(e.around.topics_read)}" if e.around.topics_read else ""
    return f"Group {e.group} has left {e.topic}: none of its members is assigned to it{instead}{_backlog(e)}"


def _no_position(e: Evidence) -> str:
    place = e.topic if e.unread_partition is None else f"partition {e.unread_partition} of {e.topic}"
    since = f", unread since {moment(e.unread_since)}" if e.unread_since else ""
    return f"Group {e.group} has no position on {place}{since}"


def _one_record_waiting(e: Evidence) -> str:
    return f"Exactly one record of {e.topic} has been waiting on every late partition since the topic went quiet"


def _commits_rarely(e: Evidence) -> str:
    return (
        f"Group {e.group} commits every {span(e.commit_spacing_ms)} on {e.topic}: a threshold of"
        f" {span(e.max_latency_ms)} can be neither met nor shown"
    )


def _not_catching_up(e: Evidence) -> str:
    reset = f"went back {plural(e.rewound_records, 'record')} after {moment(e.rewound_at)}" if e.rewound_records else ""
    if e.stood_still:
        begun = reset or "has never caught up"
        return f"Group {e.group} {begun} on {e.topic} and has made no progress since{_last_commit(e)}{_backlog(e)}"
    rates = ""
    if e.consume_rate_during is not None and e.produce_rate_during is not None:
        rates = f": it consumed {rate(e.consume_rate_during)} while {rate(e.produce_rate_during)} were produced"
    return f"Group {e.group} {f'{reset} and ' if reset else ''}is not catching up on {e.topic}{rates}"


def _last_commit(e: Evidence) -> str:
    return f" its commit of {moment(e.stalled_from)}" if e.stalled_from else ""


def _backlog(e: Evidence) -> str:
    """Nothing where no lag is known."""
    return f"; up to {plural(e.lag_worst, 'record')} waited" if e.lag_worst else ""


def _no_members(e: Evidence) -> str:
    before = "" if e.around.members_before is None else f" ({e.around.members_before:,} before)"
    return f"Group {e.group} had no members{before} and{_stood_still(e).removeprefix(f'Group {e.group}')}"


def _rewound(e: Evidence) -> str:
    back = f"{plural(e.rewound_records or 0, 'record')} on {e.topic} after {moment(e.rewound_at)}"
    return f"Group {e.group} went back {back} to read them again{_pace(e)}"


def _slow_broker(e: Evidence) -> str:
    sure = "" if e.around.broker_confidence is None else f" (confidence {e.around.broker_confidence:.0%})"
    why = f": {e.around.broker_reason}{sure}" if e.around.broker_reason else sure
    news = "" if e.around.broker_verdict_before is None else ", unlike before"
    return f"Brokers were slow{why}{news}{_pace(e)}"


def _replication(e: Evidence) -> str:
    behind = e.around.replication_lag_worst
    lag = f" and was up to {plural(behind, 'record')} behind" if behind else ""
    late = span(e.around.replication_latency_worst_ms)
    return f"Records reached {e.topic} late: {e.around.replication_flow} took up to {late} to copy them{lag}"


def _jumped(e: Evidence) -> str:
    times = (e.produce_rate_during or 0) / (e.produce_rate_before or 1)
    return (
        f"The produce rate of {e.topic} jumped from {rate(e.produce_rate_before)} to {rate(e.produce_rate_during)} "
        f"({times:.1f} times as much); group {e.group} consumed {rate(e.consume_rate_during)}"
    )


def _too_slow(e: Evidence) -> str:
    return (
        f"Group {e.group} was too slow: it consumed {rate(e.consume_rate_during)}{_before(e.consume_rate_before)} "
        f"while {rate(e.produce_rate_during)}{_before(e.produce_rate_before)} were produced to {e.topic}"
    )


def _expired(e: Evidence) -> str:
    lost = plural(e.around.expired_unread_low or 0, "record")
    return f"Records of {e.topic} expired before group {e.group} read them: at least {lost}"


def _contradictory(e: Evidence) -> str:
    return f"The evidence contradicts itself: {e.contradiction}; check group {e.group} and its commits on {e.topic}"


def _unclear(e: Evidence) -> str:
    known = [
        f"{rate(e.produce_rate_during)} produced" if e.produce_rate_during is not None else "",
        f"{rate(e.consume_rate_during)} consumed" if e.consume_rate_during is not None else "",
        f"up to {plural(e.lag_worst, 'record')} waiting"
        if e.lag_worst
        else "no record waiting"
        if e.lag_worst == 0
        else "",
    ]
    missing = f"not measured: {', '.join(e.around.not_measured)}" if e.around.not_measured else ""
    figures = ", ".join(filter(None, known))
    return ": ".join(filter(None, ["No single cause stands out", "; ".join(filter(None, [figures, missing]))]))


def _pace(e: Evidence) -> str:
    """Nothing unless both rates are known."""
    if e.consume_rate_during is None or e.produce_rate_during is None:
        return ""
    consumed, produced = rate(e.consume_rate_during), rate(e.produce_rate_during)
    return f"; group {e.group} consumed {consumed} while {produced} were produced to {e.topic}"


def _before(usual: float | None) -> str:
    return "" if usual is None else f" ({rate(usual)} before)"


_SENTENCES: dict[Cause, Callable[[Evidence], str]] = {
    "open_transaction": _open_transaction,
    "produced_late": _produced_late,
    "left_topic": _left_topic,
    "no_position": _no_position,
    "one_record_waiting": _one_record_waiting,
    "commits_rarely": _commits_rarely,
    "not_catching_up": _not_catching_up,
    "no_members": _no_members,
    "stopped": _stood_still,
    "stalled": _stood_still,
    "rewound": _rewound,
    "slow_broker": _slow_broker,
    "replication": _replication,
    "produce_rate_jumped": _jumped,
    "too_slow": _too_slow,
    "records_expired": _expired,
    "contradictory": _contradictory,
    "unclear": _unclear,
}
