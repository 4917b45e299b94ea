"""What loses a race is tried again."""

from __future__ import annotations

import time

import pytest

from kafka_sla.ledger.storage.database import retrying


def test_an_attempt_that_takes_longer_than_all_retries_may_is_tried_once_more() -> None:
    begun = []

    def slow() -> int:
        begun.append(time.monotonic())
        time.sleep(0.05)
        if len(begun) == 1:
            raise FileNotFoundError("v1.metadata.json")
        return len(begun)

    assert retrying(slow, (FileNotFoundError,), seconds=0.01) == 2


def test_what_fails_again_is_told_as_it_was() -> None:
    def lost() -> None:
        time.sleep(0.05)
        raise FileNotFoundError("v1.metadata.json")

    with pytest.raises(FileNotFoundError, match="v1"):
        retrying(lost, (FileNotFoundError,), seconds=0.01)
