"""Digests in the configuration file: what they mean, and how their mistakes are told."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.errors import SettingsError
from kafka_sla.model.entities import Digest
from tests.kafka_sla.config.test_settings import SLA, document, load, mistakes

TEAM = {**SLA, "team": "Payments"}


def test_every_key_of_a_digest_lands_in_its_place(tmp_path: Path) -> None:
    keys = {
        "name": "Leads",
        "every": "month",
        "at": "18:30",
        "time_zone": "Asia/Tokyo",
        "team": "Payments",
        "recipients": ["lead@example.com"],
    }

    assert load(tmp_path, document(slas=[TEAM], digests=[keys])).digests == (
        Digest("Leads", "month", time(18, 30), "Asia/Tokyo", team="Payments", recipients=("lead@example.com",)),
    )


def test_a_digest_needs_no_more_than_a_name(tmp_path: Path) -> None:
    settings = load(tmp_path, document(digests=[{"name": "All"}]))

    assert settings.digests == (Digest("All", "week", time(7)),)
    assert settings.digests[0].holds(settings.slas[0])


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"every": "hour"}, ".every: 'hour' is not valid; allowed: 'day', 'week' or 'month'"),
        ({"at": "7 am"}, ".at: '7 am' is not allowed here; allowed: a time of day with two digits each, such as 07:00"),
        ({"at": "7:00"}, ".at: '7:00' is not allowed here; allowed: a time of day with two digits each, such as 07:00"),
        ({"slas": ["paymets"]}, ".slas[0]: unknown SLA 'paymets'; did you mean 'payments'? allowed: payments"),
        ({"team": "Paymets"}, ".team: no SLA is of team 'Paymets'; did you mean 'Payments'? allowed: Payments"),
        ({"team": "Payments", "slas": ["payments"]}, ".team: given together with 'slas'; allowed: one of the two"),
        ({"recipient": "a@b.c"}, ".recipient: unknown key; did you mean 'recipients'? allowed: name, every, at"),
    ],
)
def test_a_mistake_in_a_digest_is_told_with_its_cure(tmp_path: Path, keys: dict[str, Any], told: str) -> None:
    (line,) = mistakes(tmp_path, document(slas=[TEAM], digests=[{"name": "All", **keys}]))

    assert f"digests[0]{told}" in line


def test_two_digests_of_one_name_are_refused(tmp_path: Path) -> None:
    (line,) = mistakes(tmp_path, document(digests=[{"name": "All"}, {"name": "All"}]))

    assert "digests[1].name: 'All' names two digests" in line


def test_an_unknown_digest_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no digest 'Al'; did you mean 'All'\\? it has: All"):
        load(tmp_path, document(digests=[{"name": "All"}])).digest("Al")
