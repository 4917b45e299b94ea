"""The decoding of `__consumer_offsets` records into committed offsets, as Spark expressions. Knows no Kafka client.

Layout (big-endian; kafka/group/metadata/OffsetCommitKey and OffsetCommitValue, versions 0-4):
key    i16 version (0, 1: an offset commit), STRING group, STRING topic, i32 partition
value  i16 version, i64 offset, [v3+: i32 leader epoch], metadata, i64 commit time, [v1: i64 expire time], [v4: tags]
STRING is an i16 length and UTF-8 bytes; metadata is a STRING, in v4 a COMPACT_STRING (unsigned varint of length + 1).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_sla.tables import COMMITTED_OFFSETS, COMPACTED


def _int(column: str, position: str, width: int) -> str:
    """SQL of the big-endian integer of `width` bytes at 1-based `position`; offsets and times are never negative."""
    return f"try_cast(conv(hex(substring({column}, {position}, {width})), 16, 10) AS BIGINT)"


def _text(column: str, position: str, length: str) -> str:
    return f"decode(substring({column}, {position}, {length}), 'UTF-8')"


def committed_offsets(records: DataFrame, cluster: str) -> tuple[DataFrame, DataFrame]:
    """Decode raw records (key BINARY, value BINARY, appended_at TIMESTAMP, earlier_lost BOOLEAN) of one cluster.

    Returns (rows of `tables.COMMITTED_OFFSETS`, unreadable records with their key and value). Group metadata records
    are in neither. A tombstone becomes a null committed offset at the time it was appended.
    """
    keyed = records.withColumn("_version", F.expr(_int("key", "1", 2)))
    known = keyed.where(F.col("_version").isin(0, 1))
    decoded = _values(_keys(known))
    readable = F.col("_offset").isNotNull() & F.col("_at").isNotNull() | F.col("value").isNull()
    readable = readable & F.col("_key_whole")
    rows = decoded.where(readable).select(_contract(cluster))
    strange = decoded.where(~readable).select("key", "value", "appended_at")
    return rows, strange


def _contract(cluster: str) -> list[Column]:
    found = {
        "cluster": F.lit(cluster),
        "group": F.col("_group"),
        "topic": F.col("_topic"),
        "partition": F.col("_partition"),
        "at": F.when(F.col("value").isNull(), F.col("appended_at")).otherwise(F.timestamp_millis(F.col("_at"))),
        "committed_offset": F.when(F.col("value").isNotNull(), F.col("_offset")),
        "source": F.when(F.col("earlier_lost"), COMPACTED).otherwise("commit_log"),
    }
    return [found[c.name].cast(c.type).alias(c.name) for c in COMMITTED_OFFSETS.columns]


def _keys(records: DataFrame) -> DataFrame:
    return (
        records.withColumn("_group_length", F.expr(f"cast({_int('key', '3', 2)} AS INT)"))
        .withColumn("_group", F.expr(_text("key", "5", "_group_length")))
        .withColumn("_topic_length", F.expr(f"cast({_int('key', '5 + _group_length', 2)} AS INT)"))
        .withColumn("_topic", F.expr(_text("key", "7 + _group_length", "_topic_length")))
        .withColumn("_partition", F.expr(f"cast({_int('key', '7 + _group_length + _topic_length', 4)} AS INT)"))
        .withColumn("_key_whole", F.expr("coalesce(length(key) = 10 + _group_length + _topic_length, false)"))
    )


def _values(records: DataFrame) -> DataFrame:
    """Add _offset and _at (epoch ms); both null for a version that is not known or a value of the wrong length."""
    meta = "if(_value_version >= 3, 15, 11)"
    string_length = f"cast({_int('value', meta, 2)} AS INT)"
    byte = [f"cast({_int('value', f'{meta} + {k}', 1)} AS INT)" for k in range(3)]
    varint = (
        f"CASE WHEN {byte[0]} < 128 THEN {byte[0]} WHEN {byte[1]} < 128 THEN {byte[0]} % 128 + {byte[1]} * 128 "
        f"ELSE {byte[0]} % 128 + {byte[1]} % 128 * 128 + {byte[2]} * 16384 END"
    )
    varint_bytes = f"CASE WHEN {byte[0]} < 128 THEN 1 WHEN {byte[1]} < 128 THEN 2 ELSE 3 END"
    length = f"if(_value_version >= 4, {varint} - 1, if({string_length} >= 32768, 0, {string_length}))"
    time_at = f"{meta} + if(_value_version >= 4, {varint_bytes}, 2) + _metadata_length"
    expected = f"{time_at} + 7 + if(_value_version = 1, 8, 0)"
    return (
        records.withColumn("_value_version", F.expr(_int("value", "1", 2)))
        .withColumn("_metadata_length", F.expr(f"greatest({length}, 0)"))
        .withColumn(
            "_whole", F.expr(f"length(value) = {expected} OR _value_version = 4 AND length(value) > {expected}")
        )
        .withColumn("_known", F.expr("_value_version BETWEEN 0 AND 4 AND coalesce(_whole, false)"))
        .withColumn("_offset", F.expr(f"if(_known, {_int('value', '3', 8)}, NULL)"))
        .withColumn("_at", F.expr(f"if(_known, {_int('value', time_at, 8)}, NULL)"))
    )
