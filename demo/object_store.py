"""One S3-compatible server (SeaweedFS, from a wheel) on loopback, with one bucket."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow.fs import S3FileSystem

from demo.broker import free_ports

BUCKET = "lake"
_LOGIN = ("kafka-sla-access", "kafka-sla-secret")
_STARTS_WITHIN = 180
_SOCKETS = Path("/tmp")  # noqa: S108 (the server has no option for it)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A server that runs."""

    endpoint: str
    metrics: str
    """Where it tells Prometheus what it did."""
    pid: int

    uri = f"s3://{BUCKET}"
    """Where its bucket is."""

    @property
    def properties(self) -> dict[str, str]:
        """How it is reached, as the extra of the store's connection names it."""
        access, secret = _LOGIN
        return {"s3.endpoint": self.endpoint, "s3.access-key-id": access, "s3.secret-access-key": secret}

    @property
    def filesystem(self) -> S3FileSystem:
        access, secret = _LOGIN
        return S3FileSystem(
            access_key=access,
            secret_key=secret,
            endpoint_override=self.endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
            request_timeout=30,  # a server that cannot take a file says why after a while
        )


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """A server that keeps its data in the folder, inside the `with` block."""
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc, metrics = free_ports(9)
    folder.mkdir(parents=True, exist_ok=True)
    login = dict(zip(("accessKey", "secretKey"), _LOGIN, strict=True))
    identity = {"name": "kafka-sla", "credentials": [login], "actions": ["Admin", "Read", "List", "Write"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    options = {
        "dir": folder,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "master.port": master,
        "master.port.grpc": master_grpc,
        "master.volumeSizeLimitMB": 64,
        "volume.port": volume,
        "volume.port.grpc": volume_grpc,
        "volume.max": 64,
        "volume.minFreeSpace": "1MiB",  # without, it takes no file where 99 % of a disk are full
        "filer.port": filer,
        "filer.port.grpc": filer_grpc,
        "s3.port": s3,
        "s3.port.grpc": s3_grpc,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "metricsPort": metrics,
        "master.telemetry": "false",
        "s3.config": folder / "s3.json",
    }
    command = [_program(), "server", "-filer", "-s3", *(f"-{name}={value}" for name, value in options.items())]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        store = ObjectStore(f"http://127.0.0.1:{s3}", f"http://127.0.0.1:{metrics}/metrics", server.pid)
        _make_bucket(store, server, folder / "server.log")
        yield store
    finally:
        server.kill()  # asked to end, it waits ten seconds for clients, and nobody needs its data any more
        server.wait()
        for port in (master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc):
            for socket in _SOCKETS.glob(f"seaweedfs-*-{port}.sock"):
                socket.unlink(missing_ok=True)


def _program() -> str:
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed") or "weed"


def _make_bucket(store: ObjectStore, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server takes a bucket and a file; RuntimeError, with the end of its log, if it never does."""
    deadline = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            store.filesystem.create_dir(BUCKET)
            with store.filesystem.open_output_stream(f"{BUCKET}/ready") as file:
                file.write(b"ready")
            store.filesystem.delete_file(f"{BUCKET}/ready")
            return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                end = "\n".join(log.read_text().splitlines()[-10:])
                raise RuntimeError(f"SeaweedFS takes no file ({error}); is the disk full? Its log:\n{end}") from error
            time.sleep(0.3)
