"""kafka-sla says of each story what an on-call engineer expects, in one run and in several.

`pytest tests/stories -m "not slow" -k NAME` runs one of them. The setup imports and measures all of them, which takes
a minute or two.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.stories.all_stories import STORIES
from tests.stories.checking import describe_misses, describe_verdicts, find_differences
from tests.stories.running import Outcomes
from tests.stories.world import World

NAMES = [story.name for story in STORIES]


@pytest.mark.parametrize("name", NAMES)
def test_story(name: str, worlds: Mapping[str, World], whole: Outcomes) -> None:
    differences = find_differences(worlds[name], whole.stories[name], whole.printed)

    assert not differences, "\n".join(differences)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_several_runs_say_the_same_as_one(name: str, whole: Outcomes, in_pieces: Outcomes) -> None:
    one, several = whole.stories[name], in_pieces.stories[name]

    assert describe_verdicts(several.windows) == describe_verdicts(one.windows)
    assert describe_misses(several) == describe_misses(one)


def test_every_story_has_a_title_and_a_reason() -> None:
    assert [story.name for story in STORIES if not any(text.startswith("Why:") for text in story.text)] == []
