"""Events of many misses or burns with names as long as they may be: every receiver takes them, whole or in part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from kafka_sla.model.entities import Sla
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, BurnNoticeKind, IncidentNotice, Notice, NoticeKind
from kafka_sla.notifications.webhooks.event import AlertEvent, burn_event_of, event_of
from tests.kafka_sla.notifications.incidents import slas, slow
from tests.kafka_sla.notifications.test_burn_email import BURN
from tests.kafka_sla.notifications.webhooks.test_webhook import TAKES, received

RUN = "https://airflow.example.com/dags/kafka_sla/runs/1"
SCRIPTS = {"latin": "n", "kana": "\N{HIRAGANA LETTER A}", "emoji": "\N{MAHJONG TILE EAST WIND}"}


def known(letter: str, number: int) -> dict[str, Sla]:
    found = [replace(sla, name=f"{n:03}".rjust(100, letter), team=letter * 300) for n, sla in enumerate(slas(number))]
    return {sla.name: sla for sla in found}


@cache
def missed(letter: str, kind: NoticeKind, number: int, still_open: int = 0) -> AlertEvent:
    named, group = known(letter, number), letter * 300
    found = [
        replace(slow(sla, end=kind == "recovered", sentence=letter * 4_000), id=f"{n:016x}", worst_group=group)
        for n, sla in enumerate(named.values())
    ]
    found = [replace(miss, worst_topic="t" * 249) for miss in found]
    notices, left = found[: number - still_open], found[number - still_open :]
    told, others = (
        tuple(Notice(of, miss, RUN, miss.id) for miss in some) for of, some in ((kind, notices), ("opened", left))
    )
    return event_of(named, IncidentNotice(kind, "webhook", found[0].id, told, others, number))


@cache
def burned(letter: str, kind: BurnNoticeKind, number: int, still_burning: int = 0) -> AlertEvent:
    named = known(letter, number)
    end = BURN.start + timedelta(minutes=20) if kind == "over" else None
    notices = [
        BurnNotice(kind, replace(BURN, id=f"{n:016x}", sla=sla, end=end), RUN, "webhook", f"{n:016x}")
        for n, sla in enumerate(named)
    ]
    cut = number - still_burning
    message = BurnMessage(kind, "webhook", notices[0].burn.id, tuple(notices[:cut]), tuple(notices[cut:]), number)
    return burn_event_of(named, message)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("format", TAKES)
@pytest.mark.parametrize("number", [1, 500])
def test_receivers_take_names_of_any_length_and_script(format: str, script: str, number: int) -> None:
    letter, some = SCRIPTS[script], number // 2
    events = [
        missed(letter, "opened", number),
        missed(letter, "recovered", number, some),
        burned(letter, "began", number),
        burned(letter, "over", number, some),
    ]

    receiver = received(format, *events)

    assert receiver.refused == []
    assert len(receiver.bodies) == len(events)


@pytest.mark.parametrize("letter", ["&", *SCRIPTS.values()])
@pytest.mark.parametrize("format", TAKES)
def test_receivers_take_a_cause_that_is_a_group_with_a_name_as_long_as_kafka_allows(format: str, letter: str) -> None:
    group, number = letter * (32_767 // len(letter.encode())), 500
    named = {sla.name: sla for sla in slas(number)}
    own = {"cause": "rewound", "broker_verdict": "even", "sentence": f"Group {group} went back."}
    found = [replace(slow(sla, **own), worst_group=group) for sla in named.values()]
    opened = tuple(Notice("opened", miss, RUN, miss.id) for miss in found)
    burns = tuple(
        BurnNotice("began", replace(BURN, id=miss.id, sla=miss.sla), RUN, "webhook", miss.id, miss) for miss in found
    )

    receiver = received(
        format,
        event_of(named, IncidentNotice("opened", "webhook", found[0].id, opened, (), number)),
        burn_event_of(named, BurnMessage("began", "webhook", found[0].id, burns, (), number)),
    )

    assert receiver.refused == []
    assert len(receiver.bodies) == 2
    if format not in ("json", "alertmanager"):
        assert f"consumer group {group[:10]}" in "".join(texts(receiver.bodies[0]))


def test_a_card_is_as_full_as_teams_takes_it_beside_a_long_runbook() -> None:
    for runbook in ("", f"https://wiki.example.com/{'r' * 2_000}"):
        named = {name: replace(sla, runbook=runbook) for name, sla in known("n", 500).items()}
        misses = tuple(Notice("opened", slow(sla), RUN, sla.name) for sla in named.values())
        (raw,) = received("teams", event_of(named, IncidentNotice("opened", "webhook", "i1", misses, (), 500))).raw

        assert 26_000 < len(json.dumps(json.loads(raw))) < 28_000


@pytest.mark.parametrize("format", ["slack", "teams", "opsgenie"])
def test_of_many_that_are_still_missed_or_burn_some_are_named_and_the_others_counted(format: str) -> None:
    bodies = received(format, *(f("n", "opened", 1) for f in [missed]), missed("n", "recovered", 500, 499)).bodies

    assert "Still missed: " in json.dumps(bodies[-1])
    assert "and 489 more" in json.dumps(bodies[-1])


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(one)


@pytest.mark.parametrize("format", ["slack", "teams", "pagerduty", "opsgenie"])
def test_a_character_that_turns_the_text_around_reaches_nobody(format: str) -> None:
    named = {sla.name: replace(sla, team="a\u202eb") for sla in slas(2)}
    found = [replace(slow(sla, sentence="c\u202ed"), worst_group="e\u202ef") for sla in named.values()]
    notices = tuple(Notice("opened", miss, RUN, miss.id) for miss in found)
    (body,) = received(format, event_of(named, IncidentNotice("opened", "webhook", "i1", notices, (), 2))).bodies

    assert [text for text in texts(body) if "\u202e" in text] == []
    assert [text for text in texts(body) if "e\N{REPLACEMENT CHARACTER}f" in text]
