"""Consumers that commit less often than a threshold allows: what `check`, `suggest` and a miss say about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.text.timestamps import instant_text

START = datetime(2026, 11, 20, 8, tzinfo=UTC)
CONFIG = """\
window: 10s
clusters: {prod: {}}
defaults: {max_latency: 30s, for: 20s}
slas:
  - {name: flink, group: g-minutely, topic: orders}
  - {name: quick, group: g-quick, topic: orders}
"""


def write_facts() -> None:
    """Half an hour in which one group commits every minute, and another every five seconds; ten records a second."""
    times = [START + timedelta(seconds=5 * number) for number in range(361)]
    log = [f"prod,orders,0,{instant_text(at)},0,{50 * number},x" for number, at in enumerate(times)]
    commits = [f"prod,g-quick,orders,0,{instant_text(at)},{50 * number},commit_log" for number, at in enumerate(times)]
    commits += [row.replace("g-quick", "g-minutely") for row in commits[::12]]
    Path("log.csv").write_text(
        "\n".join(["cluster,topic,partition,at,log_start_offset,log_end_offset,source", *log]) + "\n"
    )
    Path("commits.csv").write_text(
        "\n".join(["cluster,group,topic,partition,at,committed_offset,source", *commits]) + "\n"
    )


def test_a_threshold_shorter_than_the_commits_is_named_by_check_and_by_the_miss(
    empty_folder: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("kafka_sla.yml").write_text(CONFIG)
    write_facts()
    assert main(["import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"]) == 0
    assert main(["run", "--from", instant_text(START), "--to", instant_text(START + timedelta(minutes=30))]) == 0
    capsys.readouterr()

    main(["check"])
    lines = capsys.readouterr().out.splitlines()
    (note,) = [number for number, line in enumerate(lines) if "can be neither met nor shown" in line]
    assert lines[note] == (
        "note SLA flink: group g-minutely commits every 1 min on orders: a threshold of 30 s can be neither met nor"
        " shown"
    )
    assert lines[note + 1].strip().startswith("set max_latency to more than 1 min")

    main(["misses"])
    misses = capsys.readouterr().out
    assert "Group g-minutely commits every 1 min on orders: a threshold of 30 s can be neither met nor shown." in misses
    assert "g-quick" not in misses

    main(["suggest"])
    assert "It commits every 1 min: a shorter threshold can be neither met nor shown." in capsys.readouterr().out
