"""Subjects as any server takes them: no line longer than SMTP allows, no blank lost, nothing that begins a header."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest

from kafka_sla.notifications.burn_email import burns_mail
from kafka_sla.notifications.incident_email import compose as compose_incident
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, Notice
from tests.kafka_sla.notifications.incidents import RUN, slas, slow
from tests.kafka_sla.notifications.misses import miss, promise
from tests.kafka_sla.notifications.test_burn_email import BURN, PERIOD
from tests.kafka_sla.notifications.test_incident_email import incident

SENDER = "sla@example.com"
MOST_OF_A_LINE = 998
"""Bytes, by RFC 5322."""


def of_an_incident(group: str) -> EmailMessage:
    found = [replace(slow(sla, cause="rewound", broker_verdict="even"), worst_group=group) for sla in slas(2)]
    return compose_incident({sla.name: sla for sla in slas(2)}, incident("opened", found), SENDER)


def of_burns(group: str) -> EmailMessage:
    behind = replace(slow(slas(1)[0], cause="rewound", broker_verdict="even"), worst_group=group)
    notices = tuple(BurnNotice("began", replace(BURN, id=s.name, sla=s.name), RUN, "mail", "", behind) for s in slas(2))
    known = {sla.name: sla for sla in slas(2)}
    return burns_mail(known, BurnMessage("began", "mail", "i1", notices, (), 2), dict.fromkeys(known, PERIOD), SENDER)


@pytest.mark.parametrize("write", [of_an_incident, of_burns])
@pytest.mark.parametrize(
    "group", ["g" * 255, "g" * 2_000, "\N{HIRAGANA LETTER A}" * 2_000, "a\r\nBcc: all@example.com\r\n" * 90]
)
def test_a_group_with_a_name_of_any_length_makes_no_line_that_a_server_refuses(
    write: Callable[[str], EmailMessage], group: str
) -> None:
    raw = bytes(write(group))
    seen = message_from_bytes(raw, policy=default)

    assert max(map(len, raw.split(b"\r\n"))) <= MOST_OF_A_LINE
    assert "consumer group " in seen["Subject"]
    assert seen["Bcc"] is None


@pytest.mark.parametrize(
    "words",
    [
        "Zahlungen der Händler über München → Köln ",
        "決済 30 秒 以内 東京 orders v2 ",
        "payments → über orders → Köln → ",
    ],
)
def test_a_subject_is_read_as_it_was_written(words: str) -> None:
    names = [(words * 4)[:length].strip() for length in range(1, 100)]
    mails = [compose(promise(name=name), Notice("opened", miss(end=None)), [], SENDER) for name in names]
    read = [message_from_bytes(bytes(mail), policy=default)["Subject"] for mail in mails]

    told = "worst latency 17 min 24 s, threshold 30 s"
    assert [
        subject for name, subject in zip(names, read, strict=True) if subject != f"SLA missed: {name}, {told}"
    ] == []
