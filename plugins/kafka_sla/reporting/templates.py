"""The page and mail templates and their filters, with every value made harmless and visible. Reads no store."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from kafka_sla.sla.root_cause.evidence import evidence_rows
from kafka_sla.sla.wording import (
    attained,
    between,
    budget,
    budget_left,
    burning,
    caught_up_because,
    caught_up_in,
    chain,
    chained,
    doubt,
    duration,
    limit,
    objective,
    place,
    requirement,
    share_of_budget_left,
    violation,
    worst,
)
from kafka_sla.text.formatting import burn, count, moment, plural, rate, share, span
from kafka_sla.text.periods import during, the_period, this_period

_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})


def render(template: str, values: dict[str, Any], **more: Any) -> str:
    """The template `room/name` with these values; a value that is missing is an error, HTML is escaped."""
    return _TEMPLATES.get_template(template).render(values, **more)


def visible(text: str) -> str:
    """Text in which every character can be seen: names may hold line ends, control and direction characters."""
    if text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNSEEN else c for c in text)


def exact(text: str) -> Markup:
    """Text as it is, for what a form sends back: names may need characters that cannot be seen, as many scripts do."""
    return escape(text)


def html_lines(text: str) -> Markup:
    """What somebody wrote, line by line."""
    return Markup("<br>").join(_lines(text))


def text_lines(text: str, indent: int) -> Markup:
    """The same for plain text, with all lines after the first so far to the right."""
    first, *others = _lines(text) or [""]
    after = [f"{' ' * indent}{line}" if line else "" for line in others]
    return Markup("\n".join([first, *after]))  # noqa: S704  plain text escapes nothing


def _lines(text: str) -> list[str]:
    """Tabs, which pasted logs hold, are blanks."""
    return [visible(line.expandtabs(4)) for line in text.splitlines()]


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def upper_first(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


_LIBRARY = Path(__file__).parents[1]
_ROOMS = ("notifications", "reporting", "web")
_TEMPLATES = Environment(
    loader=PrefixLoader({room: FileSystemLoader(_LIBRARY / room / "templates") for room in _ROOMS}),
    undefined=StrictUndefined,
    finalize=_finalize,
    autoescape=select_autoescape(["html.j2"]),
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "burn": burn,
    "count": count,
    "moment": moment,
    "plural": plural,
    "rate": rate,
    "share": share,
    "span": span,
    "attained": attained,
    "between": between,
    "budget": budget,
    "budget_left": budget_left,
    "burning": burning,
    "caught_up_because": caught_up_because,
    "caught_up_in": caught_up_in,
    "chain": chain,
    "chained": chained,
    "doubt": doubt,
    "duration": duration,
    "during": during,
    "evidence_rows": evidence_rows,
    "exact": exact,
    "html_lines": html_lines,
    "limit": limit,
    "objective": objective,
    "place": place,
    "requirement": requirement,
    "share_of_budget_left": share_of_budget_left,
    "text_lines": text_lines,
    "the_period": the_period,
    "this_period": this_period,
    "upper_first": upper_first,
    "violation": violation,
    "worst": worst,
}
