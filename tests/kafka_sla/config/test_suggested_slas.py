"""Proposals as entries that a configuration takes, whatever groups and topics are called."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kafka_sla.config.settings import load_settings
from kafka_sla.config.suggested_slas import entry, sla_name, yaml_text

NAMES = (
    "billing.alerts-authorised.v2",
    "payments-service",
    "team*[a]/x",
    "/audit/",
    "!backup",
    " spaced ",
    "über",
    "on",
    "12",
    "a\tb",
    "source->target",
    "#1: all",
    "[x]",
    "a'b\"c",
)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_selects_one_group_and_no_other(name: str, tmp_path: Path) -> None:
    made = entry(sla_name("", name, "orders", 30_000, ()), "prod", name, "orders", 30_000, 300_000, 0.995, {})
    (path := tmp_path / "kafka_sla.yml").write_text(f"clusters: {{prod: {{}}}}\n{yaml_text('', [(name, made)])}")
    (sla,) = load_settings(path).slas

    assert [other for other in (*NAMES, f"{name}x", f"x{name}", "ab") if sla.groups.matches(other)] == [name]
    assert (sla.max_latency_ms, sla.for_ms, sla.objective) == (30_000, 300_000, 0.995)


def test_defaults_do_not_change_what_the_objective_counts() -> None:
    made = entry("a", "prod", "payments-service", "orders", 30_000, 300_000, 0.999, {"objective_of": "records"})

    assert (made["objective"], made["objective_of"]) == ("99.9%", "time")


def test_a_name_is_unique_and_fits_its_100_characters() -> None:
    long = "billing.alerts-authorised." * 5
    names: set[str] = set()
    for topic in (f"{long}a", f"{long}b", f"{long}b", "orders", "orders"):
        names.add(sla_name("", "payments-service", topic, 30_000, names))

    assert len(names) == 5 and max(map(len, names)) == 100
    assert {"orders by payments-service within 30s", "orders by payments-service within 30s (2)"} <= names
    assert sla_name("eu", "payments-service", "orders", 90_000, ()) == "eu: orders by payments-service within 1m30s"


def test_nothing_to_paste_is_an_empty_list_below_the_reasons() -> None:
    text = yaml_text("audit on orders: no suggestion:\nwhy", [])

    assert text == "# audit on orders: no suggestion:\n# why\nslas: []\n"
    assert yaml.safe_load(text) == {"slas": []}
