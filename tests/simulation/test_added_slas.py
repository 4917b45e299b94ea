"""Random worlds through a store to which an SLA is added; the same without a store in `test_worlds`."""

from __future__ import annotations

import pytest

from benchmarks.simulation.added import added

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [3, 13])
def test_what_is_published_is_as_if_the_sla_had_always_been_there(seed: int) -> None:
    """In 13, a group expires while it lags, and comes again before the SLA does."""
    assert list(added(seed)) == []
