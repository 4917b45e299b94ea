"""The section `freshness_alert` of the configuration file: what it means, and how its mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_sla.model.entities import FreshnessAlert
from tests.kafka_sla.config.test_settings import document, load, mistakes


def test_by_itself_nobody_is_mailed_about_late_runs(tmp_path: Path) -> None:
    assert load(tmp_path, document()).freshness_alert is None


def test_recipients_are_enough_to_be_told_after_three_intervals(tmp_path: Path) -> None:
    settings = load(tmp_path, document(freshness_alert={"recipients": ["ops@example.com"]}))

    assert settings.freshness_alert == FreshnessAlert(("ops@example.com",), 900_000)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "freshness_alert.recipients: required key is missing"),
        ({"recipients": []}, "freshness_alert.recipients: [] is empty; allowed: at least one"),
        (
            {"recipients": ["ops"]},
            "freshness_alert.recipients[0]: 'ops' is not allowed here; allowed: an e-mail address",
        ),
        ({"recipients": ["o@x.y"], "after": 15}, "freshness_alert.after: 15 is not a duration"),
        ({"recipients": ["o@x.y"], "afte": "15m"}, "freshness_alert.afte: unknown key; did you mean 'after'?"),
    ],
)
def test_a_mistake_is_told_with_its_cure(tmp_path: Path, keys: dict[str, Any], told: str) -> None:
    (line,) = mistakes(tmp_path, document(freshness_alert=keys))

    assert told in line
