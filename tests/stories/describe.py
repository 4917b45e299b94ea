"""Prints docs/reference/stories.md: every story and what kafka-sla says about it, in words.

`python -m tests.stories.describe > docs/reference/stories.md`
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from textwrap import fill
from typing import Any

from tests.stories.all_stories import STORIES
from tests.stories.checking import JUDGED_MINUTES, collect_spans
from tests.stories.registry import Story
from tests.stories.world import ExpectedMiss, World

HEAD = """\
# Stories: what kafka-sla says when

<!-- Made by `make docs` from tests/stories; do not edit. -->

Situations that people on call know, and what kafka-sla makes of each. Every story is a test
([code](../../tests/stories)): its facts are imported, measured and judged as a user would do it, in one run and in
several.

Unless a story says otherwise, ten records a second are written to each partition, every commit is known (one each five
seconds), log ends are polled each 15 seconds, and the SLA has `max_latency: 60s` and `for: 5m`. Facts begin at 07:50;
the minutes from 08:00 to 10:59 are judged. Minutes that are not listed lie at an edge: their verdict depends on the
second. Verdicts are those of [sla_windows](sla_windows.md), causes those of [sla_misses](sla_misses.md).
"""

_ANY = ("good", "bad", "unknown", "excluded")
_STATES = {
    "open": "is still open at the end",
    "recovered": "recovers",
    "excluded": "ends as no longer judged",
    "removed": "ends as no longer judged",
}


def main() -> None:
    print(render_page(), end="")


def render_page() -> str:
    parts = [HEAD]
    for theme, stories in groupby(STORIES, key=lambda story: story.theme):
        parts.append(f"## {theme}\n")
        parts += ["\n".join(_render_story(story)) for story in stories]
    return "\n".join(parts)


def _render_story(story: Story) -> Iterator[str]:
    world = story.build_world()
    yield f"### {story.title}\n"
    yield from (f"{_wrap(text)}\n" for text in story.text if not text.startswith("Why:"))
    if world.sla:
        yield f"SLA: {', '.join(_render_key(name, value) for name, value in world.sla.items())}.\n"
    yield from (_wrap(f"- {line}", indent="  ") for line in _render_expectations(world))
    yield ""
    yield from (f"{_wrap(text)}\n" for text in story.text if text.startswith("Why:"))


def _wrap(text: str, indent: str = "") -> str:
    return fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _render_key(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"`{name}` from {value[0]['from'][11:16]} to {value[0]['to'][11:16]}"
    if isinstance(value, dict):
        return ", ".join(f"`{name}: {{{key}: {inner}}}`" for key, inner in value.items())
    return f"`{name}: {value}`"


def _render_expectations(world: World) -> Iterator[str]:
    labelled = [(world.verdicts[minute], minute) for minute in JUDGED_MINUTES]
    spans = [(verdicts, minutes) for verdicts, minutes in collect_spans(labelled) if verdicts != _ANY]
    sentence = "; ".join(f"{' or '.join(verdicts)} {_render_span(minutes)}" for verdicts, minutes in spans)
    yield f"{sentence.capitalize()}."
    if not world.misses:
        yield "No miss, no mail."
    for miss in world.misses:
        yield _render_miss(miss)
    texts = [
        *(f"A mail says “{text}”." for text in world.mails),
        *(f"The reason of {minute} says “{text}”." for minute, text in world.reasons),
        *(
            f"`kafka-sla status` shows that partition {partition} is not judged since {since}, reason `{reason}`."
            for partition, since, reason in world.unjudged
        ),
        *(f"A warning of the run names the topic and says “{text}”." for text in world.warnings),
    ]
    yield from texts
    for name, (low, high) in world.figures.items():
        yield f"The {name} is between {low:.0%} and {high:.0%}."


def _render_span(minutes: list[str]) -> str:
    if minutes[-1] == JUDGED_MINUTES[-1]:
        return "throughout" if minutes[0] == JUDGED_MINUTES[0] else f"from {minutes[0]} on"
    return minutes[0] if len(minutes) == 1 else f"{minutes[0]} to {minutes[-1]}"


def _render_miss(miss: ExpectedMiss) -> str:
    states = " or ".join(_STATES[state] for state in miss.state.split(" or "))
    end = f" at {_render_edge(miss.end)}" if miss.end else ""
    causes = " or ".join(f"`{cause}`" for cause in miss.cause.split(" or ")) if miss.cause else ""
    cause = f", cause {causes}" if causes else ""
    return f"A miss begins at {_render_edge(miss.start)} and {states}{end}{cause}."


def _render_edge(span: str) -> str:
    first, _, last = span.partition("-")
    return f"{first} to {last}" if last else first


if __name__ == "__main__":
    main()
