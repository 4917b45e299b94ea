"""Files of raw commit records as tables of committed offsets: Arrow reads them, in Spark's tasks. Knows no layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from kafka_sla.files import batches_of
from kafka_sla.model.tables import COMMITTED_OFFSETS, Table
from kafka_sla.spark_jobs.events.offset_commit_format import COLUMNS, UNREADABLE, committed_offsets
from kafka_sla.spark_jobs.events.task_ranges import given
from kafka_sla.spark_jobs.events.write_files import Measured

_BATCH_ROWS = 250_000


def decoding(files: Sequence[tuple[str, str]]) -> Measured:
    """A function of indexes of these files (cluster, path): what they hold, as rows of tables."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[Table, pa.Table]]:
        for index in given(batches):
            cluster, path = files[index]
            for records in batches_of(path, _BATCH_ROWS, COLUMNS):
                rows, strange = committed_offsets(records, cluster)
                yield {COMMITTED_OFFSETS: rows} | ({UNREADABLE: strange} if strange.num_rows else {})

    return run
