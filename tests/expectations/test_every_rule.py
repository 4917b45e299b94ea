"""Every rule of every suite refuses its counterexample, and only what breaks it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.tables import TABLES
from kafka_sla.spark.conf import INTERPRETED
from kafka_sla.validation import suites
from tests.expectations.rows import INTERVAL, VALIDATED, WINDOW_MS, Row, broken, good, identity

WHOLE_TABLE = {"rows_present", "groups_present"}


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    """As small loads are validated; test_measured_rows.py asks the rules with compiled code, as large ones are."""
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name in INTERPRETED:
        spark.conf.unset(name)


def _frame(spark: SparkSession, table: str, rows: list[Row]) -> DataFrame:
    """Rows that may break the contract's NOT NULL, as staged Parquet does not enforce it either."""
    names = TABLES[table].names
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(TABLES[table])])
    return spark.createDataFrame(pa.Table.from_pylist([{n: row.get(n) for n in names} for row in rows], schema))


@pytest.mark.parametrize("table", VALIDATED)
def test_every_row_rule_has_a_counterexample(table: str) -> None:
    rules = {rule["id"] for rule in suites.suite(table)["expectations"]}

    assert rules - WHOLE_TABLE == set(broken(table))


@pytest.mark.parametrize("table", VALIDATED)
def test_every_rule_keeps_the_rows_that_break_it_and_never_the_good_ones(spark: SparkSession, table: str) -> None:
    examples = broken(table)
    bad = [good(table, rule, **changes) for rule, rows in examples.items() for changes in rows]
    frame = _frame(spark, table, [good(table, "good"), good(table, "also good"), *bad])

    outcome = suites.validate(spark, {table: frame}, load_id="l1", interval=INTERVAL, window_ms=WINDOW_MS)

    kept: dict[str, list[str]] = defaultdict(list)
    for row in outcome.quarantine:
        kept[row["expectation_id"]].append(json.loads(row["row"])[identity(table)])
    assert {rule: kept[rule] for rule, rows in examples.items() if kept[rule].count(rule) < _shown(rule, rows)} == {}
    assert not {"good", "also good"} & {name for names in kept.values() for name in names}


def _shown(rule: str, rows: list[Row]) -> int:
    """A rule over groups of rows shows the group once, and equal rows are kept once."""
    return 1 if rule in ("windows_at_most", "keys_unique") else len(rows)


@pytest.mark.parametrize("table", VALIDATED)
def test_a_good_row_breaks_no_rule(spark: SparkSession, table: str) -> None:
    frame = _frame(spark, table, [good(table)])

    outcome = suites.validate(spark, {table: frame}, load_id="l1", interval=INTERVAL, window_ms=WINDOW_MS)

    assert [(row["expectation_id"], row["observed"]) for row in outcome.results if not row["success"]] == []


@pytest.mark.parametrize("table", VALIDATED)
def test_every_rule_says_in_words_what_it_expects_and_how_bad_its_failure_is(table: str) -> None:
    for rule in suites.suite(table)["expectations"]:
        assert rule["description"] and rule["severity"] in ("critical", "warning", "info")
        assert "mostly" not in rule["kwargs"], "a rule that may fail a little hides how much"


@pytest.mark.parametrize("table", VALIDATED)
def test_a_rule_follows_only_from_rules_of_its_suite_that_are_asked_themselves(table: str) -> None:
    rules = {
        rule["id"]: set(rule.get("meta", {}).get("implied_by", ())) for rule in suites.suite(table)["expectations"]
    }
    asked = {name for name, implying in rules.items() if not implying}

    assert {name for implying in rules.values() for name in implying} <= asked
