"""`kafka-sla suggest` over a store that was measured without an SLA, and over the same store with what it suggested."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.sla.attainment import attainment_in

pytestmark = pytest.mark.slow

START, HOURS, HOUR = datetime(2026, 11, 2, tzinfo=UTC), 14, 3_600
ALERTS, ORDERS = "billing.alerts-authorised.v2", "orders"
PAYMENTS, REPLAYS, AUDIT, STOPPED = "payments-service", "replays*[eu]/v1", "audit-trail", "stopped.consumer"
PER_SECOND = 5
CONFIG = """\
clusters: {prod: {}}
defaults:
  steady_state: {grace_period: 3h}
  maintenance: [{from: 2026-11-02T12:00Z, to: 2026-11-02T12:20Z, reason: brokers are updated}]
"""
Captured = pytest.CaptureFixture[str]


def instant(second: float) -> str:
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ends() -> Iterator[Sequence[object]]:
    """Both topics have been written to for an hour already."""
    for topic in (ALERTS, ORDERS):
        for second in range(-HOUR, HOURS * HOUR + 1, 20):
            yield "prod", topic, 0, instant(second), 0, (second + HOUR) * PER_SECOND, "list_offsets"


def commits(group: str, topic: str) -> Iterator[Sequence[object]]:
    """From an hour behind on it catches up for two hours; what happens to each group then is its own."""
    chance = random.Random(group)
    second, position, first = 300.0, 0, True
    while second < (HOUR if group == STOPPED else HOURS * HOUR):
        if group == PAYMENTS and 6 * HOUR < second < 6 * HOUR + 900:
            second = 6 * HOUR + 900.0  # stands still for a quarter of an hour
        read = int((second - chance.uniform(3, 6) + HOUR) * PER_SECOND)
        position = min(read, position + 160) if second < 3 * HOUR else read
        if group == REPLAYS and 9 * HOUR < second < 9 * HOUR + 30:
            position -= 40_000
        source = "compacted_commit_log" if group == AUDIT and first else "commit_log"
        yield "prod", group, topic, 0, instant(second), position, source
        second, first = second + chance.uniform(15, 25), False


def write(path: Path, header: str, rows: Iterator[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of fourteen hours that nobody judged."""
    folder = tmp_path_factory.mktemp("suggest")
    (folder / "kafka_sla.yml").write_text(CONFIG)
    log, committed = folder / "log.csv", folder / "committed.csv"
    write(log, "cluster,topic,partition,at,log_start_offset,log_end_offset,source", ends())
    pairs = ((PAYMENTS, ALERTS), (REPLAYS, ORDERS), (AUDIT, ORDERS), (STOPPED, ORDERS))
    rows = (row for pair in pairs for row in commits(*pair))
    write(committed, "cluster,group,topic,partition,at,committed_offset,source", rows)
    command(folder, "import", "--log-offsets", str(log), "--committed-offsets", str(committed))
    command(folder, "run", *span())
    return folder


def span() -> tuple[str, ...]:
    return "--from", instant(0), "--to", instant(HOURS * HOUR)


def command(folder: Path, *words: str, expected: int = 0) -> None:
    assert main([*words, "--config", str(folder / "kafka_sla.yml"), "--store", str(folder / "store")]) == expected


def suggested(folder: Path, capsys: Captured, *words: str) -> Any:
    capsys.readouterr()
    command(folder, "suggest", "--json", *words)
    return json.loads(capsys.readouterr().out)


def contents(folder: Path) -> dict[str, str]:
    """Every file of the store; the two of SQLite beside its database come and go with its readers."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in (".db-wal", ".db-shm"))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_three_proposals_for_each_group_that_could_be_judged_and_a_sentence_for_the_other(
    measured: Path, capsys: Captured
) -> None:
    found = {one["group"]: one for one in suggested(measured, capsys)}

    assert {group: len(one["proposals"]) for group, one in found.items()} == {
        PAYMENTS: 3,
        REPLAYS: 3,
        AUDIT: 3,
        STOPPED: 0,
    }
    assert found[STOPPED]["reason"].startswith("no threshold up to 3 h 30 min, a quarter of the time, fits")
    strict, _, relaxed = found[PAYMENTS]["proposals"]
    assert strict["max_latency_ms"] < relaxed["max_latency_ms"]
    (miss,) = strict["misses"]
    assert (miss["start"][11:16], 14 * 60_000 <= miss["length_ms"] <= 16 * 60_000) == ("06:01", True)
    assert strict["budget_spent"] == pytest.approx(strict["bad_ms"] / strict["budget_ms"])
    assert strict["sla"]["name"] == f"{ALERTS} by {PAYMENTS} within {strict['sla']['max_latency']}"


def test_what_is_reported_of_a_proposal_is_what_its_sla_gets_and_nothing_of_it_is_stored(
    measured: Path, capsys: Captured
) -> None:
    before = contents(measured / "store")
    found = suggested(measured, capsys)
    pasted = measured / "pasted.yml"
    levels = [word for level in ("strict", "balanced", "relaxed") for word in ("--level", level)]
    command(measured, "suggest", "--output", str(pasted), *levels)
    assert contents(measured / "store") == before

    configured = measured / "configured.yml"
    configured.write_text(f"{CONFIG}{pasted.read_text()}")
    assert (
        main(
            [
                "store",
                "copy",
                str(measured / "copy"),
                "--config",
                str(measured / "kafka_sla.yml"),
                "--store",
                str(measured / "store"),
            ]
        )
        == 0
    )
    assert main(["run", *span(), "--config", str(configured), "--store", str(measured / "copy")]) == 0
    settings, verdicts = load_settings(configured), Ledger(Store.embedded(measured / "copy")).verdicts
    whole = Interval(START, START + timedelta(hours=HOURS))
    compared = [proposal for one in found for proposal in one["proposals"]]
    for proposal in compared:
        sla = settings.sla(proposal["sla"]["name"])
        got = attainment_in(sla, verdicts.windows(sla.name, whole), whole)
        figures = ("good_ms", "bad_ms", "excluded_ms", "unknown_ms", "attainment", "coverage")
        assert {name: getattr(got, name) for name in figures} == {name: proposal[name] for name in figures}
        assert (got.allowed, got.left) == (proposal["budget_ms"], proposal["budget_left_ms"])
        assert [
            (miss.start, miss.end, miss.bad_windows, miss.worst_latency_ms) for miss in verdicts.misses(sla, whole)
        ] == [
            (
                datetime.fromisoformat(miss["start"]),
                miss["end"] and datetime.fromisoformat(miss["end"]),
                miss["bad_windows"],
                miss["worst_latency_ms"],
            )
            for miss in proposal["misses"]
        ]
    assert len(compared) == len(settings.slas) == 9
    assert any(one["misses"] for one in compared) and all(one["excluded_ms"] for one in compared)
    unknown = {one["group"]: one["proposals"][0]["unknown_ms"] for one in found if one["proposals"]}
    assert unknown[AUDIT] > unknown[PAYMENTS] + HOUR * 1_000  # its first commits were compacted away


def test_the_output_is_yaml_to_paste_with_the_figures_as_remarks(measured: Path, capsys: Captured) -> None:
    capsys.readouterr()
    command(measured, "suggest", "--quiet", "--group", PAYMENTS, "--group", STOPPED)
    text = capsys.readouterr().out

    (entry,) = yaml.safe_load(text)["slas"]
    assert (entry["group"], entry["topic"], entry["cluster"]) == (PAYMENTS, ALERTS, "prod")
    assert text.startswith(f"# {STOPPED} on {ORDERS}, cluster prod, 2026-11-02 00:00 to 2026-11-02 14:00 UTC: no sugg")
    assert "# strict " in text and "# relaxed " in text
    (measured / "more.yml").write_text(CONFIG + text)
    assert [sla.name for sla in load_settings(measured / "more.yml").slas] == [entry["name"]]


def test_a_picture_of_each_group_that_has_proposals(measured: Path, capsys: Captured) -> None:
    command(measured, "suggest", "--topic", ORDERS, "--plots", str(measured / "plots"))

    pictures = sorted((measured / "plots").iterdir())
    assert [path.name.rpartition("-")[0] for path in pictures] == ["audit-trail-orders", "replays_eu_v1-orders"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_time_that_was_never_published_is_unknown(measured: Path, capsys: Captured) -> None:
    long = ("--from", instant(-16 * HOUR), "--to", instant(HOURS * HOUR), "--group", PAYMENTS)
    (one,) = suggested(measured, capsys, *long)

    assert one["proposals"] == [] and one["reason"].endswith("of 1 d 6 h can be judged; half of the time is needed")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "2025-01-01", "--to", "2025-01-02"), "nothing is published of this time; measure it first"),
        (("--group", "nobody"), "nothing is published of such groups and topics in this time"),
        (("--group", "/[/"), "--group or --topic: not a regex"),
        (("--cluster", "eu"), "the configuration has no cluster 'eu'"),
        (("--plots", "kafka_sla.yml"), "--plots kafka_sla.yml is a file; name a folder"),
        (("--output", "nowhere/slas.yml"), "the folder of --output nowhere/slas.yml does not exist"),
    ],
)
def test_what_cannot_be_is_one_message(
    measured: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(measured)
    command(measured, "suggest", *words, expected=2)

    assert f"kafka-sla: {message}" in capsys.readouterr().err
