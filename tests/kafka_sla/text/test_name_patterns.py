"""Names that are given plainly, told from globs and regexes."""

from __future__ import annotations

import pytest

from kafka_sla.text.name_patterns import parse_patterns, plain_names, selected, written


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["orders"], ["orders"]),
        (["orders.v1-eu", "ä b\n$"], ["orders.v1-eu", "ä b\n$"]),
        (["orders", "payments", "!pay*"], ["orders"]),
        (["orders-*"], None),
        (["orders", "/pay.*/"], None),
        (["/orders/"], ["orders"]),
        (["!orders"], None),
    ],
)
def test_plain_names_are_known_without_looking(texts: list[str], names: list[str] | None) -> None:
    patterns = parse_patterns(texts)

    assert plain_names(patterns) == (None if names is None else tuple(names))
    assert all(patterns.matches(name) for name in names or [])


@pytest.mark.parametrize(
    "texts",
    [
        ["billing.alerts-authorised-v2"],
        ["orders-*", "*.dead-letters", "payment?", "!orders-test", "!*-canary"],
        ["/orders-[0-9]+/", "!/.*_(tmp|test)/"],
        ["*"],
    ],
)
def test_patterns_are_shown_as_they_were_written(texts: list[str]) -> None:
    assert tuple(texts) == written(parse_patterns(texts))


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        (["payments-service", "billing.alerts", "gone"], ["payments-service", "billing.alerts"]),
        (["billing.*", "!billing.tests"], ["billing.alerts"]),
        (["payments-service", "billing.tests", "!billing.*"], ["payments-service"]),
    ],
)
def test_plain_names_and_patterns_select_alike(texts: list[str], chosen: list[str]) -> None:
    names = {"payments-service": 1, "billing.alerts": 2, "billing.tests": 3}

    assert sorted(chosen) == sorted(selected(parse_patterns(texts), names))


@pytest.mark.parametrize("text", ["*", "two*", "*lines", "two?lines", "/two.lines/"])
def test_a_name_with_a_line_break_is_selected_as_any_other(text: str) -> None:
    assert parse_patterns([text]).matches("two\nlines")
    assert not parse_patterns(["*", f"!{text}"]).matches("two\nlines")
