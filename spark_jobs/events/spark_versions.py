"""What only some of the supported Sparks (4.0 to 4.2) have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame


def by_task(rows: DataFrame, tasks: int, column: str) -> DataFrame:
    """Rows with the same number of a task in the column in one partition: in that of the number from Spark 4.1 on."""
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(tasks, column)
    return rows.repartition(tasks, column)


def arrow_function(function: Callable[[pa.Array], pa.Array], returns: str) -> Callable[[Column], Column]:
    """A column function over Arrow arrays; Spark 4.0 passes them through pandas."""
    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        return _through_pandas(function, returns)
    return arrow_udf(function, returns)  # type: ignore[call-overload, no-any-return]


def _through_pandas(function: Callable[[pa.Array], pa.Array], returns: str) -> Callable[[Column], Column]:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql.pandas.functions import pandas_udf

    def run(values: Any) -> Any:
        return function(pa.array(values, from_pandas=True)).to_pandas()

    run.__annotations__ = {"values": pd.Series, "return": pd.Series}
    return pandas_udf(run, returns)  # type: ignore[call-overload, no-any-return]
