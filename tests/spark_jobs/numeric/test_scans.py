"""Scans along sorted rows say what a loop over the rows says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kafka_sla.spark_jobs.numeric.arrays import NONE, Ints
from kafka_sla.spark_jobs.numeric.scans import once_a_run, running, time_order


def looped(values: list[int], start: list[bool], *, largest: bool) -> list[int]:
    found: list[int] = []
    known: list[int] = []
    for value, begins in zip(values, start, strict=True):
        known = [] if begins else known
        known = known if value == NONE else [*known, value]
        found.append((max(known) if largest else min(known)) if known else int(NONE))
    return found


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("most", [3, 10**9, 2**62], ids=["few", "usual offsets", "offsets that side by side overflow"])
def test_the_smallest_and_largest_so_far_are_those_of_the_run(most: int, largest: bool) -> None:
    lots = random.Random(most)
    for length in [0, 1, *range(2, 40)]:
        values = [NONE if lots.random() < 0.3 else lots.randint(0, most) for _ in range(length)]
        start = [n == 0 or lots.random() < 0.2 for n in range(length)]

        found = running(np.array(values, dtype=np.int64), np.array(start, dtype=bool), largest=largest)

        assert found.tolist() == looped(values, start, largest=largest)


@pytest.mark.parametrize("latest", [5, 10**15, 2**61], ids=["few", "usual times", "times that side by side overflow"])
def test_rows_are_ordered_by_key_time_and_offset_and_equal_ones_as_they_came(latest: int) -> None:
    lots = random.Random(latest)
    for length in [0, 1, *range(2, 40)]:
        key, at, offset = (
            np.array([lots.randint(0, most) for _ in range(length)], dtype=np.int64) for most in (4, latest, 3)
        )

        by_offset, by_time = time_order(key, at, offset).tolist(), time_order(key, at).tolist()

        assert by_offset == sorted(range(length), key=lambda n: (key[n], at[n], offset[n]))
        assert by_time == sorted(range(length), key=lambda n: (key[n], at[n]))


def test_a_run_of_equal_keys_is_asked_about_once() -> None:
    asked: list[tuple[int, int]] = []

    def answer(key: Ints, at: Ints) -> Ints:
        asked.extend(zip(key.tolist(), at.tolist(), strict=True))
        return key * 100 + at

    found = once_a_run(answer, np.array([1, 1, 1, 2, 2, 1]), np.array([7, 7, 8, 8, 8, 7]))

    assert found.tolist() == [107, 107, 108, 208, 208, 107]
    assert asked == [(1, 7), (1, 8), (2, 8), (1, 7)]
    assert once_a_run(answer, np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []
