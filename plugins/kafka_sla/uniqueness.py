"""Are rows unique? Tells by hashes, in one pass over many frames. Knows no expectations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = tuple[str, str]
"""Name of a frame, and what its columns are called together."""


def surely_unique(frames: Mapping[str, DataFrame], columns: Mapping[Key, Sequence[str]]) -> set[Key]:
    """The keys in whose columns all rows of their frame differ, going by 64 bits of a hash.

    Equal hashes prove nothing: what is not in the answer may be unique all the same. To sort all rows by their columns,
    frame by frame, takes ten times as long.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    keys = list(columns)
    hashed = [
        frames[key[0]].select(
            F.lit(number).alias("key"),
            F.xxhash64(F.lit(number), *[F.col(f"`{column}`") for column in columns[key]]).alias("hash"),
        )
        for number, key in enumerate(keys)
    ]
    if not hashed:
        return set()
    together = reduce(DataFrame.unionAll, hashed).repartition("hash")
    again = {row["key"] for row in together.mapInArrow(_repeated, "key INT").collect()}
    return {key for number, key in enumerate(keys) if number not in again}


def _repeated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The keys of which a task has a hash more than once."""
    read = [(batch["key"].to_numpy(), batch["hash"].to_numpy()) for batch in batches]
    keys = np.concatenate([np.zeros(0, np.int32), *(key for key, _ in read)])
    hashes = np.concatenate([np.zeros(0, np.int64), *(hash_ for _, hash_ in read)])
    order = np.argsort(hashes)
    again = np.unique(keys[order][1:][np.diff(hashes[order]) == 0])
    yield pa.RecordBatch.from_pydict({"key": pa.array(again, pa.int32())})
