"""Waiting until the servers of a cluster have found each other, by what one of them says over HTTP."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Sequence

_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def wait_until_joined(
    address: str, counted: str, processes: Sequence[subprocess.Popen[bytes]], seconds: float, workers: int = 1
) -> None:
    """Until the JSON at the address counts so many workers. The logs of the processes are in their folder."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert all(process.poll() is None for process in processes), "a process ended; its log is in the folder"
        try:
            with _OPEN(address, timeout=5) as answer:
                if json.load(answer)[counted] == workers:
                    return
        except (OSError, ValueError):
            pass  # not listening yet, or nothing behind it yet
        time.sleep(0.3)
    raise TimeoutError(f"{address} does not count {workers} {counted} within {seconds:.0f} s")
