"""Stories about consumers that begin, step back, are reset, die, or never catch up."""

from __future__ import annotations

from tests.stories.registry import story
from tests.stories.world import World

THEME = "Beginnings and steps back"


@story(THEME)
def late_consumer_steps_back(world: World) -> None:
    """A late consumer steps back a little

    Ten records a second are written. From 08:00 on the group reads eight a second. At 08:30, when it is six minutes
    late, one commit is 300 records lower than the one before; then everything continues as before.

    Why: what was late before a step back is late after it. A rewind excuses a consumer only if it was on time before.
    """
    group = world.group(world.topic(rate=10))
    group.speed("08:00", 8)
    group.commit_once("08:30", behind=300)
    world.expect(good="08:00-08:02", any="08:03-08:05", bad="08:06-")
    world.expect_miss("open", start="08:05-08:06", cause="too_slow")


@story(THEME)
def dead_consumer_is_reset(world: World) -> None:
    """An operator resets the offset of a dead consumer

    The consumer stops at 08:10. At 08:40 somebody sets its offset back by a minute. The consumer does not come up.

    Why: the records were late before the reset, and nobody reads them after it either.
    """
    group = world.group(world.topic(rate=10))
    group.stop("08:10")
    group.reset("08:40", back=600)
    world.expect(good="08:00-08:09", any="08:10-08:11", bad="08:12-")
    world.expect_miss("open", start="08:11-08:12", cause="stopped")


@story(THEME)
def consumer_replays_two_hours(world: World) -> None:
    """A consumer is reset back two hours and replays quickly

    The group is on time until somebody resets it at 10:00 to where it was at 08:00. It reads a hundred records a
    second, and has caught up after about 13 minutes.

    Why: whoever replays on purpose does not want an alert about it, as long as the replay makes headway.
    """
    group = world.group(world.topic(rate=10))
    group.reset("10:00", back="2h")
    group.speed("10:00", 100)
    world.expect(good="08:00-09:59", excluded="10:00-10:12", any="10:13-10:14", good_or_unknown="10:15-")
