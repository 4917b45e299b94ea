"""What an SLA promises of unread records: read only when promised, and told in the miss and its mail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Miss
from kafka_sla.model.tables import NON_CONSUMED
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import Notice
from kafka_sla.pipeline.expiry import unread_rows, with_expiry
from tests.kafka_sla.loads import at, span
from tests.kafka_sla.notifications.misses import EVIDENCE, hour, miss, promise

TOLD = "unread records of payments in orders-3 expire in 5 h 12 min"
SENTENCE = f"U{TOLD[1:]}."


def told(**changes: object) -> Miss:
    """The miss of the hour with what its last bad window says."""
    windows = [replace(w, reason=TOLD) if w.verdict == "bad" else w for w in hour()]
    return with_expiry(miss(min_time_to_expiry_ms=21_600_000, **changes), windows)


def mailed(found: Miss) -> tuple[str, str]:
    sla = promise(min_time_to_expiry_ms=21_600_000)
    message = compose(sla, Notice("opened", found, None), [], "airflow@example.com")
    body = message.get_body(("plain",))
    assert body is not None
    return message["Subject"], " ".join(body.get_content().split())


def test_nothing_is_read_where_nothing_is_promised(lake: Lake) -> None:
    assert unread_rows([promise()], lake, span("10:00", "10:05")) is None


def test_published_rows_are_read_where_something_is_promised(lake: Lake, ledger: Ledger) -> None:
    interval = span("10:00", "10:05")
    row = {
        "cluster": "main",
        "group": "payments",
        "topic": "orders",
        "partition": 0,
        "unread_records": 3,
        "window_start": interval.start,
        "window_end": at("10:01"),
    }
    path = Path(lake.stage_dir("one")) / "rows.parquet"
    path.parent.mkdir(parents=True)
    rows = arrow_rows(NON_CONSUMED, [row])
    start = pa.array([interval.start], pa.timestamp("us", "UTC"))
    pq.write_table(rows.append_column("interval_start", start).append_column("load_id", pa.array(["one"])), path)
    lake.add_load("one", interval, {NON_CONSUMED.name: [str(path)]})
    ledger.publications.publish(["main"], interval, "one", 0)
    found = unread_rows([promise(), promise(min_time_to_expiry_ms=60_000)], lake, interval)
    assert found is not None
    assert [r["unread_records"] for r in found.to_pylist()] == [3]


def test_a_miss_of_which_no_window_tells_of_expiry_stays_as_it_is() -> None:
    assert with_expiry(miss(), hour()) == miss()


def test_a_miss_that_goes_on_tells_what_its_windows_before_said_of_expiry() -> None:
    before = told()

    assert with_expiry(miss(), hour(), before).evidence == before.evidence
    assert with_expiry(miss(), hour(), miss()) == miss()


def test_a_late_miss_tells_of_expiry_after_its_cause() -> None:
    found = told()
    assert found.evidence["sentence"] == f"{EVIDENCE['sentence']} {SENTENCE}"
    assert found.evidence["unread_expiry"] == TOLD
    subject, body = mailed(found)
    assert subject.startswith("SLA missed: payments-30s, worst latency 17 min 24 s, threshold 30 s")
    assert SENTENCE in body


def test_a_miss_in_which_nothing_was_late_tells_of_expiry_first_also_in_the_subject_of_its_mail() -> None:
    found = told(worst_latency_ms=1_000.0)
    assert found.evidence["sentence"] == f"{SENTENCE} {EVIDENCE['sentence']}"
    subject, body = mailed(found)
    assert subject == f"SLA missed: payments-30s, {TOLD}, at least 6 h required"
    assert SENTENCE in body
    assert "within 30 s and at least 6 h before it expires; a miss opens after 2 min of violations" in body


def test_a_miss_says_how_many_records_had_expired_unread_and_leaves_out_a_cause_that_is_none() -> None:
    known = EVIDENCE | {"cause": "unclear", "expired_unread_low": 2_414}
    found = told(worst_latency_ms=1_000.0, evidence=known)
    assert found.evidence["sentence"] == f"{SENTENCE} At least 2,414 records had expired already."
