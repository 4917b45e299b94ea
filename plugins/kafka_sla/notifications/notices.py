"""What a message says about alerts: misses, or burns of error budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from kafka_sla.ledger.alerts.report_rows import MAIL, AlertMessage
from kafka_sla.model.entities import Miss, MissState
from kafka_sla.sla.alerts import EndReason, Report
from kafka_sla.sla.burn import Burn

NoticeKind = Literal["opened", "recovered"]
BurnNoticeKind = Literal["began", "over"]
N = TypeVar("N")
AnyNotice = TypeVar("AnyNotice", "Notice", "BurnNotice")


@dataclass(frozen=True, slots=True)
class Notice:
    """A miss that opened or ended."""

    kind: NoticeKind
    miss: Miss
    run_url: str | None = None
    thread: str = ""
    """Id under which the miss was first reported; another than its own when late facts moved its start, and numbered
    when it was reported again."""
    channel: str = MAIL
    incident: str = ""
    """Thread of the first report of its incident."""
    team: str | None = None
    """The SLA's when the miss was first reported: a receiver may know the miss by it."""
    end_reason: EndReason = ""
    """Of an ended miss: why."""

    @property
    def bad_time(self) -> Miss:
        """What its cause is taken from."""
        return self.miss


@dataclass(frozen=True, slots=True)
class BurnNotice:
    """A burn that began or ended."""

    kind: BurnNoticeKind
    burn: Burn
    run_url: str | None
    channel: str
    thread: str = ""
    """Id under which the burn was first reported."""
    behind: Miss | None = None
    """The newest bad time before it began, explained as a miss is, however short; None if that is not known."""
    team: str | None = None
    """The SLA's when the burn was first reported."""
    end_reason: EndReason = ""
    """Of an ended burn: why."""

    @property
    def bad_time(self) -> Miss:
        """The bad time behind the burn, as if it had been missed for as long as it burned."""
        return miss_of_burn(self.burn, self.behind)


@dataclass(frozen=True)
class Batch(Generic[N]):
    """One message: alerts of one run and channel that belong to one incident, oldest first."""

    kind: str
    channel: str
    incident: str
    """Thread of the first report of the incident: a message replies to it unless it is the first itself."""
    notices: tuple[N, ...]
    still_open: tuple[N, ...]
    """Others of the incident that have been reported and are not resolved."""
    size: int
    """How many reports the incident has so far, with those of this message."""

    @property
    def is_single(self) -> bool:
        """Whether it is about one alert, with nothing to say of others that were reported with it."""
        return len(self.notices) == 1 and (self.kind in ("opened", "began") or self.size == 1)


IncidentNotice = Batch[Notice]
BurnMessage = Batch[BurnNotice]


def miss_message(message: AlertMessage) -> IncidentNotice:
    """A message about misses, as mails, webhooks and notifiers take it."""
    kind: NoticeKind = "opened" if message.state == "open" else "recovered"
    return _batch(message, kind, lambda report: miss_notice(report, kind), lambda report: miss_notice(report, "opened"))


def burn_message(message: AlertMessage) -> BurnMessage:
    """The same about burns."""
    kind: BurnNoticeKind = "began" if message.state == "open" else "over"
    return _batch(message, kind, lambda report: burn_notice(report, kind), lambda report: burn_notice(report, "began"))


def _batch(message: AlertMessage, kind: str, view: Callable[[Report], N], view_open: Callable[[Report], N]) -> Batch[N]:
    reports, still_open = tuple(map(view, message.reports)), tuple(map(view_open, message.still_open))
    return Batch(kind, message.channel, message.incident, reports, still_open, message.size)


def miss_notice(report: Report, kind: NoticeKind) -> Notice:
    assert report.alert.miss
    reason: EndReason = report.alert.end_reason if kind == "recovered" else ""
    team = report.sla.team
    return Notice(kind, report.alert.miss, report.run_url, report.thread, report.channel, report.incident, team, reason)


def burn_notice(report: Report, kind: BurnNoticeKind) -> BurnNotice:
    alert = report.alert
    assert alert.burn
    reason: EndReason = alert.end_reason if kind == "over" else ""
    team = report.sla.team
    return BurnNotice(kind, alert.burn, report.run_url, report.channel, report.thread, alert.miss, team, reason)


def miss_of_burn(burn: Burn, behind: Miss | None) -> Miss:
    """The bad time behind a burn, as if it had been missed for as long as it burned."""
    nothing = Miss(
        burn.id,
        burn.sla,
        burn.cluster,
        burn.start,
        None,
        burn.start,
        0,
        False,
        0.0,
        None,
        None,
        burn.start,
        "",
        "",
        0,
        state="open",
        bad_until=burn.start,
        max_latency_ms=0,
        for_ms=0,
    )
    state: MissState = "recovered" if burn.end else "open"
    return replace(behind or nothing, id=burn.id, state=state, start=burn.start, end=burn.end)
