"""Text that is no YAML: one message names the line to look at and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.errors import SettingsError

HEAD = "clusters:\n  prod:\n"


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("\tgroups: [a]\n", 3, "found character '\\t' that cannot start any token; indent with spaces, not with tabs"),
        ("    groups: *\n", 3, 'put a value that begins with * or & in quotes, such as "*"'),
        ("    groups: [*, a]\n", 3, 'put a value that begins with * or & in quotes, such as "*"'),
        ("    groups: [*-eu]\n", 3, 'put a value that begins with * or & in quotes, such as "*"'),
        ("    groups: [%a]\n", 3, "put a value that begins with this character in quotes"),
        ("    groups: [`a`]\n", 3, "put a value that begins with this character in quotes"),
        ("    connection: a: b\n", 3, "put a value with ': ' in it in quotes"),
        ("    connection: a\n      groups: [a]\n", 4, "begin all keys of a mapping in one column"),
        ("    connection:a\n    groups: [a]\n", 4, "leave a blank after their colon"),
        ("    groups:\n     - a\n     topics: [a]\n", 5, "begin all keys of a mapping, and each - of a list, in one"),
        ("    groups: [a, b\n    topics: [a]\n", 4, "close the [ of line 3"),
        ("    groups: {a: b\n    topics: [a]\n", 4, "close the { of line 3"),
        ("    groups: [${env:GROUP}]\n", 3, "put the value in quotes"),
        ('    groups: ["/pay\\d/"]\n', 3, "put a regex, or other text with \\, in 'single quotes'"),
        ("    topics: [a]\nslas\n", 4, "write key: value, with a blank after the colon"),
        ("---\nslas: []\n", 3, "keep one document, without a line of ---"),
        ("    groups: ]\n", 3, "put a value with characters that mean something in YAML in quotes"),
    ],
)
def test_what_to_do_is_said(tmp_path: Path, text: str, line: int, hint: str) -> None:
    found = told(tmp_path, HEAD + text)
    assert found.startswith(f"line {line}: not YAML: ") and hint in found


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quote_that_is_open_is_named_by_the_line_that_opens_it(tmp_path: Path, quote: str) -> None:
    found = told(tmp_path, f"{HEAD}    connection: {quote}kafka_prod\n    groups: [a]\nslas: []\n")
    assert found == "line 3: not YAML: a quote that opens on this line has no end; put one where the text ends"


def told(folder: Path, text: str) -> str:
    (folder / "kafka_sla.yml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(folder / "kafka_sla.yml")
    (found,) = str(caught.value).splitlines()[1:]
    return found.strip()
