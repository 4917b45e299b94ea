from __future__ import annotations

from kafka_sla.text.natural_order import natural


def test_numbers_in_names_are_sorted_by_their_value() -> None:
    assert ["team 1", "team 2", "team 10", "team 10a"] == sorted(
        ["team 10a", "team 10", "team 2", "team 1"], key=natural
    )


def test_case_does_not_matter_unless_nothing_else_differs() -> None:
    assert ["alerts", "Billing", "billing", "clicks"] == sorted(["clicks", "billing", "alerts", "Billing"], key=natural)


def test_names_that_begin_with_a_number_or_are_empty_are_sorted_with_the_others() -> None:
    assert ["", "2 b", "10 a", "v2.9", "v2.10", "x"] == sorted(["x", "10 a", "v2.10", "", "2 b", "v2.9"], key=natural)


def test_names_of_equal_value_have_keys_of_their_own() -> None:
    assert natural("team 1") != natural("team 01")
    assert natural("²") != natural("2")


def test_numbers_may_have_any_number_of_digits() -> None:
    long, longer = "reader-" + "8" * 5_000, "reader-1" + "0" * 5_000

    assert ["reader-0", "reader-9", "reader-00010", long, longer] == sorted(
        [longer, long, "reader-00010", "reader-9", "reader-0"], key=natural
    )
