"""Three hundred worlds of one number each: what is made of their facts agrees with what truly happened in them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from benchmarks.simulation.checking import outcome
from benchmarks.simulation.planted import Bug, bugs, path_of
from benchmarks.simulation.seeing import plan
from benchmarks.simulation.shrink import Shrinker
from benchmarks.simulation.world import World

_SEEDS, _CHUNK = 300, 20
_ONCE_FAILED = (
    477,
    637,
    661,
    749,
    774,
    1052,
    1081,
    1127,
    1217,
    1450,
    1489,
    1492,
    1513,
    1705,
    1793,
    1817,
    1931,
    1945,
    2061,
    2461,
    2621,
    2649,
    2909,
    3077,
    3113,
    3205,
    3293,
    3409,
    3969,
    4042,
    4269,
    4461,
    4480,
    5041,
    5103,
    5147,
    5749,
    6724,
    6897,
    7398,
    7441,
    7500,
    9273,
    9277,
    9589,
    9905,
    10169,
    10259,
    10869,
    11000,
    12016,
)
"""Beyond the first three hundred."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    pa.set_cpu_count(1)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(_CHUNK, _SEEDS, _CHUNK))]
)
def test_every_invariant_holds_in_every_world(first: int) -> None:
    failed = [
        f"make simulate SEED={seed}: {failure}"
        for seed in range(first, first + _CHUNK)
        for failure in outcome(seed).failures
    ]

    assert failed == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", _ONCE_FAILED)
def test_worlds_that_failed_once_hold(seed: int) -> None:
    assert outcome(seed).failures == ()


def test_the_same_number_is_the_same_world() -> None:
    assert outcome(11) == outcome(11)


@pytest.mark.parametrize("bug", bugs(), ids=lambda bug: bug.name)
def test_a_planted_bug_has_its_place(bug: Bug) -> None:
    assert path_of(bug.module).read_text().count(bug.old) == 1
    assert bug.new != bug.old


def test_at_least_twenty_bugs_are_planted() -> None:
    assert len(bugs()) >= 20


@pytest.mark.slow
def test_a_failing_world_is_shrunk_to_one_reader_with_few_commits(failing: tuple[World, tuple[str, str]]) -> None:
    made, kind = failing
    smallest = Shrinker(made, plan(made), kind)

    assert smallest.shrink()
    assert len(smallest.world.readers) == 1
    assert len(smallest.world.readers[0].commits) < sum(len(reader.commits) for reader in made.readers)
