"""Scans along sorted rows say what a loop over the rows says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kafka_sla.spark_jobs.numeric.arrays import NONE
from kafka_sla.spark_jobs.numeric.scans import running


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
