"""The list of all stories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.stories.world import World


@dataclass(frozen=True)
class Story:
    """`build` describes what happens, and what kafka-sla must say about it."""

    name: str
    theme: str
    build: Callable[[World], None]

    def build_world(self) -> World:
        world = World(self.name)
        self.build(world)
        return world

    @property
    def title(self) -> str:
        """First line of its docstring."""
        return self._paragraphs[0]

    @property
    def text(self) -> list[str]:
        """The paragraphs after the title."""
        return self._paragraphs[1:]

    @property
    def _paragraphs(self) -> list[str]:
        return [" ".join(part.split()) for part in (self.build.__doc__ or "").strip().split("\n\n")]


STORIES: list[Story] = []


def story(theme: str) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Registers a function as a story. Its name becomes the name of the SLA, the group and the topic."""

    def register(build: Callable[[World], None]) -> Callable[[World], None]:
        STORIES.append(Story(build.__name__, theme, build))
        return build

    return register
