"""Which load is visible when."""

from __future__ import annotations

import random

import pytest

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import Publication, Slice, visible
from kafka_sla.model.entities import Interval
from tests.kafka_sla.loads import DAY, MINUTE, at, span

FIVE = 5 * MINUTE
DAY_SPAN = span("0:00", "24:00")


def publication(seq: int, interval: Interval) -> Publication:
    return Publication(seq, "a", interval, f"load {seq}", 0)


def minute_by_minute(publications: list[Publication], interval: Interval) -> list[tuple[Interval, Publication]]:
    """The same by brute force: who has the highest number in each minute."""
    found: list[tuple[Interval, Publication]] = []
    for window in interval.windows(60_000):
        covering = [p for p in publications if p.interval.covers(window)]
        if not covering:
            continue
        best = max(covering, key=lambda p: p.seq)
        if found and found[-1][1] is best and found[-1][0].end == window.start:
            found[-1] = (Interval(found[-1][0].start, window.end), best)
        else:
            found.append((window, best))
    return found


def test_a_rerun_of_five_minutes_inside_a_day_shows_the_day_before_and_after_it() -> None:
    day, rerun = publication(1, DAY_SPAN), publication(2, span("10:00", "10:05"))
    assert visible([rerun, day]) == [
        (span("0:00", "10:00"), day),
        (span("10:00", "10:05"), rerun),
        (span("10:05", "24:00"), day),
    ]


def test_a_day_hides_the_288_runs_before_it() -> None:
    runs = [publication(i, Interval(DAY + i * FIVE, DAY + (i + 1) * FIVE)) for i in range(288)]
    day = publication(288, DAY_SPAN)
    assert visible([*runs, day]) == [(DAY_SPAN, day)]
    assert [span for span, _ in visible(runs)] == [run.interval for run in runs]


def test_only_the_asked_interval_is_answered() -> None:
    assert visible([publication(1, DAY_SPAN)], span("23:00", "25:00")) == [
        (span("23:00", "24:00"), publication(1, DAY_SPAN))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_any_pile_of_overlaps_shows_the_highest_number_everywhere(seed: int) -> None:
    dice = random.Random(seed)
    starts = [dice.randrange(0, 300) for _ in range(dice.randrange(1, 30))]
    pile = [
        publication(seq, Interval(DAY + start * MINUTE, DAY + (start + dice.choice((1, 5, 60, 200))) * MINUTE))
        for seq, start in enumerate(starts)
    ]
    asked = span("0:20", "5:00")
    assert visible(pile, asked) == minute_by_minute(pile, asked)


def test_each_cluster_has_its_own_publications(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], DAY_SPAN, "both", {"a": 0, "b": 0})
    ledger.publications.publish(["b"], span("1:00", "24:00"), "only b", {"b": 0})
    assert ledger.publications.slices(None, DAY_SPAN) == [
        Slice("a", DAY_SPAN, "both"),
        Slice("b", span("0:00", "1:00"), "both"),
        Slice("b", span("1:00", "24:00"), "only b"),
    ]
    assert ledger.publications.slices(["b"], span("2:00", "3:00")) == [Slice("b", span("2:00", "3:00"), "only b")]


@pytest.mark.parametrize("order", [1, -1])
def test_288_runs_in_any_order_cover_the_day(ledger: Ledger, order: int) -> None:
    runs = [Interval(DAY + i * FIVE, DAY + (i + 1) * FIVE) for i in range(288)][::order]
    for run in runs[:24]:
        ledger.publications.publish(["a"], run, f"{run.start:%H%M}", 0)
    found = ledger.publications.slices(["a"], DAY_SPAN)
    assert [(s.interval, s.load_id) for s in found] == [(run, f"{run.start:%H%M}") for run in sorted(runs[:24])]


def test_publishing_again_changes_nothing_also_after_a_newer_load(ledger: Ledger) -> None:
    ledger.publications.publish(["a"], DAY_SPAN, "first", 0)
    ledger.publications.publish(["a"], DAY_SPAN, "second", 0)
    ledger.publications.publish(["a"], DAY_SPAN, "first", 0)
    assert ledger.publications.slices(["a"], DAY_SPAN) == [Slice("a", DAY_SPAN, "second")]


def test_a_load_is_retired_when_newer_ones_together_hide_it(ledger: Ledger) -> None:
    ledger.publications.publish(["a"], span("0:00", "2:00"), "old", 0)
    ledger.publications.publish(["a"], span("0:00", "1:00"), "new 1", 0)
    assert ledger.publications.retired_loads(at("24:00").replace(year=2999)) == []
    ledger.publications.publish(["a"], span("1:00", "2:00"), "new 2", 0)
    assert ledger.publications.retired_loads(at("24:00").replace(year=2999)) == ["old"]
    assert ledger.publications.retired_loads(DAY.replace(year=2000)) == []


def test_a_load_that_still_shows_for_one_cluster_is_not_retired(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], DAY_SPAN, "both", 0)
    ledger.publications.publish(["a"], DAY_SPAN, "only a", 0)
    assert ledger.publications.retired_loads(DAY.replace(year=2999)) == []


def test_the_latest_publication_ends_at_or_before_the_asked_time(ledger: Ledger) -> None:
    ledger.publications.publish(["a"], span("1:00", "2:00"), "later", 0)
    ledger.publications.publish(["a"], span("0:00", "1:00"), "earlier", 0)
    latest = [ledger.publications.latest("a", at(clock)) for clock in ("3:00", "2:00", "1:30", "0:30")]
    assert [found and found.load_id for found in latest] == ["later", "later", "earlier", None]


class TestCarry:
    def test_it_is_the_end_of_what_is_published_before(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], span("0:00", "1:00"), "one", 7)
        assert ledger.publications.carry("a", at("1:00")) == (at("1:00"), 7)
        assert ledger.publications.carry("a", at("9:00")) == (at("1:00"), 7)
        assert ledger.publications.carry("b", at("9:00")) is None
        assert ledger.publications.carry("a", at("0:00")) is None

    def test_inside_a_published_interval_it_is_the_asked_time_itself(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], DAY_SPAN, "day", 7)
        assert ledger.publications.carry("a", at("10:05")) == (at("10:05"), 7)
        assert ledger.publications.carry("a", at("10:05") + MINUTE / 2) == (at("10:05"), 7)

    def test_it_is_found_years_back(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], span("0:00", "1:00"), "one", 7)
        assert ledger.publications.carry("a", DAY.replace(year=2031)) == (at("1:00"), 7)

    def test_rows_measured_before_older_facts_landed_are_not_trusted_from_there_on(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], span("0:00", "4:00"), "one", ledger.ingestions.readable_seq("a"))
        ledger.ingestions.record("a", span("2:30", "3:00"))
        assert ledger.publications.carry("a", at("5:00")) == (at("2:30"), 0)
        ledger.ingestions.record("a", span("0:00", "1:00"))
        assert ledger.publications.carry("a", at("5:00")) is None

    def test_rows_measured_after_the_facts_landed_are_trusted(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], span("0:00", "1:00"), "before", ledger.ingestions.readable_seq("a"))
        ledger.ingestions.record("a", span("0:00", "1:00"))
        ledger.publications.publish(["a"], span("1:00", "2:00"), "after", ledger.ingestions.readable_seq("a"))
        assert ledger.publications.carry("a", at("3:00")) == (at("2:00"), 1)

    def test_newer_facts_and_other_clusters_do_not_matter(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], span("0:00", "1:00"), "one", ledger.ingestions.readable_seq("a"))
        ledger.ingestions.record("a", span("1:00", "2:00"))
        ledger.ingestions.record("b", span("0:00", "1:00"))
        assert ledger.publications.carry("a", at("3:00")) == (at("1:00"), 0)
