"""A Spark application that loads the Java classes of a measuring one, for the class archive. Measures nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(folder: str, spark: SparkSession) -> int:
    """Write, read, map through Arrow, join, sort and add up a few rows below the folder; answers how many."""
    rows = spark.range(100).withColumn("at", F.current_timestamp()).withColumn("name", F.lit("orders"))
    rows.coalesce(1).sortWithinPartitions("id").write.mode("overwrite").parquet(f"{folder}/rows")
    read = spark.read.schema(rows.schema).parquet(f"{folder}/rows").where("id >= 0")
    mapped = read.mapInArrow(_same, rows.schema).persist()
    sums = mapped.groupBy("name").agg(F.count("id").alias("rows"), F.max("at").alias("at"))
    joined = mapped.join(sums.withColumnRenamed("at", "last"), "name", how="left").orderBy("id")
    return len(joined.selectExpr("id", "to_json(struct(*)) AS row").collect())


def _same(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    session = SparkSession.builder.appName("kafka_sla class archive").getOrCreate()
    main(sys.argv[1], session)
    session.stop()
