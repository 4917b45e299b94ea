"""The databases in which a store may be kept."""

import pytest

EACH = ("sqlite", "postgres")


@pytest.fixture(params=EACH)
def in_each(request: pytest.FixtureRequest) -> str:
    """`database = in_each` where databases differ in what is tested: in their SQL, in locks, in where they lie."""
    return str(request.param)
