"""Which load is visible when."""

from __future__ import annotations

import random

import pytest

from kafka_sla.ledger.configurations import Rules
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import LoadExtent, Publication, Slice, by_load, visible
from kafka_sla.model.entities import Interval
from tests.kafka_sla.loads import DAY, MINUTE, at, span

FIVE = 5 * MINUTE
DAY_SPAN = span("0:00", "24:00")


def publication(seq: int, interval: Interval) -> Publication:
    return Publication(seq, "a", interval, f"load {seq}", 0, interval.end)


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


def test_what_was_retired_is_forgotten_but_for_what_is_still_needed(ledger: Ledger) -> None:
    for name in ("one", "two", "three"):
        ledger.publications.publish(["a"], DAY_SPAN, name, 0)
    long_ago, soon = (DAY.replace(year=year) for year in (2000, 2999))

    assert ledger.publications.forget_retired(long_ago, []) == []
    assert ledger.publications.forget_retired(soon, ["one"]) == ["two"]
    assert ledger.publications.retired_loads(soon) == ["one"]
    assert ledger.publications.known_loads(["one", "two", "three"]) == {"one", "three"}


def test_the_latest_publication_ends_at_or_before_the_asked_time(ledger: Ledger) -> None:
    ledger.publications.publish(["a"], span("1:00", "2:00"), "later", 0)
    ledger.publications.publish(["a"], span("0:00", "1:00"), "earlier", 0)
    latest = [ledger.publications.latest("a", at(clock)) for clock in ("3:00", "2:00", "1:30", "0:30")]
    assert [found and found.load_id for found in latest] == ["later", "later", "earlier", None]


def test_of_two_publications_that_end_together_the_newer_one_is_the_latest(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], span("0:00", "2:00"), "first", {"a": 3, "b": 4})
    ledger.publications.publish(["a"], span("1:00", "2:00"), "second", 5)
    latest = [ledger.publications.latest(cluster, at("2:00")) for cluster in "ab"]

    assert [(found.load_id, found.interval, found.facts_seq) for found in latest if found] == [
        ("second", span("1:00", "2:00"), 5),
        ("first", span("0:00", "2:00"), 4),
    ]


def test_clusters_are_incomplete_until_all_of_the_interval_is_published(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], span("0:00", "1:00"), "one", 0)
    ledger.publications.publish(["a"], span("1:00", "2:00"), "two", 0)

    assert ledger.publications.incomplete(["a", "b", "c"], span("0:00", "2:00")) == ["b", "c"]
    assert ledger.publications.incomplete(["a", "b"], span("0:30", "1:01")) == ["b"]
    assert ledger.publications.incomplete(["a", "b"], span("0:30", "1:00")) == []


def test_loads_start_where_the_first_of_them_does_unless_one_is_not_published(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], span("1:00", "2:00"), "later", 0)
    ledger.publications.publish(["a"], span("0:00", "1:00"), "earlier", 0)
    asked = (["later"], ["later", "earlier", "later"], ["earlier", "unheard of"], [])

    assert [ledger.publications.start_of(loads) for loads in asked] == [at("1:00"), at("0:00"), None, None]


def test_a_load_that_was_withdrawn_is_shown_no_more_and_never_again(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], DAY_SPAN, "broken", 0)
    ledger.publications.publish(["c"], DAY_SPAN, "sound", 0)

    for _ in range(2):
        ledger.publications.withdraw(["broken", "unheard of"])
        ledger.publications.publish(["a"], DAY_SPAN, "broken", 0)

    assert ledger.publications.slices(None, DAY_SPAN) == [Slice("c", DAY_SPAN, "sound")]
    assert ledger.publications.retired_loads(DAY.replace(year=2999)) == ["broken"]
    assert ledger.publications.known_loads(["broken", "sound", "unheard of"]) == {"broken", "sound"}
    assert ledger.publications.known_loads([]) == set()


def test_the_extent_of_a_load_is_where_it_was_made_visible_and_for_whom_some_of_it_is(ledger: Ledger) -> None:
    ledger.publications.publish(["a", "b"], span("0:00", "2:00"), "both", 0)
    ledger.publications.publish(["a"], span("1:00", "2:00"), "only a", 0)

    assert ledger.publications.extents(span("0:00", "2:00")) == {
        "both": LoadExtent(frozenset("ab"), span("0:00", "2:00"), False),
        "only a": LoadExtent(frozenset("a"), span("1:00", "2:00"), False),
    }
    assert set(ledger.publications.extents(span("0:00", "1:00"))) == {"both"}
    assert ledger.publications.extents(span("2:00", "3:00")) == {}

    ledger.publications.publish(["a"], span("0:00", "2:00"), "newer", 0)

    assert ledger.publications.extents(span("0:00", "1:01")) == {
        "both": LoadExtent(frozenset("b"), span("0:00", "2:00"), True),
        "only a": LoadExtent(frozenset(), span("1:00", "2:00"), True),
        "newer": LoadExtent(frozenset("a"), span("0:00", "2:00"), False),
    }
    assert set(ledger.publications.extents(span("0:00", "1:00"))) == {"both", "newer"}
    assert ledger.publications.extents(span("2:00", "3:00")) == {}


def test_slices_are_all_of_a_load_when_none_of_its_clusters_and_minutes_is_missing() -> None:
    whole = span("0:00", "2:00")
    extent = LoadExtent(frozenset("ab"), whole, False)
    shown = [Slice("a", whole, "one"), Slice("b", whole, "one"), Slice("a", whole, "two")]

    assert extent.is_all_of(by_load(shown)["one"])
    assert not extent.is_all_of(by_load(shown)["two"])
    assert not extent.is_all_of([shown[0], Slice("b", span("0:00", "1:59"), "one")])
    assert not LoadExtent(frozenset("ab"), whole, True).is_all_of(by_load(shown)["one"])


class TestMerge:
    TWO_HOURS = span("0:00", "2:00")

    def halves(self, ledger: Ledger, first: int = 0, second: int = 0) -> list[Slice]:
        """Two loads of an hour each that had seen facts up to these landings."""
        ledger.publications.publish(["a", "b"], span("0:00", "1:00"), "one", first)
        ledger.publications.publish(["a", "b"], span("1:00", "2:00"), "two", second)
        return ledger.publications.slices(None, self.TWO_HOURS)

    def seen(self, ledger: Ledger, slices: list[Slice]) -> int:
        """Up to which landing the merged load of cluster a says that it saw the facts."""
        assert ledger.publications.merge(slices, "merged")
        found = ledger.publications.latest("a", at("2:00"))
        assert found is not None
        return found.facts_seq

    def test_a_merged_load_is_shown_in_the_place_of_its_parts_as_old_as_the_newest_of_them(
        self, ledger: Ledger
    ) -> None:
        parts = self.halves(ledger)
        ledger.publications.publish(["c"], self.TWO_HOURS, "another", 0)
        newest = ledger.publications.latest("a", at("2:00"))

        assert ledger.publications.merge(parts, "merged")

        assert ledger.publications.slices(None, DAY_SPAN) == [
            Slice("a", self.TWO_HOURS, "merged"),
            Slice("b", self.TWO_HOURS, "merged"),
            Slice("c", self.TWO_HOURS, "another"),
        ]
        assert ledger.publications.retired_loads(DAY.replace(year=2999)) == ["one", "two"]
        merged = ledger.publications.latest("a", at("2:00"))
        assert merged and newest and merged.published_at == newest.published_at

    def test_parts_of_which_one_was_replaced_meanwhile_stay_as_they_are(self, ledger: Ledger) -> None:
        parts = self.halves(ledger)
        ledger.publications.publish(["b"], span("0:20", "0:30"), "meanwhile", 0)
        shown = ledger.publications.slices(None, DAY_SPAN)

        assert not ledger.publications.merge(parts, "merged")

        assert ledger.publications.slices(None, DAY_SPAN) == shown

    @pytest.mark.parametrize(
        ("first", "landings", "seen"),
        [
            pytest.param(1, ["0:30", "1:00", "1:30"], 3, id="none changed what had not seen it"),
            pytest.param(1, ["0:30", "0:59", "0:30"], 1, id="the second and third changed the first hour"),
            pytest.param(1, ["0:30", "1:30", "0:30"], 2, id="the third did"),
            pytest.param(0, ["0:30", "1:00", "1:30"], 0, id="the first did"),
        ],
    )
    def test_a_merged_load_has_seen_the_facts_before_the_first_that_one_of_its_parts_lacks(
        self, ledger: Ledger, first: int, landings: list[str], seen: int
    ) -> None:
        for clock in (*landings, "0:00"):  # the last one lands after both hours were measured
            ledger.ingestions.record("a", Interval(at(clock), at("2:00")))

        assert self.seen(ledger, self.halves(ledger, first, 3)) == seen

    @pytest.mark.parametrize(("cluster", "seen"), [("a", 0), ("b", 1)])
    def test_a_merged_load_knows_no_sla_of_its_cluster_that_one_of_its_parts_does_not(
        self, ledger: Ledger, cluster: str, seen: int
    ) -> None:
        ledger.rule_versions.adopt(cluster, Rules("first", "shared", {}))
        ledger.rule_versions.adopt(cluster, Rules("second", "shared", {"new": "its rules"}))

        assert self.seen(ledger, self.halves(ledger, 0, 1)) == seen


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

    def test_it_is_the_end_of_a_whole_window(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], DAY_SPAN, "day", 7)
        assert ledger.publications.carry("a", at("10:07"), 300_000) == (at("10:05"), 7)
        assert ledger.publications.carry("a", at("0:04"), 300_000) is None

    def test_where_nothing_of_a_publication_is_trusted_it_is_the_end_of_the_one_before(self, ledger: Ledger) -> None:
        ledger.publications.publish(["a"], span("0:00", "1:00"), "one", 0)
        ledger.publications.publish(["a"], span("1:00", "2:00"), "two", 0)
        ledger.ingestions.record("a", Interval(at("1:00") + MINUTE / 2, at("1:30")))
        assert ledger.publications.carry("a", at("3:00")) == (at("1:00"), 0)

    def test_what_each_publication_had_seen_counts_for_itself(self, ledger: Ledger) -> None:
        """The first facts landed before any was measured, the second ones after the newest."""
        ledger.ingestions.record("a", span("0:00", "1:00"))
        ledger.publications.publish(["a"], span("0:00", "1:00"), "one", 1)
        ledger.publications.publish(["a"], span("1:00", "2:00"), "two", 0)
        assert ledger.publications.carry("a", at("3:00")) == (at("1:00"), 1)
