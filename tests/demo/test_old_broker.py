"""The oldest release that is supported, from its own jars; `make compatibility` runs them all."""

from __future__ import annotations

import pytest

from benchmarks.compatibility import main

pytestmark = pytest.mark.slow


def test_kafka_2_8_can_be_checked_seen_and_rebuilt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2.8.2", "quick"]) == 0

    (row,) = [line for line in capsys.readouterr().out.splitlines() if "2.8.2" in line]
    assert row.startswith("| Apache Kafka 2.8.2 | yes | yes |")
    assert "one group at a time (OffsetFetch 7)" in row
