"""What one step of a cluster says of its pairs: latencies from pooled totals, their bounds, and a verdict."""

from __future__ import annotations

import random

import pytest

from kafka_sla.spark_jobs.brokers.pairs import said_of
from tests.spark_jobs.conftest import Row
from tests.spark_jobs.fetching import Fetching, around, between

Pairs = dict[tuple[int, int], Row]


def _said(steps: list[Row]) -> Pairs:
    """By follower and leader."""
    return {(int(row["follower"]), row["leader"]): row for row in said_of(steps)}


def _verdict(pairs: Pairs) -> tuple[str, int | None]:
    (found,) = {(row["verdict"], row["verdict_broker"]) for row in pairs.values()}
    return found


def test_the_pairs_of_a_delayed_broker_stand_out_while_the_plain_total_is_the_fetch_wait() -> None:
    pairs = _said(Fetching(network=around(0)).step())

    assert {(1, 0), (0, 1), (2, 0), (0, 2)} == {pair for pair, row in pairs.items() if row["slow"]}
    assert [101, 4, 101, 4, 101, 101] == pytest.approx(
        [pairs[f, b]["fetch_latency_ms"] for f, b in ((0, 1), (1, 2), (2, 0), (2, 1), (0, 2), (1, 0))], abs=2
    )
    assert all(row["leader_total_ms"] == pytest.approx(501) for row in pairs.values())
    assert all(row["total_local_ms"] == pytest.approx(1) for row in pairs.values())
    assert ("slow_broker", 0) == _verdict(pairs)
    assert all(row["confidence"] > 0.9 for row in pairs.values())
    assert {"solved"} == {row["method"] for row in pairs.values()}


def test_followers_that_wait_for_the_same_records_are_told_apart() -> None:
    """At a few records a second a near follower waits longer than a far one: round trip less mean wait is wrong."""
    network = around(0)
    flow = Fetching(network=network, wait=lambda follower, leader: 160.0 - network(follower, leader))

    pairs = _said(flow.step())

    assert ("slow_broker", 0) == _verdict(pairs)
    assert 101 == pytest.approx(pairs[0, 1]["fetch_latency_ms"], abs=3)
    assert 4 == pytest.approx(pairs[2, 1]["fetch_latency_ms"], abs=3)


def test_one_slow_pair_is_no_slow_broker() -> None:
    pairs = _said(Fetching(network=between((1, 2))).step())

    assert ("slow_pair", None) == _verdict(pairs)
    assert {(1, 2), (2, 1)} == {pair for pair, row in pairs.items() if row["slow"]}
    assert {"the pair 1–2 takes about 101 ms, the others 4 ms"} == {row["verdict_reason"] for row in pairs.values()}


def test_a_broker_that_is_slow_itself_is_named_like_one_behind_slow_links() -> None:
    pairs = _said(Fetching(local=lambda leader: 200.0 if leader == 2 else 1.0).step())

    assert ("slow_broker", 2) == _verdict(pairs)
    assert [203, 4] == pytest.approx([pairs[pair]["fetch_latency_ms"] for pair in ((0, 2), (2, 0))], abs=3)


@pytest.mark.parametrize(("usual", "verdict"), [(3.0, "even"), (150.0, "slow_all")])
@pytest.mark.parametrize("brokers", [2, 3, 6])
def test_pairs_that_are_alike_are_even_unless_all_are_slow(brokers: int, usual: float, verdict: str) -> None:
    pairs = _said(Fetching(brokers, between(usual=usual)).step())

    assert (verdict, None) == _verdict(pairs)
    assert {verdict == "slow_all"} == {row["slow"] for row in pairs.values()}


@pytest.mark.parametrize("wait", [0.0, 60.0, 500.0])
@pytest.mark.parametrize("brokers", [4, 8])
def test_a_slow_broker_among_many_is_named(brokers: int, wait: float) -> None:
    pairs = _said(Fetching(brokers, around(3), lambda follower, leader: wait).step())

    assert ("slow_broker", 3) == _verdict(pairs)


def test_one_slow_pair_among_very_many_is_not_claimed_with_confidence() -> None:
    """Thirty equations for 435 pairs: one of them hardly moves a mean when fetches wait for half a second."""
    pairs = _said(Fetching(30, between((3, 9), slow=30.0)).step())

    assert ("even", None) == _verdict(pairs) or min(row["confidence"] or 0 for row in pairs.values()) < 0.9
    assert all(row["fetch_latency_high_ms"] > 31 for pair, row in pairs.items() if pair == (3, 9))


def test_two_slow_pairs_fit_no_simple_explanation_and_keep_their_figures() -> None:
    pairs = _said(Fetching(5, between((0, 1), (2, 3)), lambda follower, leader: 1.0).step())

    assert ("unknown", None) == _verdict(pairs)
    assert {None} == {row["slow"] for row in pairs.values()}
    assert [101, 101, 4] == pytest.approx([pairs[pair]["fetch_latency_ms"] for pair in ((0, 1), (3, 2), (1, 2))], abs=5)


@pytest.mark.parametrize("brokers", [2, 3, 4, 7])
def test_the_truth_lies_inside_the_bounds(brokers: int) -> None:
    chance = random.Random(brokers)
    links = {(a, b): chance.choice([1.0, 3.0, 20.0, 250.0]) for a in range(brokers) for b in range(a)}
    waits = {(a, b): chance.uniform(0, 500) for a in range(brokers) for b in range(brokers)}
    flow = Fetching(brokers, lambda a, b: links[max(a, b), min(a, b)], lambda a, b: waits[a, b])

    for (follower, leader), row in _said(flow.step()).items():
        truth = flow.trip(follower, leader) - flow.wait(follower, leader)
        assert row["fetch_latency_low_ms"] <= truth <= row["fetch_latency_high_ms"]
        assert row["fetch_latency_low_ms"] <= row["fetch_latency_ms"] <= row["fetch_latency_high_ms"]
        assert row["total_ms"] == pytest.approx(row["wait_ms"] + row["fetch_latency_ms"])


def test_a_leader_that_answers_others_too_gives_no_equation() -> None:
    """Brokers that are controllers as well hide their controllers' fetches in the same totals."""
    more = {"requests": 600.0, "leader_total": 240_000.0, "leader_remote": 240_000.0}

    pairs = _said([step | {name: step[name] + count for name, count in more.items()} for step in Fetching(2).step()])

    assert {"simple"} == {row["method"] for row in pairs.values()}
    assert all(row["fetch_latency_high_ms"] - row["fetch_latency_low_ms"] > 400 for row in pairs.values())


def test_an_idle_cluster_with_a_silent_exporter_is_not_called_even() -> None:
    """Without broker 2's word no leader's fetches are all known, and waits of half a second hide what lies between."""
    known = [step for step in Fetching(4, around(0)).step() if 2 not in (step["leader"], int(step["follower"]))]

    assert ("unknown", None) == _verdict(_said(known))


def test_steps_without_a_figure_of_any_pair_have_no_verdict() -> None:
    nothing = dict.fromkeys(("fetches", "total", "requests", "leader_total", "leader_remote"))

    pairs = _said([step | nothing | {"unknown_reason": "it restarted"} for step in Fetching().step()])

    assert ("unknown", None) == _verdict(pairs)
    assert {("it restarted", None)} == {(row["unknown_reason"], row.get("fetch_latency_ms")) for row in pairs.values()}


def test_a_wait_that_seems_longer_than_the_whole_is_no_speed_of_0_ms() -> None:
    """Times are rounded to whole milliseconds: 10 ms observed, 12 ms waited."""
    step = {"fetches": 100.0, "total": 1_000.0, "requests": 100.0, "leader_total": 1_200.0, "leader_remote": 1_200.0}
    names = [("1", 0), ("0", 1)]

    pairs = said_of([step | {"leader": b, "follower": f, "unknown_reason": None} for f, b in names])

    for row in pairs:
        assert (row.get("fetch_latency_ms"), row.get("slow"), row["total_ms"], row["wait_ms"]) == (None, None, 10, 12)
        assert row["unknown_reason"].startswith("10.0 ms were observed of which 12.0 ms were waited")

    below = step | {"leader_total": 1_100.0, "leader": 0, "unknown_reason": None}
    for follower in ("1", "consumers"):
        row = said_of([below | {"follower": follower}])[0]
        assert (row.get("fetch_latency_ms"), row["total_local_ms"], row["total_ms"]) == (None, None, 11)


def test_a_leader_whose_own_part_cannot_be_told_does_not_hide_a_slow_network() -> None:
    """Half a millisecond more waited than taken, of 900 ms from the follower's side."""
    step = {"fetches": 100.0, "total": 90_000.0, "requests": 100.0, "leader_total": 50_000.0, "leader_remote": 50_050.0}
    pairs = said_of([step | {"leader": b, "follower": f, "unknown_reason": None} for f, b in (("1", 0), ("0", 1))])

    for row in pairs:
        assert (None, 400.0) == (row["total_local_ms"], row["fetch_latency_ms"])
        assert 401.0 <= row["fetch_latency_high_ms"] <= 420.0
