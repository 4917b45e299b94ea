"""Pages over a store whose database went away under a server that has read from it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.kafka_sla.web.conftest import Asker


def test_a_lost_database_is_said_by_every_door_and_none_is_made_in_its_place(reader: Asker) -> None:
    database = Path(os.environ["KAFKA_SLA_CONFIG"]).with_name("store") / "kafka_sla.db"
    doors = ("/", "/misses", "/coverage", "/api/v1/slas", "/metrics")
    assert [reader.get(door).status_code for door in doors] == [200] * len(doors)

    away = database.rename(database.with_name("away.db"))
    answers = [reader.get(door) for door in doors]
    made = database.exists()
    away.rename(database)

    assert [answer.status_code for answer in answers] == [503] * len(doors)
    assert all("does not exist, but the warehouse" in answer.text for answer in answers)
    assert not made
    assert [reader.get(door).status_code for door in doors] == [200] * len(doors)
