"""Web addresses of a configuration, which pages, mails and requests must be able to use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_sla.config.settings import load_settings
from kafka_sla.errors import SettingsError

UNUSABLE = [
    "https://wiki.example.com]/x",
    "https://[wiki.example.com/x",
    "https://[::1/x",
    "https://wiki.example.com:99999/x",
    "https://wiki.example.com:http/x",
    "https:///x",
    "https://:443/x",
    "https://?x",
    f"https://{'a' * 300}/x",
    f"https://{'a' * 60}.{'b.' * 120}com/x",
    "https://wiki..example.com/x",
    "https://wiki\x00.example.com/x",
    "https://wiki%2Fexample.com/x",
    "ftp://wiki.example.com/x",
    "wiki.example.com/x",
]
USABLE = [
    "https://wiki.example.com/x",
    "http://[::1]:8080/x?y=[1]#z",
    "https://größe.example/x",
    "http://wiki_1:65535",
    "https://wiki.example.com./x",
]


def configuration(key: str, address: str) -> dict[str, Any]:
    cluster: dict[str, Any] = {"connection": "kafka"}
    sla: dict[str, Any] = {"name": "orders", "group": "orders", "max_latency": "30s", "team": "Shop"}
    document: dict[str, Any] = {"clusters": {"prod": cluster}, "slas": [sla]}
    if key == "base_url":
        document["base_url"] = address
    elif key == "slas[0].runbook":
        sla["runbook"] = address
    elif key == "teams.Shop.runbook":
        document["teams"] = {"Shop": {"runbook": address}}
    else:
        cluster["jmx_exporters"] = {"1": address}
    return document


KEYS = ["base_url", "slas[0].runbook", "teams.Shop.runbook", "clusters.prod.jmx_exporters.1"]


@pytest.mark.parametrize("address", UNUSABLE)
@pytest.mark.parametrize("key", KEYS)
def test_an_address_that_cannot_be_opened_is_refused_with_its_key(tmp_path: Path, key: str, address: str) -> None:
    config = tmp_path / "kafka_sla.yml"
    config.write_text(yaml.safe_dump(configuration(key, address)))

    with pytest.raises(SettingsError, match="has 1 error") as refused:
        load_settings(config)

    assert f": {key}: " in str(refused.value)
    assert "allowed: " in str(refused.value)


@pytest.mark.parametrize("address", USABLE)
@pytest.mark.parametrize("key", KEYS)
def test_an_address_that_can_be_opened_is_taken(tmp_path: Path, key: str, address: str) -> None:
    config = tmp_path / "kafka_sla.yml"
    config.write_text(yaml.safe_dump(configuration(key, address)))

    assert load_settings(config).slas[0].name == "orders"
