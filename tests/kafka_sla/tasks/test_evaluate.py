"""The task that judges a batch of SLAs: one that cannot be judged turns it red, and the store keeps why."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import STORE_CONNECTION, load_settings
from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedFile
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.tasks.run_plan import Frozen, Request, plan
from kafka_sla.tasks.steps import evaluate
from tests.kafka_sla.loads import at, load, span

INTERVAL = span("09:00", "09:10")


def test_an_sla_that_cannot_be_judged_keeps_no_other_of_its_batch_from_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path))
    (tmp_path / "kafka_sla.yml").write_text("""
clusters: {a: {}, b: {}}
slas:
- {name: torn, cluster: a, group: payments, topic: orders, max_latency: 30s}
- {name: payments, cluster: b, group: payments, topic: orders, max_latency: 30s}
""")
    settings, store = load_settings(tmp_path / "kafka_sla.yml"), Store.embedded(tmp_path)
    lake, ledger = Lake(store), Ledger(store)
    for cluster in ("a", "b"):
        load(lake, ledger, f"load-{cluster}", INTERVAL, [cluster])
    (torn,) = lake.metric_files(["load-a"], CONSUMER_LATENCY)
    Path(torn).write_bytes(b"torn")
    asked = Request(INTERVAL.end - INTERVAL.start, watches=True, run_after=INTERVAL.end, data_interval=INTERVAL)
    frozen = Frozen(store=STORE_CONNECTION, configuration=ledger.configurations.freeze(settings))
    run = plan(settings, frozen, asked, at("09:11"))

    with pytest.raises(DamagedFile, match=torn):
        evaluate.function(run, {"label": "all", "slas": ["torn", "payments"]})

    assert len(ledger.verdicts.windows("payments", INTERVAL)) == 10
    ((name, kept),) = [(one.sla, one.reason) for one in ledger.failures.unjudged_within(INTERVAL)]
    assert name == "torn"
    assert torn in kept
