"""Do the histograms of rows add up?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Histograms:
    """A column of maps of bucket to records, columns with records that are in no bucket, and a total."""

    histogram: str
    beside: Sequence[str]
    total: str

    def add_up(self, rows: pa.Table) -> bool:
        """Do all buckets begin at 0 and hold records, and add up to the total with what is beside?

        No proves nothing: rows that lack a column or a number are not looked at any further.
        """
        numbers = [*self.beside, self.total]
        if not {self.histogram, *numbers} <= set(rows.column_names) or any(rows[name].null_count for name in numbers):
            return False
        return all(map(self._adds_up, rows.select([self.histogram, *numbers]).to_batches()))

    def _adds_up(self, rows: pa.RecordBatch) -> bool:
        beside, total = (rows[name].to_numpy() for name in self.beside), rows[self.total].to_numpy()
        counted = _counted(rows[self.histogram])
        return counted is not None and bool((sum(beside, counted) == total).all())


def _counted(histograms: pa.MapArray) -> npt.NDArray[np.int64] | None:
    """Records of each histogram; None where a bucket is not one."""
    offsets = histograms.offsets.to_numpy()
    begin, end = int(offsets[0]), int(offsets[-1])
    buckets, counts = histograms.keys.slice(begin, end - begin), histograms.items.slice(begin, end - begin)
    if buckets.null_count or counts.null_count:
        return None
    if len(counts) and (buckets.to_numpy().min() < 0 or counts.to_numpy().min() <= 0):
        return None
    passed = np.concatenate([[0], np.cumsum(counts.to_numpy())])
    return np.asarray(passed[offsets[1:] - begin] - passed[offsets[:-1] - begin], dtype=np.int64)
