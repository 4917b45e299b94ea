"""Names that are given plainly, told from globs and regexes."""

from __future__ import annotations

import time

import pytest

from kafka_sla.text.name_patterns import parse_pattern, parse_patterns, plain_names, selected, written


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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/([a-z]+-?)+-service/", "a" * 40 + "!"),
        ("/(a|a)*b/", "a" * 10_000),
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 10_000),
    ],
)
def test_no_name_takes_long_to_match(text: str, name: str) -> None:
    patterns = parse_patterns([text])
    start = time.process_time()

    assert not patterns.matches(name)

    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("/orders-[0-9]+/", "orders-12", "orders-12-test"),
        (r"/größe\d\w+/", "größe1ä", "größe"),
        ("/(?i:ORDERS)|pay(?P<kind>s)?/", "orders", "pays "),
        (r"/[]a-c\-]{2,3}?\.x/", "]-.x", "]-zx"),
        (r"/a\ b\#\&\~/", "a b#&~", "ab"),
        ("/orders|/", "", "x"),
    ],
)
def test_the_usual_syntax_of_python_is_supported(text: str, matching: str, other: str) -> None:
    patterns = parse_patterns([text])

    assert patterns.matches(matching)
    assert not patterns.matches(other)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("/(?!test-).*/", "look-around, including look-ahead and look-behind, is not supported"),
        ("/.*(?<!-test)/", "look-around"),
        (r"/(a|b)\1/", "backreferences are not supported"),
        ("/(?P<x>a)(?P=x)/", ""),
        ("/(?>a+)b/", ""),
        ("/a++a/", "the possessive repetition ++ is not supported; leave out its last +"),
        ("/a{1,2}+a/", "the possessive repetition {1,2}+ is not supported"),
        (r"/orders\Z/", r"\Z is not supported; leave it out, because patterns match whole names"),
        ("/[a[bc]/", "the set [a[bc] is ambiguous; put a backslash before each [, -, &, ~ and | in it"),
        ("/[a-z&&b]/", "is ambiguous"),
        (r"/\<a/", r"\< is ambiguous; write < without the backslash"),
        ("/((a{1000}){1000}){10}/", "its repetitions are too large; use smaller counts"),
        ("/" + "a" * 5_001 + "/", "it has 5001 characters; allowed: 5000 at most"),
        ("/(/", "missing ), unterminated subpattern at position 0"),
    ],
)
def test_a_regex_that_python_reads_differently_or_not_at_all_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="not a regex") as refused:
        parse_pattern(text)

    assert reason in str(refused.value)
    assert "allowed: Python's syntax without lookaround, backreferences" in str(refused.value)
