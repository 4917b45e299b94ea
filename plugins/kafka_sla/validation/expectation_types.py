"""The expectation types that Great Expectations lacks: a row predicate in SQL, histograms that add up, and configured
groups being present.

Imported by `suites` only, and late: importing Great Expectations takes seconds.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.suite_parameters import SuiteParameterDict
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation, ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
    ColumnMapMetricProvider,
)
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from pyspark.sql import Column
from pyspark.sql.functions import coalesce, expr, lit

from kafka_sla.model.entities import Patterns


class RowSatisfies(ColumnMapMetricProvider):
    """True where a Spark SQL predicate holds or cannot be decided (null)."""

    condition_metric_name = "rows.satisfy"
    condition_value_keys = ("predicate",)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, predicate: str, **kwargs: Any) -> Column:  # noqa: N805
        return coalesce(expr(predicate), lit(True))


class ExpectRowsToSatisfy(ColumnMapExpectation):
    """Every row satisfies a Spark SQL predicate; all predicates of a suite are counted in one pass over the rows."""

    predicate: str
    column: str = "interval_start"
    """Only there because Great Expectations wants a column: `suites` adds this one, never null, to every frame."""
    map_metric: ClassVar[str] = "rows.satisfy"
    success_keys: ClassVar[tuple[str, ...]] = ("predicate", "mostly")
    args_keys: ClassVar[tuple[str, ...]] = ("column", "predicate")


class HistogramAddsUp(ColumnMapMetricProvider):
    """True where a histogram's buckets begin at 0, hold records, and with columns beside it add up to a total, or where
    that cannot be decided (null). A null histogram holds nothing."""

    condition_metric_name = "histograms.add_up"
    condition_value_keys = ("histogram", "beside", "total")

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, histogram: str, beside: list[str], total: str, **kwargs: Any) -> Column:  # noqa: N805
        buckets, counts = f"map_keys(`{histogram}`)", f"map_values(`{histogram}`)"
        counted = f"aggregate(coalesce({counts}, array()), 0L, (counted, records) -> counted + records)"
        sums = f"{' + '.join([counted, *(f'`{name}`' for name in beside)])} = `{total}`"
        return coalesce(expr(f"array_min({buckets}) >= 0 AND array_min({counts}) > 0"), lit(True)) & coalesce(
            expr(sums), lit(True)
        )


class ExpectHistogramsToAddUp(ColumnMapExpectation):
    """Every histogram (map of bucket to records) holds as many records as the row says."""

    histogram: str
    beside: list[str]
    """Columns with the records that are in no bucket."""
    total: str
    column: str = "interval_start"
    """As above."""
    map_metric: ClassVar[str] = "histograms.add_up"
    success_keys: ClassVar[tuple[str, ...]] = ("histogram", "beside", "total", "mostly")
    args_keys: ClassVar[tuple[str, ...]] = ("column", "histogram", "beside", "total")


class AbsentGroups(TableMetricProvider):
    """Which expected groups no row of the table belongs to, in words."""

    metric_name = "table.absent_groups"
    value_keys = ("expected",)

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **kwargs: Any,
    ) -> list[str]:
        frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        seen = [tuple(row) for row in frame.select("cluster", "group", "topic").distinct().collect()]
        return [words for wanted in metric_value_kwargs["expected"] for words in absent(wanted, seen)]


def absent(wanted: dict[str, Any], seen: list[tuple[str, str, str]]) -> list[str]:
    """The group patterns of one SLA that match nothing seen on its cluster and topics."""
    topics, exclude = _patterns(wanted["topics"]), tuple(wanted["groups"]["exclude"])
    groups = {group for cluster, group, topic in seen if cluster == wanted["cluster"] and topics.matches(topic)}
    return [
        f"{_as_written(pattern)} ({wanted['sla']})"
        for pattern in wanted["groups"]["include"]
        if not any(Patterns((pattern,), exclude).matches(group) for group in groups)
    ]


def _patterns(raw: dict[str, list[str]]) -> Patterns:
    return Patterns(tuple(raw["include"]), tuple(raw["exclude"]))


def _as_written(pattern: str) -> str:
    """A plain name without the escapes that made it a regex."""
    name = re.sub(r"\\(.)", r"\1", pattern)
    return name if re.escape(name) == pattern else f"/{pattern}/"


class ExpectGroupsToBePresent(BatchExpectation):
    """Every expected group has a row; the ones without are named in the observed value."""

    expected: list[dict[str, Any]] | SuiteParameterDict[str, str]
    metric_dependencies: ClassVar[tuple[str, ...]] = ("table.absent_groups",)
    success_keys: ClassVar[tuple[str, ...]] = ("expected",)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        missing = metrics["table.absent_groups"]
        return {"success": not missing, "result": {"observed_value": f"absent: {', '.join(missing)}"}}
