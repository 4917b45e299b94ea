"""Producers whose clocks are wrong: record timestamps count only where polled log ends do not contradict them. A wrong
clock makes bounds wider and never hides an outage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import pytest

from tests.spark_jobs.conftest import Row, commit, point, record

Measure = Callable[..., list[Row]]
SECONDS, RUN_S, HOUR = 1_800, 300, 3_600
DEAD_FROM = 600


@dataclass(frozen=True)
class Log:
    """A record every second: when it was appended, and the timestamp that its producer gave it."""

    stamps: list[float]

    def end(self, now: float) -> int:
        """Log end offset: record n was appended at second n."""
        return max(0, min(len(self.stamps), int(now) + 1))

    def run(self, end: float) -> list[Row]:
        """What the run of [end - 300, end) sees 3 s later: a poll, and answers for every 10 s and a window before."""
        now, rows = end + 3, list[Row]()
        log_end = self.end(now)
        largest = list(accumulate(self.stamps[:log_end], max))
        for asked in range(int(end) - RUN_S - 60, int(end) + 1, 10):
            found = next((n for n, stamp in enumerate(largest) if stamp >= asked), log_end)
            if found < log_end and self.stamps[found] > now + 10:
                continue  # the source drops what a record of the future hides
            rows.append(point(asked, found, source="list_offsets"))
            if found < log_end:
                rows += record(self.stamps[found], found)
        return [*rows, point(now, log_end, log_start_offset=0)]


def facts_of(stamp_of: Callable[[float], float], sampled_every: int | None = None) -> list[Row]:
    log = Log([stamp_of(n) for n in range(SECONDS + 700)])
    rows = [point(-297, 0, log_start_offset=0), point(3, log.end(3), log_start_offset=0)]
    rows += [row for end in range(RUN_S, SECONDS + 1, RUN_S) for row in log.run(end)]
    times = range(0, SECONDS + 1, sampled_every) if sampled_every else ()
    return [*rows, *(point(t + 0.5, log.end(t + 0.5), log_start_offset=0) for t in times)]


def commits_until(end: int) -> list[Row]:
    """A group that commits every 2 s all that was appended."""
    return [commit(t + 0.5, t + 1) for t in range(1, end, 2)]


HEALTHY, DEAD = commits_until(SECONDS), commits_until(DEAD_FROM)
CLOCKS = {
    "an hour ahead": lambda n: n + HOUR,
    "five minutes ahead": lambda n: n + 300,
    "an hour behind": lambda n: n - HOUR,
    "five minutes behind": lambda n: n - 300,
    "every tenth is 0": lambda n: -1_793_491_200.0 if n % 10 == 0 else n,
    "every tenth is -1 ms": lambda n: -1_793_491_200.001 if n % 10 == 0 else n,
    "seconds taken for milliseconds": lambda n: -1_793_491_200.0 + (1_793_491_200 + n) / 1_000,
}
clocks = pytest.mark.parametrize("clock", CLOCKS)


def true_age(row: Row, until: int) -> float:
    """Age in ms of the backlog at the row's end by the time of append."""
    end = row["window_end"].timestamp() - 1_793_491_200
    position = max((r["committed_offset"] for r in commits_until(until) if r["at"] < row["window_end"]), default=0)
    return (end - position) * 1_000 if position <= end else 0.0


@clocks
@pytest.mark.parametrize("sampled_every", [None, 15])
def test_bounds_of_the_backlog_age_hold_whatever_clocks_say(
    measure: Measure, clock: str, sampled_every: int | None
) -> None:
    points = facts_of(CLOCKS[clock], sampled_every)
    for commits, until in ((HEALTHY, SECONDS), (DEAD, DEAD_FROM)):
        for row in measure(points, commits, 0, SECONDS):
            if row["backlog_age_ms"] is not None:
                age = true_age(row, until)
                high = row["backlog_age_high_ms"]
                assert row["backlog_age_low_ms"] <= age + 10 and (high is None or age - 10 <= high), row


@clocks
def test_a_healthy_group_is_never_certainly_late(measure: Measure, clock: str) -> None:
    rows = measure(facts_of(CLOCKS[clock]), HEALTHY, 0, SECONDS)
    late = [
        row for row in rows if max(row["backlog_age_max_low_ms"] or 0, row["records_latency_max_low_ms"] or 0) > 10_000
    ]
    assert late == []
    assert [row["states"][0]["state"] for row in rows[6:]] == ["steady"] * (len(rows) - 6)


@clocks
def test_a_healthy_group_is_on_time_for_sure_where_the_log_end_is_sampled(measure: Measure, clock: str) -> None:
    rows = measure(facts_of(CLOCKS[clock], 5), HEALTHY, 0, SECONDS)
    highs = [row["backlog_age_max_high_ms"] for row in rows[1:]]
    assert [high is not None and high <= 30_000 for high in highs] == [True] * 29
    assert {row["unknown_reason"] for row in rows} == {None}


@clocks
def test_a_dead_group_is_late_for_sure_after_the_threshold_and_two_observations(measure: Measure, clock: str) -> None:
    rows = measure(facts_of(CLOCKS[clock]), DEAD, 0, SECONDS)
    sure = [
        row["window_end"].timestamp() - 1_793_491_200 for row in rows if (row["backlog_age_max_low_ms"] or 0) > 30_000
    ]
    assert sure[0] <= DEAD_FROM + 30 + 2 * RUN_S
    assert sure == list(range(int(sure[0]), SECONDS + 1, 60)), "in every window from then on"
    assert sure[0] > DEAD_FROM


def test_records_that_were_old_when_they_were_appended_are_named_with_their_age(measure: Measure) -> None:
    rows = measure(facts_of(CLOCKS["an hour behind"]), HEALTHY, 0, SECONDS)
    assert all(60_000 < row["append_delay_ms"] <= HOUR * 1_000 for row in rows[6:-5])
    assert {row["append_delay_ms"] for row in measure(facts_of(lambda n: n), HEALTHY, 0, SECONDS)} == {None}


def test_honest_timestamps_are_believed_to_the_second(measure: Measure) -> None:
    """Also those of a producer whose clock differs by less than clocks may."""
    for skew_s in (-4, 0, 4):
        rows = measure(facts_of(lambda n, by=skew_s: n + by), DEAD, 0, SECONDS)
        ages = [row["backlog_age_ms"] for row in rows if row["backlog_age_ms"]]
        assert ages[-1] == pytest.approx((SECONDS - DEAD_FROM - skew_s) * 1_000, abs=11_000)
