"""Random worlds through a store to which an SLA is added; the same without a store in `test_worlds`."""

from __future__ import annotations

from benchmarks.simulation.added import added


def test_what_is_published_is_as_if_the_sla_had_always_been_there() -> None:
    assert list(added(3)) == []
