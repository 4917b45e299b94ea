"""What of misses and burns is news, and to whom: queued, each once. Sends nothing.

News is what the run's interval may have changed; and that something is over, whoever found it: a run that nobody was to
be notified of may have, or another configuration or late facts made it none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.burn_notices import BurnNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Interval, Miss
from kafka_sla.pipeline.channels import Audience
from kafka_sla.sla.burn import Burn

_JUST = timedelta(milliseconds=1)
_REMEMBERED = timedelta(days=62)
"""What began longer before the interval is not asked again whether it is over."""

Audiences = Mapping[str, Audience]
"""Who is to hear of each SLA, by name."""


def queue_misses(ledger: Ledger, interval: Interval, run_url: str | None, audiences: Audiences) -> int:
    """Queue what each channel has not heard of misses; answers how much."""
    queued = sum(_of_interval(ledger, name, interval, run_url, audience) for name, audience in audiences.items())
    for opened in ledger.outbox.queue.without_end(list(audiences), interval.start - _REMEMBERED):
        if opened.channel in audiences[opened.miss.sla].channels and (over := as_it_ended(ledger, opened)):
            queued += ledger.outbox.end(opened, over, run_url)
    return queued


def _of_interval(ledger: Ledger, sla: str, interval: Interval, run_url: str | None, audience: Audience) -> int:
    """Of misses that the interval may have changed; of one that is excluded only the recovery, to those who know that
    it opened."""
    queued = 0
    for miss in ledger.verdicts.misses_around(sla, interval):
        for channel in audience.channels:
            opened = Notice("opened", miss, run_url, channel=channel, team=audience.team)
            queued += not miss.exclusion and ledger.outbox.enqueue(opened)
            over = Notice("recovered", miss, run_url, channel=channel)
            queued += miss.end is not None and ledger.outbox.enqueue(over)
    return queued


def as_it_ended(ledger: Ledger, opened: Notice) -> Miss | None:
    """The miss that was told to open, or what it has become; as far as it was known where nothing is left of it. None:
    it goes on."""
    told = opened.miss
    until = max(opened.known_until or told.opened_at, told.start + _JUST)
    there = ledger.verdicts.misses(told.sla, Interval(told.start, until))
    own = [miss for miss in there if miss.id == told.id] or there
    if not own:
        return replace(told, state="recovered", end=until)
    return own[-1] if own[-1].end else None


def queue_burns(
    ledger: Ledger,
    interval: Interval,
    run_url: str | None,
    audiences: Audiences,
    explain: Callable[[Burn], Miss | None],
) -> int:
    """Queue what each channel has not heard of burns; answers how much. `explain` tells what is behind a burn that
    nobody heard of yet."""
    burns = ledger.burns.of(list(audiences), interval)
    heard = ledger.burn_notices.reported(burns)
    queued = 0
    for found in burns:
        if found.id not in heard and found.severity not in audiences[found.sla].alerts:
            continue  # nobody is to hear of it, so it need not be explained
        behind, audience = heard[found.id].behind if found.id in heard else explain(found), audiences[found.sla]
        for channel in audience.channels:
            began = BurnNotice("began", found, run_url, channel, behind=behind, team=audience.team)
            queued += found.severity in audience.alerts and ledger.burn_notices.enqueue(began)
            queued += found.end is not None and ledger.burn_notices.enqueue(replace(began, kind="over"))
    for began in ledger.burn_notices.queue.without_end(list(audiences), interval.start - _REMEMBERED):
        if began.channel in audiences[began.burn.sla].channels:
            queued += ledger.burn_notices.end(began, _burn_as_it_ended(ledger, began), run_url)
    return queued


def _burn_as_it_ended(ledger: Ledger, began: BurnNotice) -> Burn:
    told = began.burn
    until = max(began.known_until or told.start, told.start)
    there = ledger.burns.of([told.sla], Interval(told.start - _JUST, until))
    same = [burn for burn in there if burn.severity == told.severity and burn.end]
    own = [burn for burn in same if burn.id == told.id]
    return (own or same or [replace(told, end=until)])[-1]
