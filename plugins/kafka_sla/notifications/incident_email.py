"""What one mail about several misses says: text and HTML, each SLA in a line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import Any

from kafka_sla.model.entities import Miss, Sla
from kafka_sla.notifications.mail_extent import down, fitting
from kafka_sla.notifications.mail_policy import new_mail
from kafka_sla.notifications.miss_context import incident_links, miss_url, misses_url
from kafka_sla.notifications.miss_email import clock_time, miss_message_id
from kafka_sla.notifications.notices import AnyNotice, Batch, IncidentNotice, Notice
from kafka_sla.reporting.templates import render, visible
from kafka_sla.sla.root_cause.shared_cause import common_words, shared_cause
from kafka_sla.sla.wording import end_reason
from kafka_sla.text.formatting import count, plural
from kafka_sla.text.natural_order import natural

_NO_TEAM = "without a team"
_TEAMS = 10
"""Teams that a mail names; of more only the number."""
LONGEST_CAUSE = 2_000
"""Characters of a cause, and of why: a consumer group may have a name of 32,767."""
_FEW = 6
"""SLAs that stay in full while others fit in short."""


@dataclass(frozen=True, slots=True)
class Line:
    """One SLA of the mail."""

    sla: str
    team: str
    miss: Miss
    url: str
    runbook: str
    cause: str
    """Empty where all SLAs of the mail have one; also why a miss ended that did not recover."""
    gravity: float
    """What is left out of a mail that is too long is least grave."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """How much of a mail is shown."""

    full: int
    """SLAs with links, the gravest."""
    short: int
    """SLAs after them, with how grave it is."""
    others: int
    """Others of the incident that go on."""
    is_whole: bool = False


def compose(slas: Mapping[str, Sla], notice: IncidentNotice, sender: str) -> EmailMessage:
    """The mail that reports all these misses to the recipients of their SLAs, which have the same; `slas` by name.

    The first mail of an incident begins a thread, all others reply to it.
    """
    values = incident_values(slas, notice)
    first = notice.notices[0]
    own_id = miss_message_id(first.thread or first.miss.id, notice.kind, sender)
    first_id = miss_message_id(notice.incident, "opened", sender)
    message = new_mail(sender, slas[first.miss.sla].recipients, values["subject"], own_id, first_id)
    message["X-Kafka-Sla-Incident"] = notice.incident
    message["X-Kafka-Sla-Miss"] = ", ".join(one.miss.id for one in notice.notices)
    text, page = written("incident", values)
    message.set_content(text)
    message.add_alternative(page, subtype="html")
    return message


def written(template: str, values: dict[str, Any]) -> list[str]:
    """Text and HTML of a mail about several SLAs, with as many of `lines` and `still_open` as mail programs show."""
    forms = (partial(_rendered, f"notifications/{template}.{form}.j2", values) for form in ("txt", "html"))
    _, parts = fitting([_extents(len(values["lines"]), len(values["still_open"]))], *forms)
    return parts


def _extents(lines: int, others: int) -> Iterator[_Extent]:
    """Each shorter than the one before: more SLAs in short, then fewer SLAs."""
    yield _Extent(lines, 0, others, is_whole=True)
    for full in down(lines, _FEW):
        yield _Extent(full, lines - full, others)
    for most in down(max(lines, others), 0):
        yield _Extent(min(_FEW, most), most, most)


def _rendered(template: str, values: dict[str, Any], extent: _Extent) -> str:
    """In the order of the lines, however grave they are: readers look for theirs."""
    lines, others = values["lines"], values["still_open"][: extent.others]
    gravest = sorted(range(len(lines)), key=lambda n: -lines[n].gravity)[: extent.full + extent.short]
    shown = {
        "in_full": [lines[n] for n in sorted(gravest[: extent.full])],
        "in_short": [lines[n] for n in sorted(gravest[extent.full :])],
        "left_out": len(lines) - len(gravest),
        "others": others,
        "others_left_out": len(values["still_open"]) - len(others),
        "is_whole": extent.is_whole,
    }
    return render(template, values, **shown)


def incident_values(slas: Mapping[str, Sla], notice: IncidentNotice) -> dict[str, Any]:
    """Every value of the templates."""
    misses, run_url = [n.miss for n in notice.notices], notice.notices[0].run_url
    worst, since = max(misses, key=_gravity), min(miss.start for miss in misses)
    several = has_several_causes(notice.notices)
    return {
        **common_values(slas, notice),
        "ended": notice.kind == "recovered",
        "subject": visible(subject(notice))[:LONGEST_CAUSE],
        "sentence": worst.evidence.get("sentence", "")[:LONGEST_CAUSE],
        "until": max(m.end or m.opened_at for m in misses),
        "links": incident_links(run_url, misses),
        "all": ("All misses", misses_url(run_url, since), f"kafka-sla misses --from {since:%FT%TZ}"),
        "lines": [_line(slas, n, run_url, several=several) for n in order_by_team(slas, notice.notices)],
        "still_open": [_line(slas, other, run_url) for other in notice.still_open],
        "rest": _rest(notice),
    }


def common_values(slas: Mapping[str, Sla], message: Batch[AnyNotice]) -> dict[str, Any]:
    """Values that mails about several misses and about several burns share."""
    misses = [notice.bad_time for notice in message.notices]
    zones = {slas[miss.sla].time_zone for miss in misses if miss.sla in slas}
    return {
        "cause": common_words(misses)[:LONGEST_CAUSE],
        "size": message.size,
        "since": min(miss.start for miss in misses),
        "teams": _team_counts(slas, [miss.sla for miss in misses]),
        "when": partial(clock_time, zones.pop() if len(zones) == 1 else "UTC"),
        "incident": message.incident,
        "continued": message.kind in ("opened", "began") and message.size > len(misses),
    }


def has_several_causes(notices: Sequence[AnyNotice]) -> bool:
    """Whether each line of the mail names its own cause."""
    return len({shared_cause(notice.bad_time) for notice in notices}) > 1


def order_by_team(slas: Mapping[str, Sla], notices: Sequence[AnyNotice]) -> list[AnyNotice]:
    """The notices by team, SLA and start."""

    def key(notice: AnyNotice) -> tuple[Any, ...]:
        miss = notice.bad_time
        return natural(find_team(slas, miss.sla)), natural(miss.sla), miss.start

    return sorted(notices, key=key)


def find_team(slas: Mapping[str, Sla], name: str) -> str:
    """The team of the SLA; empty if it has none, or is not known."""
    return slas[name].team if name in slas else ""


def describe_line_cause(notice: AnyNotice, *, several: bool) -> str:
    """The cause if the mail has `several`, and why the alert ended if it did not recover."""
    reason = end_reason(notice.end_reason)
    return "; ".join(
        filter(None, [shared_cause(notice.bad_time).words if several else "", reason and f"ended: {reason}"])
    )


def subject(notice: IncidentNotice) -> str:
    """`SLAs missed: 500, slow brokers of cluster prod`, `SLAs recovered: 480 of 500, slow brokers of cluster prod`."""
    number, cause = len(notice.notices), common_words([n.miss for n in notice.notices])
    if notice.kind == "recovered":
        return f"SLAs recovered: {count(number)} of {count(notice.size)}, {cause}"
    more = " more" if notice.size > number else ""
    return f"SLAs missed: {count(number)}{more}, {cause}"


def _team_counts(slas: Mapping[str, Sla], names: Sequence[str]) -> str:
    """`team Billing (300), team Shop (200)`, the one with the most SLAs first."""
    counted = Counter(find_team(slas, name) for name in names)
    ordered = sorted(counted.items(), key=lambda pair: (-pair[1], natural(pair[0])))
    named = [f"{f'team {team}' if team else _NO_TEAM} ({count(number)})" for team, number in ordered[:_TEAMS]]
    more = len(ordered) - len(named)
    return ", ".join([*named, f"and {plural(more, 'more team')}"] if more else named)


def _gravity(miss: Miss) -> float:
    """How many times the threshold was needed."""
    return miss.worst_latency_ms / max(miss.max_latency_ms, 1)


def _rest(notice: IncidentNotice) -> str:
    """Of the incident: which of its SLAs this mail does not list; empty for the mail that begins it."""
    if notice.kind == "opened" and notice.size == len(notice.notices):
        return ""
    if not notice.still_open:
        return "No other SLA of this incident is missed."
    number = len(notice.still_open)
    return f"{plural(number, 'other SLA')} of this incident {'is' if number == 1 else 'are'} still missed."


def _line(slas: Mapping[str, Sla], notice: Notice, run_url: str | None, *, several: bool = False) -> Line:
    miss = notice.miss
    runbook, cause = slas[miss.sla].runbook if miss.sla in slas else "", describe_line_cause(notice, several=several)
    return Line(miss.sla, find_team(slas, miss.sla), miss, miss_url(run_url, miss.id), runbook, cause, _gravity(miss))
