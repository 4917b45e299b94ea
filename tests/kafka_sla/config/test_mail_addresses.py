"""Addresses of recipients that mail servers would refuse, or read as something else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kafka_sla.config.settings import load_settings
from kafka_sla.errors import SettingsError


def configure(folder: Path, address: str) -> Path:
    config = folder / "kafka_sla.yml"
    sla = {"name": "orders", "group": "orders", "max_latency": "30s", "recipients": ["team@example.com", address]}
    config.write_text(yaml.safe_dump({"clusters": {"prod": {}}, "slas": [sla]}))
    return config


@pytest.mark.parametrize(
    "address",
    [
        *("a@b.", ".@.", "(x)@y", "a@", "@b", "a", "a@b@c", "a..b@c", ".a@b", "a.@b", "a@.b", "a@b..c", "a\x00@b"),
        *("a@b\x00", "a b@c", "a@b\n", "<a@b>", "a@[b]", "a,b@c", "a;b@c", '"a"@b', "a\\@b", "a:b@c", "a@b\x7f"),
    ],
)
def test_an_address_that_is_none_is_refused_with_its_line(tmp_path: Path, address: str) -> None:
    with pytest.raises(SettingsError, match=r"line \d+: slas\[0\]\.recipients\[1\]: .*allowed: an e-mail address"):
        load_settings(configure(tmp_path, address))


@pytest.mark.parametrize("address", ["a@localhost", "a.b+c@d-e.example", "größe@größe.example", "o'neil!#$%@b.c"])
def test_an_address_is_taken(tmp_path: Path, address: str) -> None:
    assert load_settings(configure(tmp_path, address)).slas[0].recipients[1] == address
