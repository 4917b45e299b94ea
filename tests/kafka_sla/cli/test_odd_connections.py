"""Connections whose values cannot be: `check` names each of them, and goes on to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.config.store_marker import Marker
from kafka_sla.errors import StoreError

CONFIG = """\
clusters: {prod: {connection: kafka_prod}, old: {}}
smtp_connection: mail
slas:
  - {name: orders, cluster: prod, group: orders, max_latency: 30s, recipients: [a@example.com],
     webhooks: [{connection: hook}]}
"""
MAIL = {"conn_type": "smtp", "host": "127.0.0.1", "port": 1, "extra": {"from_email": "sla@example.com"}}
KAFKA = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
HOOK = {"conn_type": "http", "host": "http://127.0.0.1:1"}
LONG = "a" * 300


def mail(timeout: object) -> dict[str, Any]:
    return MAIL | {"extra": {"from_email": "sla@example.com", "timeout": timeout}}


ODD: dict[str, tuple[str, Any, str]] = {
    "a time-out with a unit": ("MAIL", mail("30s"), "timeout in its extra is '30s"),
    "a time-out that is a list": ("MAIL", mail([30]), "timeout in its extra is"),
    "a time-out of NaN": ("MAIL", mail("NaN"), "timeout in its extra is 'NaN'"),
    "a time-out below 0": ("MAIL", mail(-1), "timeout in its extra is '-1'"),
    "a port of a mail server": ("MAIL", MAIL | {"port": 99_999}, "AIRFLOW_CONN_MAIL holds no connection"),
    "a port in other digits": ("MAIL", MAIL | {"port": "\u00b2"}, "AIRFLOW_CONN_MAIL holds no connection"),
    "a host of a mail server": ("MAIL", MAIL | {"host": LONG}, "FAIL mail: mail server aaaa"),
    "a port of a receiver": ("HOOK", HOOK | {"host": "http://127.0.0.1:99999"}, "connection 'hook': "),
    "a host of a receiver": ("HOOK", HOOK | {"host": f"http://{LONG}"}, "connection 'hook': "),
    "a host in brackets": ("HOOK", HOOK | {"host": "http://[::1"}, "connection 'hook': "),
    "a port of a broker": ("KAFKA_PROD", {"extra": {"bootstrap.servers": "127.0.0.1:99999"}}, "FAIL cluster prod: "),
    "a host of a broker": ("KAFKA_PROD", {"extra": {"bootstrap.servers": f"{LONG}:9092"}}, "FAIL cluster prod: "),
    "an extra that is a list": ("KAFKA_PROD", {"conn_type": "kafka", "extra": [1]}, "holds no connection"),
    "JSON that is nested 20,000 deep": ("KAFKA_PROD", '{"extra": ' + "[" * 20_000 + "]" * 20_000 + "}", "FAIL cluster"),
}


@pytest.mark.parametrize(("variable", "value", "words"), ODD.values(), ids=ODD)
def test_an_odd_connection_is_named_and_the_check_goes_on(
    empty_folder: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: Any,
    words: str,
) -> None:
    Path("kafka_sla.yml").write_text(CONFIG)
    given = {"MAIL": MAIL, "KAFKA_PROD": KAFKA, "HOOK": HOOK} | {variable: value}
    for name, connection in given.items():
        text = connection if isinstance(connection, str) else json.dumps(connection)
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", text)

    assert main(["check"]) == 1

    out = capsys.readouterr().out
    assert words in out
    for name in ("cluster prod", "cluster old", "mail", "hook"):
        assert name in out
    assert "defect" not in out and "Traceback" not in out


@pytest.mark.parametrize(
    "text", ["[1]", "[]", "0", '"x"', "null", "{}", '{"store_id": 1, "state": [2]}', "[" * 100_000, "\x00"]
)
def test_a_marker_that_holds_something_else_is_named(tmp_path: Path, text: str) -> None:
    store = Store.embedded(tmp_path)
    Path(store.warehouse).mkdir()
    (Path(store.warehouse) / "kafka_sla_store.json").write_text(text)

    with pytest.raises(StoreError, match=r"kafka_sla_store\.json is damaged"):
        Marker(store).read()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_a_csv_that_is_not_in_utf_8_is_named(
    empty_folder: None, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    Path("kafka_sla.yml").write_text("clusters: {prod: {}}\nslas: []\n")
    text = "\ufeff" * (encoding == "utf-16-be") + "cluster,topic,partition,at,log_start_offset,log_end_offset,source\n"
    Path("ends.csv").write_bytes(text.encode(encoding))

    assert main(["import", "--log-offsets", "ends.csv"]) == 1

    assert "ends.csv: its text is UTF-16 or UTF-32; allowed: UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("depth", [3_000, 100_000])
def test_an_openslo_document_that_is_nested_too_deeply_is_named(
    empty_folder: None, capsys: pytest.CaptureFixture[str], depth: int
) -> None:
    Path("slo.yml").write_text("a: " + "[" * depth + "]" * depth)

    assert main(["import-slo", "slo.yml"]) == 2

    assert "slo.yml is nested too deeply to be an OpenSLO document" in capsys.readouterr().err
