"""A real Structured Streaming query that reads a real broker, for its checkpoint folder: what Spark keeps, and when.

    python -m benchmarks.checkpoint FOLDER      # the checkpoint of the tests is made by `make checkpoint`

Prints what `kafka_sla.sources.spark_checkpoints` reads from the folder beside what the query said of each batch.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from demo.broker import Cluster
from demo.jars import SPARK_KAFKA, fetch_jars
from demo.warm_up import create_topic
from kafka_sla.model.entities import Checkpoint
from kafka_sla.sources.spark_checkpoints import read_checkpoint

_RECORDS, _PER_BATCH = 200, 50
_KEPT = ("offsets", "commits", "metadata")


def main(folder: Path) -> None:
    with Cluster() as broker, tempfile.TemporaryDirectory() as work:
        _produce(broker)
        told = _query(broker, f"{work}/checkpoint")
        shutil.rmtree(folder, ignore_errors=True)
        for name in _KEPT:
            found = Path(work, "checkpoint", name)
            if found.is_dir():
                shutil.copytree(found, folder / name, ignore=shutil.ignore_patterns(".*"))
            else:
                shutil.copy2(found, folder / name)
    for batch in told:
        print(f"query: batch {batch['batchId']} from {batch['timestamp']} to {batch['sources'][0]['endOffset']}")
    for position in read_checkpoint(Checkpoint("query", str(folder.resolve())), 0, None):
        print(f"read: {position.topic}-{position.partition} at {position.offset} from {position.at_ms} ms on")


def _produce(broker: Cluster) -> None:
    create_topic(AdminClient({**broker.client(), "log_level": 0}), NewTopic("orders", 2, 1))
    producer = Producer(broker.client())
    for number in range(_RECORDS):
        producer.produce("orders", str(number), partition=number % 2)
    producer.flush(30)


def _query(broker: Cluster, checkpoint: str) -> Sequence[dict[str, Any]]:
    """Read all there is in small batches; what the query says of each."""
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", f"{fetch_jars(jars=SPARK_KAFKA)}/*")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    records = session.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    rows = records.option("subscribe", "orders").option("startingOffsets", "earliest")
    query = (
        rows.option("maxOffsetsPerTrigger", _PER_BATCH)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    told = [json.loads(progress.json) for progress in query.recentProgress]
    session.stop()
    return told


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(Path(sys.argv[1]))
