"""Whatever a source of positions answers costs only that source: a note, and the positions of the others. Real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_sla.config.settings import load_settings
from kafka_sla.model.entities import Connection, Interval
from kafka_sla.sources.external_offsets import Elsewhere, positions_elsewhere
from tests.kafka_sla.network.served import served

GOOD = {"offsets": [{"partition": {"cluster": "a", "partition": 0, "topic": "orders"}, "offset": {"offset": 7}}]}
Answers = Callable[[str], Elsewhere]


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Answers]:
    """Reads the positions of two flows from Connect, one of which is given the answer, and of one checkpoint."""
    answer = ""

    class Worker(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write((answer if "/odd/" in self.path else json.dumps(GOOD)).encode())

    config = tmp_path / "kafka_sla.yml"
    flows = [{"name": name, "to": "b", "connect": "connect", "connector": name} for name in ("odd", "good")]
    checkpoints = [{"group": "query", "path": str(tmp_path / "checkpoint")}]
    a = {"connection": "kafka_a", "replication": flows, "checkpoints": checkpoints}
    config.write_text(yaml.safe_dump({"clusters": {"a": a, "b": {"connection": "kafka_b"}}, "slas": []}))
    settings, now = load_settings(config), datetime.now(UTC)
    with served(Worker) as port:

        def positions(text: str) -> Elsewhere:
            nonlocal answer
            answer = text
            connection = Connection("connect", host="127.0.0.1", port=port, conn_type="http")
            before = Interval(now - timedelta(minutes=5), now)
            return positions_elsewhere(settings, settings.cluster("a"), lambda _: connection, before, live=True)

        yield positions


def write_checkpoint(folder: Path, *, started: object = 1_795_274_598_647, ends: str = '{"orders":{"0":7}}') -> None:
    for name, text in (("offsets", f'v1\n{{"batchTimestampMs":{json.dumps(started)}}}\n{ends}'), ("commits", "v1\n{}")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "0").write_text(text)


def offsets(offset: Any, partition: Any = 0, topic: Any = "orders") -> str:
    where = {"cluster": "a", "partition": partition, "topic": topic}
    return json.dumps({"offsets": [*GOOD["offsets"], {"partition": where, "offset": {"offset": offset}}]})


CONNECT = {
    "an offset below 0": offsets(-7),
    "a broken offset": offsets(1.9),
    "an offset of 24 digits": offsets(10**23),
    "the largest offset": offsets(2**63 - 1),
    "an offset in text": offsets("7"),
    "an offset that is a switch": offsets(True),
    "an endless offset": offsets(float("inf")),
    "no offset": offsets(None),
    "a partition below 0": offsets(7, -1),
    "a partition of 10 digits": offsets(7, 2**31),
    "a partition in text": offsets(7, "0"),
    "a topic that is a number": offsets(7, 0, 7),
    "a topic that is a list": offsets(7, 0, ["orders"]),
    "a topic without a name": offsets(7, 0, ""),
    "a topic of 300 letters": offsets(7, 0, "a" * 300),
    "a list": "[1]",
    "a number": "17",
    "a list of numbers": '{"offsets": [1]}',
    "a text": '{"offsets": "none"}',
    "entries without partitions": '{"offsets": [{"offset": {"offset": 7}}]}',
    "no JSON": "<html>",
    "JSON that is nested 100,000 deep": "[" * 100_000,
    "a list that is nested 100,000 deep": "[" * 100_000 + "]" * 100_000,
    "a number of 5,000 digits": offsets(7).replace("7", "7" * 5_000),
    "nothing": "",
    "bytes": "\x00\ufffd" * 9,
}


@pytest.mark.parametrize("text", CONNECT.values(), ids=CONNECT)
def test_whatever_connect_answers_costs_only_its_flow(read: Answers, tmp_path: Path, text: str) -> None:
    write_checkpoint(tmp_path / "checkpoint")

    found = read(text)

    assert {(p.group, p.topic, p.partition, p.offset) for p in found.positions} == {
        ("good", "orders", 0, 8),
        ("query", "orders", 0, 7),
    }
    (note,) = found.notes
    assert "flow 'odd'" in note


CHECKPOINTS: dict[str, dict[str, Any]] = {
    "an offset below 0": {"ends": '{"orders":{"0":-7}}'},
    "a broken offset": {"ends": '{"orders":{"0":1.9}}'},
    "an offset of 24 digits": {"ends": '{"orders":{"0":100000000000000000000000}}'},
    "an offset in text": {"ends": '{"orders":{"0":"7"}}'},
    "a partition that is no number": {"ends": '{"orders":{"x":7}}'},
    "a partition of 10 digits": {"ends": '{"orders":{"4294967296":7}}'},
    "a partition below 0": {"ends": '{"orders":{"-1":7}}'},
    "a topic without a name": {"ends": '{"":{"0":7}}'},
    "JSON that is nested 100,000 deep": {"ends": "[" * 100_000},
    "no JSON": {"ends": "{{"},
    "a start in ns": {"started": 1_795_274_598_647_000_000},
    "a start below 0": {"started": -1},
    "a start that is text": {"started": "today"},
    "a start that is a list": {"started": [1]},
}


@pytest.mark.parametrize("written", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_whatever_a_checkpoint_holds_costs_only_its_query(
    read: Answers, tmp_path: Path, written: dict[str, Any]
) -> None:
    write_checkpoint(tmp_path / "checkpoint", **written)

    found = read(json.dumps(GOOD))

    assert {(p.group, p.offset) for p in found.positions} == {("odd", 8), ("good", 8)}
    (note,) = found.notes
    assert f"checkpoint {tmp_path}/checkpoint of group 'query'" in note


def test_a_checkpoint_whose_file_has_gigabytes_is_not_read_whole(read: Answers, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "checkpoint")
    with (tmp_path / "checkpoint/offsets/0").open("r+b") as large:
        large.truncate(8 * 1024**3)

    found = read(json.dumps(GOOD))

    assert {p.group for p in found.positions} == {"odd", "good"}
    assert "its file has 16777216 bytes or more" in found.notes[0]
