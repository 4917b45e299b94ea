"""Judging burn rates after verdicts: for many SLAs at once, since their sums are read together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.pipeline.judged_time import lookbacks
from kafka_sla.sla import burn
from kafka_sla.sla.burn import Burn

_PIECE = timedelta(days=1)
"""Longer intervals are judged piece by piece: of each window and length two numbers are held in memory."""


def judge_burns(ledger: Ledger, slas: Sequence[Sla], interval: Interval, window_ms: int) -> None:
    """Judge the burns of the interval anew, and those after it that look back on it. Of SLAs without alerts what is
    still open is over: nobody looks at their rates any more."""
    without = [sla.name for sla in slas if not sla.burn_pairs]
    ledger.burns.end([burn for burn in ledger.burns.of(without) if burn.start <= interval.end], interval.end)
    for reach, alike in _alike(ledger, slas, interval):
        for piece in reach.pieces(_PIECE):
            _judge(ledger, alike, piece, window_ms)


def _judge(ledger: Ledger, slas: Sequence[Sla], piece: Interval, window_ms: int) -> None:
    lengths = sorted({length for sla in slas for length in burn.lookbacks(sla)})
    back = lookbacks(ledger, slas, lengths, piece, window_ms)
    instants = [window.end for window in piece.windows(window_ms)]
    rows, alerting = {sla.name: n for n, sla in enumerate(slas)}, burn.alerting(slas, back)

    def judge(name: str, before: list[Burn]) -> list[Burn]:
        if not before and name not in alerting:
            return []
        mine = {length: of.of(rows[name]) for length, of in back.items()}
        return burn.burns(slas[rows[name]], instants, mine, before)

    ledger.burns.replace(list(rows), piece, judge)


def _alike(ledger: Ledger, slas: Sequence[Sla], interval: Interval) -> Iterator[tuple[Interval, list[Sla]]]:
    """SLAs with alerts, by the time to judge: verdicts after the interval look back on it."""
    alerted = [sla for sla in slas if sla.burn_pairs]
    newest = ledger.queries.newest_verdicts([sla.name for sla in alerted], interval.start) if alerted else {}
    groups: dict[Interval, list[Sla]] = defaultdict(list)
    for sla in alerted:
        if last := newest.get(sla.name):
            until = min(max(last.end, interval.end), interval.end + burn.longest(sla))
            groups[Interval(interval.start, until)].append(sla)
    yield from groups.items()
