"""Somebody edits a threshold between two runs: what was judged before shows the threshold it was judged by."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Digest, Interval, Miss, epoch_ms
from kafka_sla.notifications.digest_email import digest_mail
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import Notice
from kafka_sla.pipeline import steps
from kafka_sla.reporting.digest import tell
from kafka_sla.tasks.events.notifiers import message
from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import MINUTE, build, whole_minute

NAME = "payments within 30 seconds"
BOTH = "threshold 30 s, then 5 min"


@dataclass(frozen=True)
class Edited:
    """What two runs left behind, the second one after 30s had become 5m."""

    config: Path
    store: Store
    whole: Interval
    since: int
    """Start of the second run's interval, milliseconds since the epoch."""

    @property
    def miss(self) -> Miss:
        return Ledger(self.store).verdicts.misses(NAME)[0]

    @property
    def query(self) -> dict[str, str]:
        return {"from": f"{self.whole.start:%FT%TZ}", "to": f"{self.whole.end:%FT%TZ}"}


@pytest.fixture(scope="module")
def edited(reader: Asker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edited]:
    end, length = whole_minute(), timedelta(hours=3)
    config, store = build(tmp_path_factory.mktemp("edited"), end, length)
    config.write_text(config.read_text().replace("max_latency: 30s", "max_latency: 5m"))
    steps.evaluate(load_settings(config), store, NAME, Interval(end - 30 * MINUTE, end))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KAFKA_SLA_CONFIG", str(config))
        connection = {"conn_type": "sqlite", "host": store.url.database}
        environment.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", json.dumps(connection))
        yield Edited(config, store, Interval(end - length, end), epoch_ms(end - 30 * MINUTE))


def told(page: str) -> str:
    return " ".join(page.split())


def test_pages(reader: Asker, edited: Edited) -> None:
    miss, sla = told(reader.get(f"/misses/{edited.miss.id}").text), told(reader.get(f"/slas/{NAME}").text)
    overview = told(reader.get("/").text)

    assert "<dd>every record is consumed within 30 s; a miss opens after 2 min of violations</dd>" in miss
    assert "threshold 30 s" in miss and "5 min" not in miss.split('<div class="charts"')[0]
    assert "Every record is consumed within 5 min;" in sla
    assert '<td class="n" data-label="threshold">30 s</td>' in sla
    assert '<td class="n threshold">5 min</td>' in overview
    assert f"{BOTH}, above it in" in overview


def test_chart_data_is_a_step(reader: Asker, edited: Edited) -> None:
    for figures in ("timeline", "partitions"):
        drawn = reader.json(f"/api/v1/slas/{NAME}/{figures}", **edited.query)
        by_time = list(zip(drawn["at_ms"], drawn["threshold_ms"], strict=True))
        assert {threshold for at, threshold in by_time if at < edited.since - 300_000} == {30_000}
        assert {threshold for at, threshold in by_time if at >= edited.since} == {300_000}


def test_api_metrics_and_downloads(reader: Asker, edited: Edited) -> None:
    found = reader.json(f"/api/v1/misses/{edited.miss.id}")
    timeline, windows = (
        list(csv.DictReader(io.StringIO(reader.get(f"/api/v1/slas/{NAME}/{name}", **edited.query).text)))
        for name in ("timeline.csv", "windows")
    )

    assert (found["max_latency_ms"], found["for_ms"]) == (30_000, 120_000)
    assert reader.json(f"/api/v1/slas/{NAME}")["max_latency_ms"] == 300_000
    assert (
        {row["threshold_ms"] for row in timeline} == {row["max_latency_ms"] for row in windows} == {"30000", "300000"}
    )
    assert f'kafka_sla_threshold_seconds{{cluster="prod",sla="{NAME}",team="Payments"}} 300.0' in (
        reader.get("/metrics").text
    )


def test_mail_and_message_of_a_miss(edited: Edited) -> None:
    sla = load_settings(edited.config).sla(NAME)
    notice, windows = Notice("opened", edited.miss), Ledger(edited.store).verdicts.windows(NAME, edited.whole)
    mail = compose(sla, notice, windows, "sla@example.com")

    for kind in ("plain", "html"):
        body = mail.get_body((kind,))
        assert body is not None
        assert "every record is consumed within 30 s" in body.get_content()
    assert mail["Subject"].endswith(", threshold 30 s")
    assert ", threshold 30 s, group payments" in message(sla, notice)


def test_report_and_digest(edited: Edited, tmp_path: Path) -> None:
    settings, period = load_settings(edited.config), edited.whole
    page = tmp_path / "report.html"
    command_line(edited, "report", "--sla", NAME, "--output", str(page), *span(edited))
    digest = Digest("Payments", "day", whole_minute().time())
    values = tell(Ledger(edited.store), digest, [settings.sla(NAME)], period)
    mail = digest_mail(digest, period, values, ["lead@example.com"], "sla@example.com")

    report = told(page.read_text())
    assert "Judged here by 30 s, then 5 min." in report
    assert f"at worst, {BOTH}" in report
    assert ", threshold 30 s: group payments" in report
    for kind in ("plain", "html"):
        body = mail.get_body((kind,))
        assert body is not None
        text = told(body.get_content())
        assert "30 s, then 5 min" in text
        assert ", threshold 30 s" in text


def test_command_line(edited: Edited, capsys: pytest.CaptureFixture[str]) -> None:
    misses = command_line(edited, "misses", "--sla", NAME, capsys=capsys)
    raw = json.loads(command_line(edited, "misses", "--sla", NAME, "--json", capsys=capsys))
    status = command_line(edited, "status", capsys=capsys)

    assert "Required: every record is consumed within 30 s; a miss opens after 2 min of violations" in misses
    assert {miss["max_latency_ms"] for miss in raw} == {30_000}
    assert next(line for line in status.splitlines() if line.startswith(NAME)).split()[-2:] == ["5", "min"]


def span(edited: Edited) -> list[str]:
    return ["--from", edited.query["from"], "--to", edited.query["to"]]


def command_line(edited: Edited, *arguments: str, capsys: pytest.CaptureFixture[str] | None = None) -> str:
    store = str(Path(edited.store.url.database or "").parent)
    assert main([*arguments, "--config", str(edited.config), "--store", store]) == 0
    return capsys.readouterr().out if capsys else ""
