"""Notes about misses stay with them, also when late facts move a miss."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.notifications.misses import miss

MINUTE = timedelta(minutes=1)


def test_notes_are_kept_in_order_with_who_wrote_them(tmp_path: Path) -> None:
    triage = Ledger(Store.embedded(tmp_path)).triage
    triage.acknowledge(miss(), "anna")
    triage.comment(miss(), "ben", "rolled back")
    triage.comment(miss(id="other", sla="orders"), "ben", "not this one")

    (found,) = triage.notes([miss()]).values()

    assert [(note.kind, note.author, note.text) for note in found] == [
        ("acknowledged", "anna", ""),
        ("comment", "ben", "rolled back"),
    ]


def test_a_miss_whose_start_moved_keeps_its_notes_and_a_later_one_does_not_get_them(tmp_path: Path) -> None:
    triage = Ledger(Store.embedded(tmp_path)).triage
    triage.acknowledge(miss(), "anna")
    first = miss()
    assert first.end is not None
    moved = miss(id="moved", start=first.start - 5 * MINUTE)
    later = miss(id="later", start=first.end + MINUTE, end=first.end + 9 * MINUTE)

    found = triage.notes([moved, later])

    assert [1, 0] == [len(found["moved"]), len(found["later"])]


def test_clicks_at_once_acknowledge_once(store: Store) -> None:
    Ledger(store).open(writing=True)
    barrier = Barrier(8)

    def click(number: int) -> None:
        triage = Ledger(store).triage
        barrier.wait()
        triage.acknowledge(miss(), f"user {number}")

    with ThreadPoolExecutor(8) as people:
        list(people.map(click, range(8)))

    assert [note.kind for note in Ledger(store).triage.notes([miss()])[miss().id]] == ["acknowledged"]


def test_an_acknowledgement_with_a_text_is_kept_besides_another(tmp_path: Path) -> None:
    triage = Ledger(Store.embedded(tmp_path)).triage
    triage.acknowledge(miss(), "anna")
    triage.acknowledge(miss(), "ben", "I take over")
    triage.acknowledge(miss(), "carl")

    assert [note.author for note in triage.notes([miss()])[miss().id]] == ["anna", "ben"]
