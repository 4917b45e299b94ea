"""All stories, run once as one interval and once in pieces."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.stories.all_stories import STORIES
from tests.stories.clock import format_instant, parse_time
from tests.stories.running import Outcomes, run_stories
from tests.stories.world import World

CUTS = ("07:50", "08:31", "09:02", "11:00")
"""Edges of the runs of the second store."""


@pytest.fixture(scope="session")
def worlds() -> Mapping[str, World]:
    return {story.name: story.build_world() for story in STORIES}


@pytest.fixture(scope="session")
def whole(worlds: Mapping[str, World], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What one run over the whole morning says."""
    return run_stories(tmp_path_factory.mktemp("whole"), list(worlds.values()))


@pytest.fixture(scope="session")
def in_pieces(worlds: Mapping[str, World], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What three runs say, one after the other, without mails."""
    edges = [format_instant(parse_time(edge)) for edge in CUTS]
    return run_stories(tmp_path_factory.mktemp("pieces"), list(worlds.values()), edges, notify=False)
