"""The one door to Great Expectations: runs the suites of `expectations/` over Spark frames and keeps what they say.

Must not know where frames come from, where results go, or what a rule means: rules live in `expectations/<table>.json`.
"""

from __future__ import annotations

import importlib
import importlib.resources
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from kafka_sla.errors import ValidationFailed
from kafka_sla.model.entities import Interval, MeasuredSla
from kafka_sla.model.tables import TABLES, Table
from kafka_sla.validation.contract_rules import QUERY, UNIQUE, contract_rules
from kafka_sla.validation.late_imports import import_late

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HISTOGRAMS = "expect_histograms_to_add_up"
"""Expensive types of rules: Great Expectations sorts all rows, Spark interprets every bucket."""
QUARANTINE_ROWS = 1_000
"""Rows kept per broken expectation: enough to see the pattern, small enough for the SQL store. Counts stay exact."""


@dataclass(frozen=True, slots=True)
class ExpensiveRule:
    """A rule of an expensive type, which who wrote the rows may answer sooner. `kwargs` as in the suite's file."""

    table: str
    id: str
    type: str
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """What the suites said: rows that fit `tables.VALIDATION_RESULTS` and `tables.QUARANTINE`."""

    results: tuple[dict[str, Any], ...]
    quarantine: tuple[dict[str, Any], ...]


def suite(table: str) -> dict[str, Any]:
    """The suite of a table: what follows from its contract, then its file (checkout, wheel or zip alike)."""
    text = importlib.resources.files("kafka_sla.expectations").joinpath(f"{table}.json").read_text(encoding="utf-8")
    of_file: dict[str, Any] = json.loads(text)
    return of_file | {"expectations": contract_rules(TABLES[table]) + of_file["expectations"]}


def validate(
    spark: SparkSession,
    frames: Mapping[str, DataFrame],
    *,
    load_id: str,
    interval: Interval,
    window_ms: int,
    slas: Sequence[MeasuredSla] = (),
    precheck: Callable[[Sequence[ExpensiveRule]], Sequence[bool]] = lambda rules: [False for _ in rules],
) -> ValidationOutcome:
    """Run the suite of every frame, keyed by table name; groups that an SLA names but no row shows are called absent.

    `precheck` answers which expensive rules need not run because they hold. Details (counts, rows) are computed only
    for what failed. A frame without rows is an idle interval, not an error. Frames are read several times, so what is
    expensive to compute should be persisted before.
    """
    results: list[dict[str, Any]] = []
    quarantine: list[dict[str, Any]] = []
    checked = {name: _with_context(frame, TABLES[name], interval, window_ms) for name, frame in frames.items()}
    rules = {name: suite(name)["expectations"] for name in checked}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        holding = pool.submit(_holding, _expensive(rules), precheck)
        verdicts = {name: pool.submit(_run, name, checked[name], rules[name], slas, holding) for name in checked}
    for name, found in verdicts.items():
        load = {"load_id": load_id, "interval_start": interval.start, "interval_end": interval.end, "table_name": name}
        for verdict in found.result():
            results.append(load | verdict.row())
            quarantine += [load | verdict.about() | {"row": row} for row in verdict.broken_rows(spark)]
    return ValidationOutcome(tuple(results), tuple(quarantine))


def load() -> None:
    """Import Great Expectations, which takes seconds: start it in a thread while Spark starts and measures. Two of five
    it spends on libraries for expectations that no suite here has."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations._docs_decorators").setLevel(logging.WARNING)  # it lists its own closures
    import_late("scipy.stats", "altair")
    importlib.import_module("great_expectations")


def _expected_groups(sla: MeasuredSla) -> dict[str, Any]:
    """What `expect_groups_to_be_present` must know of an SLA, as JSON."""
    return {"sla": sla.name, "cluster": sla.cluster, "groups": asdict(sla.groups), "topics": asdict(sla.topics)}


def _with_context(frame: DataFrame, table: Table, interval: Interval, window_ms: int) -> DataFrame:
    """The contract's columns, and the three constants that predicates may name."""
    from pyspark.sql.functions import lit

    if missing := [name for name in table.names if name not in frame.columns]:
        raise ValidationFailed(f"{table.name}: the rows lack the columns {', '.join(missing)} of their contract")
    return frame.select(
        *table.names,
        lit(interval.start).alias("interval_start"),
        lit(interval.end).alias("interval_end"),
        lit(window_ms).alias("window_ms"),
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """One expectation on one frame."""

    expectation: Any
    batch: Any
    frame: DataFrame
    success: bool
    result: Mapping[str, Any]
    error: str | None

    def about(self) -> dict[str, Any]:
        """A rule that cannot be evaluated protects nothing: critical, whatever its file says."""
        severity = "critical" if self.error else self.expectation.severity.value
        return {"expectation_id": self.expectation.id, "severity": severity}

    def row(self) -> dict[str, Any]:
        rows = self.result.get("unexpected_count", self.result.get("observed_value"))
        return self.about() | {
            "expectation": self.expectation.description,
            "success": self.success,
            "observed": self._observed(),
            "unexpected_rows": None if self.error or not self._by_row else 0 if self.success else int(rows),
        }

    @property
    def _by_row(self) -> bool:
        return hasattr(self.expectation, "map_metric") or hasattr(self.expectation, "unexpected_rows_query")

    def _observed(self) -> str | None:
        if self.error:
            return f"could not be evaluated: {self.error}"[:500]
        if self.success:
            return None
        if "unexpected_count" in self.result:
            return f"{self.result['unexpected_count']} of {self.result['element_count']} rows"
        return f"{self.result['observed_value']} rows" if self._by_row else str(self.result["observed_value"])

    def broken_rows(self, spark: SparkSession) -> list[str]:
        """The rows that broke it, as JSON objects; equal ones once, at most QUARANTINE_ROWS."""
        if self.success or self.error or not self._by_row:
            return []
        broken = self._by_query(spark) if hasattr(self.expectation, "unexpected_rows_query") else self._by_condition()
        shown = broken.drop("interval_start", "interval_end", "window_ms").limit(QUARANTINE_ROWS)
        rows = shown.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))").collect()
        return list(dict.fromkeys(row for (row,) in rows))

    def _by_query(self, spark: SparkSession) -> DataFrame:
        self.frame.createOrReplaceTempView("kafka_sla_validated")
        return spark.sql(self.expectation.unexpected_rows_query.format(batch="kafka_sla_validated"))

    def _by_condition(self) -> DataFrame:
        """The filter that Great Expectations counted with; its own row lists stop at 200."""
        from great_expectations.validator.metric_configuration import MetricConfiguration
        from great_expectations.validator.metrics_calculator import MetricsCalculator

        engine = self.batch.data.execution_engine
        counted = self.expectation.get_validation_dependencies(engine, {"result_format": _COUNTS})
        metric = counted.metric_configurations[f"{self.expectation.map_metric}.unexpected_count"]
        condition, compute, accessor = MetricsCalculator(engine).get_metric(
            MetricConfiguration(
                f"{self.expectation.map_metric}.condition", metric.metric_domain_kwargs, metric.metric_value_kwargs
            )
        )
        rows: DataFrame = engine.get_domain_records({**compute, **accessor})
        return rows.withColumn("broken", condition).where("broken").drop("broken")


_DEAR = (UNIQUE, HISTOGRAMS)
_AT_ONCE = 3
"""Tables validated side by side: most of a small interval's time is spent planning, by one thread a query."""
_ONE_VIEW = Lock()
"""Great Expectations calls the view of every query the same."""
_HOLDS = {"result_format": "BOOLEAN_ONLY"}
_COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 0}


def _run(
    name: str, frame: DataFrame, rules: Sequence[Any], slas: Sequence[MeasuredSla], surely: Future[list[ExpensiveRule]]
) -> list[_Verdict]:
    """Did it hold (one aggregate for most rules), then counts of what did not. In the file's order.

    `surely` tells the expensive rules that hold and need not be asked; nor need those that follow from rules that hold.
    """
    batch = _batch(name, frame)
    parameters = {"expected_groups": [_expected_groups(sla) for sla in slas]}
    asked = _expectations(name, rules)
    found: dict[str, Any] = {}

    def ask(wanted: Iterable[Any], form: dict[str, Any]) -> None:
        found.update(_results(batch, name, list(wanted), parameters, form))

    ask((rule for rule in rules if rule["type"] not in (*_DEAR, QUERY)), _HOLDS)
    holding = {rule.id for rule in surely.result() if rule.table == name}
    ask((rule for rule in rules if rule["type"] in _DEAR and rule["id"] not in holding), _HOLDS)
    holding |= {rule_id for rule_id, result in found.items() if result.success}
    with _ONE_VIEW:
        queries = [rule for rule in rules if rule["type"] == QUERY]
        ask((rule for rule in queries if not _implied_by(rule) or _implied_by(rule) - holding), _HOLDS)
        ask((rule for rule in rules if rule["id"] in found and not found[rule["id"]].success), _COUNTS)
    return [_verdict(asked[rule["id"]], batch, frame, found.get(rule["id"])) for rule in rules]


def _holding(
    rules: Sequence[ExpensiveRule], precheck: Callable[[Sequence[ExpensiveRule]], Sequence[bool]]
) -> list[ExpensiveRule]:
    return [rule for rule, holds in zip(rules, precheck(rules), strict=True) if holds]


def _expensive(rules: Mapping[str, Sequence[Any]]) -> list[ExpensiveRule]:
    asked = [(name, rule) for name, of_table in rules.items() for rule in of_table if rule["type"] in _DEAR]
    return [ExpensiveRule(name, rule["id"], rule["type"], rule["kwargs"]) for name, rule in asked]


def _implied_by(rule: Mapping[str, Any]) -> set[str]:
    """Ids of the rules from which this query follows; none: it stands for itself."""
    return set(rule.get("meta", {}).get("implied_by", ()))


def _batch(name: str, frame: DataFrame) -> Any:
    """The frame as Great Expectations' batch, in a context that lives in memory and talks to nobody."""
    load()
    import great_expectations
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = great_expectations.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_spark("staged", persist=False).add_dataframe_asset(name)
    return asset.add_batch_definition_whole_dataframe("interval").get_batch({"dataframe": frame})


def _expectations(name: str, rules: Sequence[Any]) -> dict[str, Any]:
    """The expectations of these rules by id."""
    from great_expectations.core import ExpectationSuite

    import kafka_sla.validation.expectation_types  # noqa: F401  registers its expectation types

    asked = ExpectationSuite(name=name, expectations=list(rules))
    expectations: dict[str, Any] = {str(expectation.id): expectation for expectation in asked.expectations}
    if lost := [rule["id"] for rule in rules if rule["id"] not in expectations]:
        raise ValidationFailed(f"expectations/{name}.json: no valid expectation: {', '.join(lost)}; see the log above")
    return expectations


def _results(
    batch: Any, name: str, rules: Sequence[Any], parameters: dict[str, Any], form: dict[str, Any]
) -> dict[str, Any]:
    """What these rules say of the batch, by id."""
    if not rules:
        return {}
    from great_expectations.core import ExpectationSuite

    asked = ExpectationSuite(name=name, expectations=list(rules))
    checked = batch.validate(asked, result_format=form, expectation_parameters=parameters)
    return {result.expectation_config.id: result for result in checked.results}


def _verdict(expectation: Any, batch: Any, frame: DataFrame, result: Any | None) -> _Verdict:
    """`result` None: it surely holds."""
    if result is None:
        return _Verdict(expectation, batch, frame, True, {}, None)
    return _Verdict(expectation, batch, frame, bool(result.success), result.result, _error(result.exception_info))


def _error(info: Mapping[str, Any]) -> str | None:
    """Great Expectations keeps exceptions per result, sometimes one level down per metric."""
    for found in (info, *info.values()):
        if isinstance(found, Mapping) and found.get("raised_exception"):
            return re.sub(r"\s+", " ", str(found["exception_message"]).split("\n")[0])
    return None
