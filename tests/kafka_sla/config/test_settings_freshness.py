"""The section `lateness` of the configuration file: what it means, and how its mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_sla.model.entities import Lateness
from tests.kafka_sla.config.test_settings import document, load, mistakes


def test_by_itself_nobody_is_mailed_about_late_runs(tmp_path: Path) -> None:
    assert load(tmp_path, document()).lateness is None


def test_recipients_are_enough_to_be_told_after_three_intervals(tmp_path: Path) -> None:
    settings = load(tmp_path, document(lateness={"recipients": ["ops@example.com"]}))

    assert settings.lateness == Lateness(("ops@example.com",), 900_000)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "lateness.recipients: required key is missing"),
        ({"recipients": []}, "lateness.recipients: [] is empty; allowed: at least one"),
        ({"recipients": ["ops"]}, "lateness.recipients[0]: 'ops' is not allowed here; allowed: an e-mail address"),
        ({"recipients": ["o@x.y"], "after": 15}, "lateness.after: 15 is not a duration"),
        ({"recipients": ["o@x.y"], "afte": "15m"}, "lateness.afte: unknown key; did you mean 'after'?"),
    ],
)
def test_a_mistake_is_told_with_its_cure(tmp_path: Path, keys: dict[str, Any], told: str) -> None:
    (line,) = mistakes(tmp_path, document(lateness=keys))

    assert told in line
