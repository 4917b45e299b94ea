"""Functions for Spark's Python workers, without what a worker would do again between any two of its tasks.

A worker is kept for many tasks, and most of ours are short. Between two of them it looks for modules that came since,
for which Python 3.11 reads the whole directory of every zip file and jar on its path again, once for each package that
was imported from it (python/cpython#103200; Spark from 4.2 on does not ask it to, SPARK-54744); and it collects
garbage, for which Python looks at every object of all modules. Inside a task the C library gives the memory of arrays
back to the system and asks for it again, page by page, hundreds of times; that took a quarter of measuring.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_READS_AT_ONCE = sys.version_info < (3, 12)
_NO_FILE = (-1, -1)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = {_M_TRIM_THRESHOLD: 1 << 30, _M_MMAP_THRESHOLD: 32 << 20}
"""Bytes for glibc's `mallopt`: of free memory that is kept, and of arrays from which on they are not (at most)."""


def map_batches(frame: DataFrame, function: BatchFunction, schema: str) -> DataFrame:
    """`DataFrame.mapInArrow`; `function` must be able to travel, as there."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_repetition()
        look_past(len(sys.modules))
        return function(batches)

    return frame.mapInArrow(run, schema)


@cache
def spare_repetition() -> None:
    """Once a worker: archives are read no more, unless they change, and memory that was asked for is kept."""
    if _READS_AT_ONCE:
        read_changed_archives_only()
    _keep_memory()


@cache
def look_past(_modules: int) -> None:
    """Once for so many modules: what is loaded by now is not looked at for garbage any more."""
    gc.collect()
    gc.freeze()


def _keep_memory() -> None:
    """Until the worker ends, as Spark lets it after a minute without a task. Of glibc only: others have no such
    settings."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        for setting, most in _KEPT.items():
            mallopt(setting, most)
        pa.set_memory_pool(pa.system_memory_pool())


def read_changed_archives_only() -> None:
    """From now on `importlib.invalidate_caches` reads the directory of an archive again only if its file changed."""
    seen = {finder: _version(finder) for finder in _archives()}
    read_again = zipimport.zipimporter.invalidate_caches

    def invalidate_caches(finder: zipimport.zipimporter) -> None:
        version = _version(finder)
        if version == _NO_FILE or seen.get(finder) != version:
            seen[finder] = version
            read_again(finder)

    zipimport.zipimporter.invalidate_caches = invalidate_caches  # type: ignore[assignment, method-assign]


def _archives() -> list[zipimport.zipimporter]:
    return [finder for finder in sys.path_importer_cache.values() if isinstance(finder, zipimport.zipimporter)]


def _version(finder: zipimport.zipimporter) -> tuple[int, int]:
    try:
        found = Path(finder.archive).stat()
    except OSError:
        return _NO_FILE
    return found.st_mtime_ns, found.st_size
