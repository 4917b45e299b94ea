"""Time excluded afterwards from the terminal: what is added, listed and undone, and where it is seen."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import BurnPair
from kafka_sla.reporting.digest import tell
from kafka_sla.sla.burn import Burn
from tests.kafka_sla.ledger.test_verdicts import windows
from tests.kafka_sla.loads import at, span

NAME = "billing.alerts-authorised-v2 within 30 s"
CONFIG = f"""\
clusters: {{prod: {{}}}}
slas:
  - {{name: "{NAME}", group: billing, topic: orders, max_latency: 30s, for: 2m, objective: 99%, on_miss: fail}}
digests:
  - {{name: Daily, every: day, recipients: [lead@example.com]}}
"""
PLACES = ("--config", "kafka_sla.yml", "--store", "store")
TIME = ("--from", "2026-03-02T10:02Z", "--to", "2026-03-02T10:06Z")
Captured = pytest.CaptureFixture[str]


def run(*words: str) -> int:
    return main(["exclusions", *words, *PLACES])


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A quarter of an hour with a miss in it."""
    monkeypatch.chdir(tmp_path)
    Path("kafka_sla.yml").write_text(CONFIG)
    sla, ledger = load_settings("kafka_sla.yml").sla(NAME), Ledger(Store.embedded(Path("store")))
    time = span("10:00", "10:15")
    ledger.verdicts.replace(sla, time, windows("10:00", "gggbbbggggggggg", sla))
    return ledger


def test_what_is_excluded_is_listed_seen_everywhere_and_undone(ledger: Ledger, capsys: Captured) -> None:
    settings = load_settings("kafka_sla.yml")
    (digest,) = settings.digests
    assert run("add", "--sla", NAME, *TIME, "--reason", "load test", "--author", "ada") == 0
    added = capsys.readouterr().out.partition(":")[0]

    assert (run("list"), run("list", "--sla", NAME, "--json"), main(["misses", *PLACES])) == (0, 0, 0)
    main(["export", "sla_windows", "--from", "2026-03-02T10:03Z", "--to", "2026-03-02T10:04Z", *PLACES])
    shown = capsys.readouterr().out
    assert f"{added}  {NAME}  2026-03-02 10:02:00 UTC  2026-03-02 10:06:00 UTC  ada" in shown
    assert '"reason": "load test"' in shown
    assert "Not counted: excluded afterwards by ada: load test." in shown
    assert "excluded,true,excluded afterwards by ada: load test" in shown
    told = tell(ledger, digest, settings.slas, span("0:00", "24:00")).values
    assert told["exclusions"] == [f"{NAME}: 4 min excluded afterwards by ada: load test."]
    assert told["summary"] == "The SLA was met."

    assert run("undo", added, "--author", "grace", "--reason", "it was none") == 0
    assert run("undo", added) == 2
    assert f"{added} was undone by grace" in capsys.readouterr().err
    assert tell(ledger, digest, settings.slas, span("0:00", "24:00")).values["summary"] == "The SLA was missed."
    run("list", "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["author"], row["undone_by"], row["undone_reason"]) == ("ada", "grace", "it was none")
    main(["export", "exclusions", "--format", "json", *PLACES])
    assert [one["reason"] for one in json.loads(capsys.readouterr().out)].count("it was none") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--sla", "nobody's", *TIME, "--reason", "x"), "nobody's"),
        (("--sla", NAME, *TIME, "--reason", " "), "needs a reason"),
        (("--sla", NAME, "--from", "2026-03-02T11Z", "--to", "2026-03-02T10Z", "--reason", "x"), "must end after"),
        (("--sla", NAME, "--from", "1h", "--to", "9998-01-01", "--reason", "x"), "ends in the future"),
        (("--sla", NAME, "--from", "1970-01-01", "--to", "2026-03-02", "--reason", "x"), "at most 366 days"),
        (("--sla", NAME, "--from", "2026-02-02T10Z", "--to", "2026-02-02T11Z", "--reason", "x"), "was not judged"),
    ],
)
def test_an_impossible_exclusion_is_one_error_and_changes_nothing(
    ledger: Ledger, capsys: Captured, words: tuple[str, ...], why: str
) -> None:
    assert run("add", *words) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert why in error
    assert ledger.exclusions.listed() == []


def test_who_excludes_time_while_the_error_budget_burns_hears_that_the_next_run_judges_it(
    ledger: Ledger, capsys: Captured
) -> None:
    burn = Burn("b1", NAME, "prod", "page", at("10:05"), None, 20.0, BurnPair(14.4, 3_600_000, 300_000, "page", 1))
    ledger.burns.replace([NAME], span("10:00", "10:15"), lambda *_: [burn])

    run("add", "--sla", NAME, *TIME, "--reason", "load test")

    assert "the error budget burns (page since 2026-03-02 10:05:00 UTC): the next run judges that again" in (
        capsys.readouterr().out
    )


def test_a_user_of_whom_a_container_knows_the_number_only_excludes_time_under_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)

    assert run("add", "--sla", NAME, *TIME, "--reason", "load test") == 0
    (added,) = ledger.exclusions.listed()
    assert added.author == f"user {os.getuid()}"
