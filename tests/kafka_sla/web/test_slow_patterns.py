"""A name in a web request cannot keep the web server busy, whatever patterns the configuration has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.kafka_sla.web.conftest import Asker, Served

NAME = "a" * 40 + "!"


@pytest.mark.parametrize("path", ["/api/v1/slas", "/api/v1/misses", "/"])
@pytest.mark.parametrize("key", ["group", "topic"])
def test_no_name_in_a_query_takes_long_to_match(
    reader: Asker, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, key: str
) -> None:
    config = tmp_path / "kafka_sla.yml"
    slow = '"/([a-z]+-?)+-service/", "*a*a*a*a*a*a*a*a*a*b"'
    sla = f"\n  - {{name: slow, groups: [{slow}], topics: [{slow}], max_latency: 30s}}\n"
    config.write_text(served.config.read_text().replace("\nslas:\n", f"\nslas:{sla}"))
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(config))
    start = time.process_time()

    answer = reader.get(path, **{key: NAME})

    assert answer.status_code == 200, answer.text
    assert time.process_time() - start < 20
