"""The tests of warehouses at the emulators of Azure's and Google's stores: `make warehouses`, for which Azurite comes
from npm. Azurite knows accounts without a hierarchical namespace only."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow.fs import AzureFileSystem, FileSystem, GcsFileSystem

from demo.broker import free_ports
from demo.object_store import BUCKET
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.test_object_stores import (  # noqa: F401  they are run here, too
    connection_to,
    store,
    test_a_database_of_another_store_is_refused,
    test_an_object_store_holds_the_rows_that_a_folder_holds_and_no_credentials,
    test_facts_land_once_and_are_tidied,
    test_files_of_an_object_store_are_written_listed_moved_and_removed_like_those_of_a_folder,
)

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which its documents tell everybody."""
_STARTS_WITHIN_S = 120


@dataclass(frozen=True, slots=True)
class Emulator:
    """A store that runs."""

    uri: str
    properties: dict[str, str]


@contextmanager
def azurite(folder: Path, uri: str) -> Iterator[Emulator]:
    (port,) = free_ports(1)
    command = [os.environ.get("AZURITE", "azurite-blob"), "--blobPort", str(port), "--location", str(folder)]
    authority = f"127.0.0.1:{port}"
    where = {
        f"{part}_storage_{what}": value
        for part in ("blob", "dfs")
        for what, value in (("authority", authority), ("scheme", "http"))
    }
    properties = {f"adls.{name.replace('_', '-')}": value for name, value in where.items()} | {"adls.account-key": KEY}
    own = {} if "@" in uri else {"adls.account-name": ACCOUNT}
    with running([*command, "--silent", "--skipApiVersionCheck", "--disableTelemetry"], folder):
        made(lambda: AzureFileSystem(account_name=ACCOUNT, account_key=KEY, **where))
        yield Emulator(uri, properties | own)


@contextmanager
def google(folder: Path) -> Iterator[Emulator]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host", "127.0.0.1", "--port", str(port)]
    with running([*command, "--in-memory", "--default-bucket", BUCKET], folder):
        made(lambda: GcsFileSystem(anonymous=True, scheme="http", endpoint_override=f"127.0.0.1:{port}"))
        login = {"gcs.oauth2.token": "a-token-of-nobody", "gcs.oauth2.token-expires-at": "4102444800000"}
        yield Emulator(f"gs://{BUCKET}", {"gcs.service.host": f"http://127.0.0.1:{port}", **login})


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        server.kill()
        server.wait()


def made(reach: Callable[[], FileSystem]) -> None:
    """Wait until the store has a bucket."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            reach().create_dir(BUCKET)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


@pytest.fixture(
    scope="module", params=[f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net", f"abfs://{BUCKET}", f"gs://{BUCKET}"]
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    folder = tmp_path_factory.mktemp("object-store")
    with google(folder) if request.param.startswith("gs:") else azurite(folder, request.param) as emulator:
        yield emulator


def test_what_azure_refuses_names_the_warehouse_and_not_the_key(tmp_path: Path) -> None:
    wrong = f"{KEY[:-8]}AAAAAA=="
    with azurite(tmp_path, f"abfs://{BUCKET}") as server:
        other = Store.from_connection(connection_to(server, tmp_path, **{"adls.account-key": wrong}))

        with pytest.raises(StoreError, match=f"{tmp_path.name}/warehouse cannot be read or written: .+ 403 ") as caught:
            Ledger(other).open(writing=True)
    assert wrong not in str(caught.value)
