"""File systems behind URIs, by where they begin: endpoint, region and credentials in PyIceberg's names.

A process learns them from the store's connection; another one, such as Spark's driver, from its environment; Spark's
tasks from the functions that they run. They are never written to a file, a log or a command line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

T = TypeVar("T")

VARIABLE = "KAFKA_SLA_OBJECT_STORES"
"""Environment variable of a Spark driver: JSON of URI → properties."""
PROPERTIES = ("s3.", "gcs.", "adls.", "oss.", "client.")
"""How the names of properties begin."""
_DEFAULT_REGION = "us-east-1"
_AZURE = ("abfs://", "abfss://", "wasb://", "wasbs://")

_properties: dict[str, dict[str, str]] = {}
_filesystems: dict[str, FileSystem] = {}


def remember(uri: str, properties: Mapping[str, str]) -> None:
    """From here on, this process reaches what lies below the URI with these properties."""
    if _properties.get(uri) != dict(properties):
        _properties[uri] = dict(properties)
        _filesystems.pop(uri, None)


def completed(uri: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, and what follows: a server that is not Amazon's is not searched for by region, and Azure's URIs
    name the account."""
    known = {"s3.region", "client.region"} & set(properties)
    region = {} if known or "s3.endpoint" not in properties else {"s3.region": _DEFAULT_REGION}
    _, at, server = uri.partition("://")[2].partition("/")[0].partition("@")
    account = {"adls.account-name": server.partition(".")[0]} if at and uri.startswith(_AZURE) else {}
    return {**region, **account, **properties}


def without_account(uri: str, place: str) -> str:
    """A place in a file system, such as bucket/key: Azure's URIs have the account behind the container, as in
    abfss://lake@account.dfs.core.windows.net/key."""
    container, slash, key = place.partition("/")
    return container.partition("@")[0] + slash + key if uri.startswith(_AZURE) else place


def environment(path: str) -> dict[str, str]:
    """What a process that is started here needs in its environment to reach this path, and no more than that."""
    uri = _above(path)
    return {VARIABLE: json.dumps({uri: _properties[uri]})} if uri in _properties else {}


def from_environment() -> None:
    """Learn what the process that started this one knew."""
    for uri, properties in json.loads(os.environ.get(VARIABLE) or "{}").items():
        remember(uri, properties)


def reaching(paths: Iterable[str], function: Callable[[T], Iterator[T]]) -> Callable[[T], Iterator[T]]:
    """The function, for another machine: where it runs, these paths are reached as from here."""
    if not (known := {uri: _filesystem(uri) for uri in set(map(_above, paths)) if uri}):
        return function

    def run(given: T) -> Iterator[T]:
        _learn(known)  # by name: a function that travels has copies of the variables of its module
        return function(given)

    return run


def _learn(known: Mapping[str, FileSystem]) -> None:
    _filesystems.update(known)


def located(path: str) -> tuple[FileSystem, str]:
    """The file system of a path or URI, and its path there."""
    from pyarrow.fs import FileSystem  # late: DAG files are parsed without Arrow

    if "://" not in path:
        return FileSystem.from_uri(path)  # type: ignore[no-any-return]
    if uri := _above(path):
        return _filesystem(uri), without_account(uri, path.split("://", 1)[1])
    return FileSystem.from_uri(path)  # type: ignore[no-any-return]


def _above(path: str) -> str:
    """The longest known URI that the path lies below; empty where there is none."""
    known = {*_properties, *_filesystems} if "://" in path else ()
    return max((uri for uri in known if path == uri or path.startswith(f"{uri}/")), key=len, default="")


def _filesystem(uri: str) -> FileSystem:
    if uri not in _filesystems:
        from pyiceberg.io.pyarrow import PyArrowFileIO  # late: nobody needs it for folders

        scheme, rest = uri.split("://", 1)
        _filesystems[uri] = PyArrowFileIO(_properties[uri]).fs_by_scheme(scheme, rest.split("/", 1)[0])
    return _filesystems[uri]
