"""The door to Great Expectations, with the real thing on a real local Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_sla.errors import ValidationFailed
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Patterns, Sla, SteadyState
from kafka_sla.model.tables import QUARANTINE, TABLES, VALIDATION_RESULTS
from kafka_sla.spark.package_zip import code_zip
from kafka_sla.validation import suites
from tests.expectations.rows import INTERVAL, WINDOW_MS, Row, at, good


def _frame(spark: SparkSession, table: str, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(arrow_rows(TABLES[table], rows))


def _validate(
    spark: SparkSession, frames: dict[str, DataFrame], slas: tuple[Sla, ...] = ()
) -> suites.ValidationOutcome:
    return suites.validate(spark, frames, load_id="l1", interval=INTERVAL, window_ms=WINDOW_MS, slas=slas)


def _sla(name: str, *groups: str, topics: str = ".*", cluster: str = "prod") -> Sla:
    rules = SteadyState(30_000)
    return Sla(name, cluster, Patterns(groups), Patterns((topics,)), 30_000, 300_000, 0.999, rules)


def _is_critical(outcome: suites.ValidationOutcome) -> bool:
    return any(not row["success"] and row["severity"] == "critical" for row in outcome.results)


def _result(outcome: suites.ValidationOutcome, expectation_id: str) -> Row:
    (found,) = [row for row in outcome.results if row["expectation_id"] == expectation_id]
    return found


def test_an_idle_interval_is_no_error_and_is_remarked(spark: SparkSession) -> None:
    tables = ("log_offsets", "committed_offsets", "group_states", "topic_configs", "consumer_latency", "steady_state")

    outcome = _validate(spark, {name: _frame(spark, name, []) for name in tables})

    failed = {
        (row["table_name"], row["expectation_id"], row["severity"]) for row in outcome.results if not row["success"]
    }
    with_volume = ("log_offsets", "committed_offsets", "consumer_latency", "steady_state")
    assert {(name, "rows_present", "info") for name in with_volume} == failed
    assert not _is_critical(outcome) and outcome.quarantine == ()


def test_absent_groups_are_named_with_their_sla_and_stop_nothing(spark: SparkSession) -> None:
    of_prod = {"cluster": "prod", "topic": "orders"}
    rows = [
        good("consumer_latency", "billing", **of_prod),
        good("consumer_latency", "audit-eu", **of_prod | {"topic": "ledger"}),
    ]
    slas = (
        _sla("payments", "billing", r"re\-fund"),
        _sla("audits", "audit-.*"),
        _sla("audits of orders", "audit-.*", topics="orders"),
        _sla("elsewhere", "billing", cluster="other"),
    )

    outcome = _validate(spark, {"consumer_latency": _frame(spark, "consumer_latency", rows)}, slas)

    said = _result(outcome, "groups_present")
    assert said["observed"] == "absent: re-fund (payments), /audit-.*/ (audits of orders), billing (elsewhere)"
    assert (said["severity"], said["success"], said["unexpected_rows"]) == ("warning", False, None)
    assert not _is_critical(outcome)


def test_counts_are_exact_and_kept_rows_are_capped(spark: SparkSession) -> None:
    rows = [good("log_offsets", f"t{i}", log_start_offset=101) for i in range(1_500)] + [good("log_offsets")]

    outcome = _validate(spark, {"log_offsets": _frame(spark, "log_offsets", rows)})

    said = _result(outcome, "end_not_below_start")
    assert (said["unexpected_rows"], said["observed"]) == (1_500, "1500 of 1501 rows")
    assert len(outcome.quarantine) == suites.QUARANTINE_ROWS
    assert _is_critical(outcome)


def test_a_kept_row_is_whole_with_its_nulls(spark: SparkSession) -> None:
    rows = [good("committed_offsets", committed_offset=-1), good("committed_offsets", "deleted", committed_offset=None)]

    outcome = _validate(spark, {"committed_offsets": _frame(spark, "committed_offsets", rows)})

    (kept,) = outcome.quarantine
    expected = {
        "cluster": "prod-eu-1",
        "group": "good",
        "topic": "shop.orders-v2",
        "partition": 0,
        "at": "2026-11-01T10:00:59.000Z",
        "committed_offset": -1,
        "source": "commit_log",
    }
    assert expected == json.loads(kept["row"])
    assert kept["expectation_id"] == "offsets_not_negative"


def test_outcomes_fit_the_tables_that_keep_them(spark: SparkSession) -> None:
    rows = [good("log_offsets", log_start_offset=101, at=at(10))] * 2

    outcome = _validate(spark, {"log_offsets": _frame(spark, "log_offsets", rows)})

    for table, kept in ((VALIDATION_RESULTS, outcome.results), (QUARANTINE, outcome.quarantine)):
        assert all(set(row) == set(table.names) for row in kept)
        assert len(kept) == arrow_rows(table, kept).group_by(list(table.key)).aggregate([]).num_rows


def test_a_rule_that_cannot_be_evaluated_is_critical(spark: SparkSession) -> None:
    frame = _frame(spark, "group_states", [good("group_states")]).selectExpr("* except (state)", "map('a', 1) AS state")

    outcome = _validate(spark, {"group_states": frame})

    said = _result(outcome, "state_known")
    assert (said["severity"], said["success"]) == ("critical", False)
    assert str(said["observed"]).startswith("could not be evaluated: ")
    assert _is_critical(outcome)


def test_rows_without_a_column_of_their_contract_are_refused(spark: SparkSession) -> None:
    frame = _frame(spark, "group_states", []).drop("members", "state")

    with pytest.raises(ValidationFailed, match=r"group_states: the rows lack the columns state, members"):
        _validate(spark, {"group_states": frame})


def test_suites_are_found_inside_the_zip_that_spark_gets(tmp_path: Path) -> None:
    package = code_zip(tmp_path)
    program = "from kafka_sla.validation import suites; print(suites.__file__, suites.suite('log_offsets')['name'])"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(package)}, capture_output=True, text=True
    )

    assert f"{package}/kafka_sla/validation/suites.py log_offsets" == done.stdout.strip(), done.stderr
