"""Commits to two branches of one table at once."""

from __future__ import annotations

from pyiceberg.table import Table, Transaction

from kafka_sla.config.store import Store
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.table_layout import LOADS, MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY


def test_a_commit_that_meets_one_to_another_branch_is_made_again(store: Store) -> None:
    one, other = (Iceberg(store, Ledger(store).open) for _ in range(2))
    met = []

    def append(branch: str, transaction: Transaction) -> None:
        with transaction.update_snapshot(branch=branch).fast_append():
            pass

    def meet(_: Table, transaction: Transaction) -> None:
        if not met:
            met.append(MAIN)
            other.commit(CONSUMER_LATENCY, lambda _, theirs: append(MAIN, theirs))
        append(LOADS, transaction)

    one.table(CONSUMER_LATENCY)
    before = len(one.table(CONSUMER_LATENCY).metadata.snapshots)
    one.commit(CONSUMER_LATENCY, meet)
    assert len(one.table(CONSUMER_LATENCY).metadata.snapshots) == before + 2
