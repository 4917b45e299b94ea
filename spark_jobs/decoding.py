"""Files of raw commit records as tables of committed offsets: Arrow reads them, in Spark's tasks. Knows no layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from kafka_sla.tables import COMMITTED_OFFSETS, Table
from spark_jobs.commit_log import COLUMNS, UNREADABLE, committed_offsets
from spark_jobs.writing import Measured

_BATCH_ROWS = 250_000


def decoding(files: Sequence[tuple[str, str]]) -> Measured:
    """A function of indexes of these files (cluster, path): what they hold, as rows of tables."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[Table, pa.Table]]:
        for index in (number for batch in batches for number in batch.column(0).to_pylist()):
            cluster, path = files[index]
            filesystem, inside = FileSystem.from_uri(path)
            with filesystem.open_input_file(inside) as source:
                for records in pq.ParquetFile(source).iter_batches(batch_size=_BATCH_ROWS, columns=COLUMNS):
                    rows, strange = committed_offsets(pa.Table.from_batches([records]), cluster)
                    yield {COMMITTED_OFFSETS: rows} | ({UNREADABLE: strange} if strange.num_rows else {})

    return run
