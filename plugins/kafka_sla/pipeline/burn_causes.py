"""Why an error budget burns: the newest bad time before it began, explained as that of a miss. Sends nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from kafka_sla.config.settings import Settings
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss
from kafka_sla.pipeline.evidence_reader import explained
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.miss_rule import judge_misses


def bad_time_behind(settings: Settings, ledger: Ledger, lake: Lake, burn: Burn) -> Miss | None:
    """The newest miss within the short time before the burn began, else the newest bad windows there as if they were
    one; None where no bad window is kept, or says where it was bad."""
    sla = settings.sla(burn.sla)
    short = Interval(burn.start - timedelta(milliseconds=burn.pair.short_ms), burn.start)
    if misses := ledger.verdicts.misses(sla, short):
        return misses[-1]
    windows = ledger.verdicts.windows(sla, short)
    judged = [w for w in windows if w.verdict in ("good", "bad") and w.worst_group is not None]
    runs = judge_misses(replace(sla, for_ms=0), judged)
    return explained(settings, sla, runs[-1], burn.start, lake) if runs else None
