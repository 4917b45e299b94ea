"""A chain whose second stage becomes slow: its verdicts, its miss, and the same words in mail and terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import Notice
from tests.kafka_sla.chained import LATE, NAME, NOW, STAGES, UNKNOWN, Chained, built
from tests.kafka_sla.loads import DAY, MINUTE


@pytest.fixture(scope="module")
def chained(tmp_path_factory: pytest.TempPathFactory) -> Chained:
    return built(tmp_path_factory.mktemp("chained"), DAY)


def words(page: str) -> str:
    return " ".join(page.split())


def test_the_bounds_decide_each_window(chained: Chained) -> None:
    found = [(w.verdict, w.is_certain) for w in chained.verdicts]

    well, late = ("good", True), ("bad", True)
    assert found == [*[well] * 5, ("unknown", False), ("excluded", False), *[well] * 3, *[late] * 10]
    assert chained.verdicts[5].reason == f"the chain: {UNKNOWN}"
    assert chained.verdicts[6].reason == "bootstrapping: at least one group of the chain"
    assert {(w.records_due, w.records_late) for w in chained.verdicts[10:]} == {(60, 60)}


def test_the_miss_names_the_stage_that_was_late_and_where(chained: Chained) -> None:
    miss = chained.miss

    assert (miss.start, miss.end, miss.bad_windows) == (chained.whole.start + 10 * MINUTE, None, 10)
    assert (miss.worst_group, miss.worst_topic, miss.worst_partition) == (*STAGES[1], 3)
    assert (miss.evidence["chain_stage"], len(miss.evidence["chain"])) == (2, 3)
    assert miss.evidence["sentence"].startswith(LATE)


def test_the_mail_says_the_same(chained: Chained) -> None:
    sla = chained.settings.sla(NAME)
    mail = compose(sla, Notice("opened", chained.miss, None), chained.verdicts, "airflow@example.com")
    body = mail.get_body(("plain",))

    assert body is not None
    text = words(body.get_content())
    assert LATE in text
    assert "every record passes all 3 stages within 1 min; a miss opens after 3 min of violations" in text


def test_the_terminal_says_the_same(
    chained: Chained, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(str(chained.store.url.database)).parent
    monkeypatch.chdir(folder)
    arguments = ("status", "--config", "kafka_sla.yml", "--store", str(folder))

    assert main(arguments) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
    assert (main([*arguments, "--wide"]), main([*arguments, "--json"])) == (0, 0)

    text, _, values = capsys.readouterr().out.partition("\n{")
    assert NOW in text
    assert json.loads("{" + values)["slas"][0]["chain"]["slowest_stage"] == 2
