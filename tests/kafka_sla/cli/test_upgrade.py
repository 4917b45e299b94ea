"""A store that another version made, with all its files: read, moved, checked, and measured on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.simulation import older_store
from kafka_sla.cli.main import main

pytestmark = pytest.mark.slow

ALL = ["--from", "2026-11-01T08:00Z", "--to", "2026-11-01T08:20Z"]
SAME_NAMES = ("consumer_latency", "consumer_status", "non_consumed")
"""Tables whose columns are called as they were."""


@pytest.fixture(autouse=True)
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    older_store.unpack(tmp_path)


def exported(table: str, *options: str) -> list[str]:
    assert main([*options, "export", table, *ALL, "--output", "rows.csv"]) == 0
    head, *rows = Path("rows.csv").read_text().splitlines()
    return [head, *sorted(rows)]


def test_a_store_of_an_older_version_is_moved_and_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "consumer_latency", "--output", "rows.csv"]) == 1
    assert "run `kafka-sla store move`" in capsys.readouterr().err
    assert main(["store", "move"]) == 0
    assert main(["store", "check"]) == 0
    assert "all as they were written" in capsys.readouterr().out

    for table in SAME_NAMES:
        head, *rows = Path("exported", f"{table}.csv").read_text().splitlines()
        assert exported(table) == [head, *sorted(rows)], table
    verdicts = [row.split(",")[4] for row in exported("sla_windows")[1:]]
    assert {word: verdicts.count(word) for word in set(verdicts)} == {"good": 28, "bad": 10, "excluded": 2}
    assert main(["misses"]) == 0
    printed = capsys.readouterr().out
    assert "RECOVERED: alerts within 30 s at 2026-11-01 08:09:00 UTC" in printed
    assert "SLA MISSED: alerts within 30 s since 2026-11-01 08:15:00 UTC" in printed


def test_measured_on_it_holds_what_a_new_store_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "move"]) == 0
    for options in ([], ["--store", "new"]):
        assert main([*options, "import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"]) == 0
        assert main([*options, "run", *ALL]) == 0

    for table in (*SAME_NAMES, "steady_state", "sla_windows", "sla_misses"):
        assert exported(table) == exported(table, "--store", "new"), table
    assert "log.csv: 0 new rows" in capsys.readouterr().out
