"""Every test of the ledger runs in each database."""

from __future__ import annotations

import pytest

from tests.kafka_sla.databases import EACH


@pytest.fixture(params=EACH)
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)
