"""Every story, in the order of the document."""

from __future__ import annotations

from tests.stories import beginnings, clocks, consumers, misses, partitions
from tests.stories.registry import STORIES

__all__ = ["STORIES", "beginnings", "clocks", "consumers", "misses", "partitions"]
