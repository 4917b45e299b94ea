"""Which tests run in one process when `make test` or `make slow` uses several, and in which order: what is slow to
start is started once, and what takes long is not left for the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest
from xdist.scheduler import LoadScopeScheduling

SHARES = (
    ("tests/dags/test_backfill.py",),  # an Airflow with all its processes
    ("tests/dags/test_drivers_elsewhere.py",),  # a YARN
    ("tests/dags/",),  # an Airflow database and a broker
    ("tests/spark_jobs/", "tests/expectations/", "tests/kafka_sla/validation/"),  # a Spark session
    ("tests/kafka_sla/sources/", "tests/demo/"),  # brokers of every kind
    ("tests/kafka_sla/web/", "tests/kafka_sla/tasks/"),  # Airflow's web server over one world
    ("tests/kafka_sla/test_object_stores.py",),
    ("tests/stories/",),  # a run of all stories, and a minute of traffic
    ("tests/simulation/",),
    ("tests/kafka_sla/spark/",),
    ("tests/kafka_sla/cli/test_main.py",),
    ("tests/kafka_sla/pipeline/",),
)
"""How the ids of a share's tests begin, the longest share first; every other file is a share of its own."""


def share_of(test_id: str) -> str:
    """The name of the share that a test belongs to: how its ids begin."""
    return next((share[0] for share in SHARES if test_id.startswith(share)), test_id.partition("::")[0])


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests share by share."""
    shares: dict[str, list[pytest.Item]] = {share[0]: [] for share in SHARES}
    for item in items:
        shares.setdefault(share_of(item.nodeid), []).append(item)
    return list(chain.from_iterable(shares.values()))


class Shares(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each process a share whenever it has nearly done its last one."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)
