"""Templates cannot be made to say what their values did not mean."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from kafka_sla.reporting.templates import html_lines, render, text_lines, visible


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


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_what_people_write_keeps_its_lines_and_no_tab_becomes_a_sign(end: str) -> None:
    written = f"java.io.IOException: <x>{end}\tat Consumer.poll{end}{end}\u202efixed"

    assert html_lines(written) == "java.io.IOException: &lt;x&gt;<br>    at Consumer.poll<br><br>\ufffdfixed"
    assert text_lines(written, 2) == "java.io.IOException: <x>\n      at Consumer.poll\n\n  \ufffdfixed"


def test_a_template_without_its_values_is_refused() -> None:
    with pytest.raises(UndefinedError):
        render("notifications/miss.txt.j2", {})
