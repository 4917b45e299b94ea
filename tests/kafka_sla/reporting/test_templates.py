"""Templates cannot be made to say what their values did not mean."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from kafka_sla.reporting.templates import render, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb", "a\ufffd\ufffdb"),
        ("a\u202eb", "a\ufffdb"),
        ("a\x00", "a\ufffd"),
        ("\u2028", "\ufffd"),
        ("zähl 注文 🙂", "zähl 注文 🙂"),
    ],
)
def test_every_character_of_a_name_can_be_seen(text: str, shown: str) -> None:
    assert shown == visible(text)


def test_a_template_without_its_values_is_refused() -> None:
    with pytest.raises(UndefinedError):
        render("notifications/miss.txt.j2", {})
