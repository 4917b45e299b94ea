"""A world through the Spark application itself, expectations included: the same rows as from its functions alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.simulation import kernel
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.facts import facts
from benchmarks.simulation.making import world
from benchmarks.simulation.rows_agree import same
from benchmarks.simulation.seeing import plan
from benchmarks.simulation.slas import slas_of
from kafka_sla.lake.staging import staged
from kafka_sla.model.tables import VALIDATION_RESULTS


def sparked(seeds: list[int]) -> Iterator[tuple[int, Failure]]:
    """What differs, or is refused, of each of these worlds; one session serves all."""
    if not seeds:
        return
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("simulation").config("spark.ui.enabled", "false")
    own = {"spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1", "spark.log.level": "ERROR"}
    own["spark.ui.showConsoleProgress"] = "false"
    session = builder.config(map=own).getOrCreate()
    try:
        for seed in seeds:
            with kernel.folder() as into:
                yield from ((seed, failure) for failure in _of(seed, session, into))
    finally:
        session.stop()


def _of(seed: int, session: object, into: Path) -> Iterator[Failure]:
    from kafka_sla.spark_jobs import measure

    made = world(seed)
    known, slas = facts(made, plan(made)), slas_of(made)
    alone = kernel.measured(into, known, made.start, made.end, made.window_ms, slas)
    job = kernel.job(into, known, made.start, made.end, made.window_ms, slas, output=str(into / "output"))
    measure.main(job, session)  # type: ignore[arg-type]
    written = {table: kernel.in_order(staged(job.output, table), table) for table in kernel.METRICS}
    yield from same({t: alone.get(t, written[t].slice(0, 0)) for t in kernel.METRICS}, written, "from Spark")
    for result in staged(job.output, VALIDATION_RESULTS).to_pylist():
        if result["severity"] == "critical" and not result["success"]:
            yield Failure("no load is refused", result["expectation_id"], "", made.start, "", str(result["observed"]))
