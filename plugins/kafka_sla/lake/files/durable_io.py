"""Iceberg's own files, written so that they outlive a power loss once the catalog names them."""

from __future__ import annotations

import io
from pathlib import Path

from pyarrow.fs import LocalFileSystem
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from kafka_sla.files import sync
from kafka_sla.object_stores import without_account


class DurableFileIO(PyArrowFileIO):
    """PyIceberg finds it by its name, in the catalog's property `py-io-impl`."""

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """PyIceberg's, which takes the account in a URI of Azure for a part of the container's name."""
        scheme, place, path = PyArrowFileIO.parse_location(location, properties)
        return scheme, place, without_account(location, path)

    def new_output(self, location: str) -> PyArrowFile:
        plain = super().new_output(location)
        return _Durable(location, plain._path, plain._filesystem) if _is_local(plain) else plain


class _Durable(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        return io.BufferedWriter(_Synced(self._path, "w" if overwrite else "x"))


class _Synced(io.FileIO):
    def close(self) -> None:
        if not self.closed:
            super().close()
            sync(str(self.name))


def _is_local(file: PyArrowFile) -> bool:
    return isinstance(file._filesystem, LocalFileSystem)
