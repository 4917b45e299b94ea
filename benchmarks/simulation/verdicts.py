"""Verdicts, misses and attainment of one SLA, against plain loops over rows and over the truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from math import inf
from typing import Any

from benchmarks.simulation import truth
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.kernel import Made, at
from benchmarks.simulation.truth import WindowTruth
from benchmarks.simulation.visibility import Visibility
from benchmarks.simulation.world import World
from kafka_sla.model.entities import Interval, Sla, SlaWindow, epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.attainment import attainment_in
from kafka_sla.sla.evaluate import judge
from kafka_sla.sla.miss_rule import judge_misses

Row = Mapping[str, Any]
Key = tuple[str, str, int]
_COMPARED = ("records_latency_max", "backlog_age_max")
Truth = Mapping[Key, Mapping[int, WindowTruth]]


def verdicts(world: World, sla: Sla, whole: Made, seen: Mapping[Key, Visibility], true: Truth) -> Iterator[Failure]:
    """What fails of the judging of one SLA."""
    latency, steady = whole[CONSUMER_LATENCY], whole[STEADY_STATE]
    span = Interval(at(-(-world.start // world.window_ms) * world.window_ms), at(world.end))
    judged = judge(sla, span, world.window_ms, latency, steady)
    rows, states = _by_window(latency.to_pylist()), _by_window(s for s in steady.to_pylist() if s["sla"] == sla.name)
    for window in judged:
        start = epoch_ms(window.window.start)
        own = [(_with_allowed_lag(row, sla), states[start].get(key)) for key, row in rows[start].items()]
        expected = _plainly(sla, own)
        if (window.verdict, window.is_certain) != expected:
            yield Failure(
                "verdicts by a plain loop",
                "verdict",
                sla.name,
                start,
                str(expected),
                f"{(window.verdict, window.is_certain)}: {window.reason}",
            )
        yield from _certainty(sla, window, start, own, seen, true)
    yield from _attainment(sla, judged, span)
    yield from _misses(sla, judged, world.window_ms)


def _by_window(rows: Any) -> dict[int, dict[Key, Row]]:
    found: dict[int, dict[Key, Row]] = defaultdict(dict)
    for row in rows:
        found[epoch_ms(row["window_start"])][row["group"], row["topic"], row["partition"]] = row
    return found


def _with_allowed_lag(row: Row, sla: Sla) -> Row:
    """Records that may wait make no backlog."""
    if not sla.allowed_lag or row["records_lag"] is None or row["records_lag"] > sla.allowed_lag:
        return row
    none = 0.0 if row["records_latency_max_ms"] is None else None
    read = {bound: row[f"records_latency_max{bound}_ms"] for bound in ("", "_low", "_high")}
    return {**row, **{f"backlog_age_max{bound}_ms": none if v is None else v for bound, v in read.items()}}


def _plainly(sla: Sla, own: Sequence[tuple[Row, Row | None]]) -> tuple[str, bool]:
    """Verdict and certainty as `docs/reference/sla_windows.md` says."""
    steady = [row for row, state in own if state and state["steady_whole_window"]]
    over = [row for row in steady if _over(row, sla)]
    if over:
        return "bad", any(_worst(row, "_low") > sla.max_latency_ms for row in over)
    if not own or any(_unknown(row, state, sla) for row, state in own):
        return "unknown", False
    return ("good", all(_high(row) <= sla.max_latency_ms for row in steady)) if steady else ("excluded", False)


def _unknown(row: Row, state: Row | None, sla: Sla) -> bool:
    """It may have been good or bad, and the SLA does not say what it is then."""
    if state is None or state["state"] == "contradictory" or row["unknown_reason"] is not None:
        return True
    if row["backlog_age_max_ms"] is None:
        return True
    doubtful = sla.when_uncertain == "unknown" and _high(row) > sla.max_latency_ms
    return bool(state["steady_whole_window"]) and (doubtful or bool(row["unknown_latency_records"]))


def _over(row: Row, sla: Sla) -> bool:
    """It was late, or is to count as late."""
    if all(row[f"{name}_ms"] is None for name in _COMPARED):
        return False
    supposed = {"bad": _high(row), "estimate": _worst(row, "")}.get(sla.when_uncertain, 0.0)
    return max(_worst(row, "_low"), supposed) > sla.max_latency_ms


def _worst(row: Row, which: str) -> float:
    values = [row[f"{name}{which}_ms"] for name in _COMPARED]
    return max((value for value in values if value is not None), default=0.0)


def _high(row: Row) -> float:
    pairs = [(row[f"{name}_ms"], row[f"{name}_high_ms"]) for name in _COMPARED]
    return max((inf if high is None else high for value, high in pairs if value is not None), default=inf)


def _certainty(
    sla: Sla,
    window: SlaWindow,
    start: int,
    own: Sequence[tuple[Row, Row | None]],
    seen: Mapping[Key, Visibility],
    true: Truth,
) -> Iterator[Failure]:
    """A verdict that calls itself certain is the true one for the partitions that it judged."""
    keys = [(r["group"], r["topic"], r["partition"]) for r, state in own if state and state["steady_whole_window"]]
    end = epoch_ms(window.window.end)
    blind = any(seen[key].voids or seen[key].hidden(start, end) for key in keys)
    if not window.is_certain or blind or sla.allowed_lag:
        return
    room = max((max(seen[key].skew_ms, seen[key].room_ms) for key in keys), default=0)
    worst = [(true[key][start], key) for key in keys]
    most = max((max(t.oldest, int(t.possible.max(initial=0))) for t, _ in worst), default=0)
    least = max((max(t.age or 0, int(t.possible.max(initial=0))) for t, _ in worst), default=0)
    wrong = most + room <= sla.max_latency_ms if window.verdict == "bad" else least - room > sla.max_latency_ms
    if wrong:
        yield Failure(
            "certain verdicts are true",
            f"worst latency, {sla.name}",
            "",
            start,
            f"{least} to {most}",
            f"{window.verdict}, {window.worst_latency_low_ms} to {window.worst_latency_high_ms}",
        )


def _attainment(sla: Sla, judged: Sequence[SlaWindow], span: Interval) -> Iterator[Failure]:
    """Shares of time by a plain loop; unknown time is never good."""
    found = attainment_in(sla, judged, span)
    spent: dict[str, int] = defaultdict(int)
    for window in judged:
        spent[window.verdict] += (window.window.end - window.window.start) // timedelta(milliseconds=1)
    elapsed = (span.end - span.start) // timedelta(milliseconds=1)
    unknown = elapsed - spent["good"] - spent["bad"] - spent["excluded"]
    made = (found.good_ms, found.bad_ms, found.excluded_ms, found.unknown_ms)
    expected = (spent["good"], spent["bad"], spent["excluded"], unknown)
    known = spent["good"] + spent["bad"]
    share = spent["good"] / known if known else None
    if made != expected or found.attainment != share:
        yield Failure(
            "attainment by a plain loop",
            "attainment",
            sla.name,
            epoch_ms(span.start),
            f"{expected}, {share}",
            f"{made}, {found.attainment}",
        )


def _misses(sla: Sla, judged: Sequence[SlaWindow], window_ms: int) -> Iterator[Failure]:
    """As verdicts come in, a miss opens once, keeps its id, and ends once."""
    known: dict[str, Any] = {}
    for count in range(1, len(judged) + 1, 3):
        for miss in judge_misses(sla, judged[:count]):
            before = known.get(miss.id)
            if before and (before.opened_at, before.start) != (miss.opened_at, miss.start):
                yield Failure(
                    "a miss opens once",
                    "miss",
                    sla.name,
                    epoch_ms(miss.start),
                    str(before.opened_at),
                    str(miss.opened_at),
                )
            if before and before.settled_at and before.end != miss.end:
                yield Failure(
                    "a miss ends once", "miss", sla.name, epoch_ms(miss.start), str(before.end), str(miss.end)
                )
            known[miss.id] = miss
    final = [(epoch_ms(m.start), m.end and epoch_ms(m.end), m.bad_windows) for m in judge_misses(sla, judged)]
    expected = list(_runs(sla, judged, window_ms))
    if final != expected:
        yield Failure("misses by a plain loop", "misses", sla.name, 0, str(expected[:4]), str(final[:4]))


def _runs(sla: Sla, judged: Sequence[SlaWindow], window_ms: int) -> Iterator[tuple[int, int | None, int]]:
    """Start, end (None: open) and bad windows of every miss, as `docs/reference/sla_misses.md` says. Windows are alike
    long, and none is missing."""
    n, limit = 0, sla.for_ms / window_ms
    while n < len(judged):
        opened = _opening(judged, n, limit)
        if opened is None:
            return
        first, n = opened
        last, bad, doubtful, state = n, _bad(judged[first : n + 1]), 0, "open"
        for n in range(n + 1, len(judged)):  # noqa: B020 - the next miss is looked for where this one was settled
            window = judged[n]
            if window.verdict == "bad":
                last, bad, doubtful, state = n, bad + 1, 0, "open"
            elif window.verdict == "excluded":
                state = "over"
            low = window.worst_latency_low_ms
            doubtful += window.verdict == "unknown" and low is not None and low <= window.max_latency_ms
            if window.verdict == "good" or doubtful > limit:
                state = "over"
                break
        else:
            n = len(judged)
        yield (
            epoch_ms(judged[first].window.start),
            epoch_ms(judged[last].window.end) if state == "over" else None,
            bad,
        )
        n += 1


def _opening(judged: Sequence[SlaWindow], since: int, limit: float) -> tuple[int, int] | None:
    """The first bad window of the next miss, and the one with which it opens: tries each pair."""
    for last in range(since, len(judged)):
        for first in range(since, last + 1):
            run = judged[first : last + 1]
            ends = run[0].verdict == run[-1].verdict == "bad" and all(w.verdict != "good" for w in run)
            if ends and _longest_gap(run) <= limit and _bad(run) >= limit:
                return first, last
    return None


def _longest_gap(windows: Sequence[SlaWindow]) -> int:
    """The most windows in a row that are not bad."""
    return max(len(list(gap)) if not is_bad else 0 for is_bad, gap in groupby(windows, lambda w: w.verdict == "bad"))


def _bad(windows: Sequence[SlaWindow]) -> int:
    return sum(window.verdict == "bad" for window in windows)


def of_readers(world: World, seen: Mapping[Key, Visibility]) -> dict[Key, dict[int, WindowTruth]]:
    """The truth of every reader and window."""
    return {key: truth.windows(one.reader, world.start, world.end, world.window_ms) for key, one in seen.items()}
