"""Stories about when misses begin and end, and what counts."""

from __future__ import annotations

from tests.stories.registry import story
from tests.stories.world import World

THEME = "When misses begin and end"


@story(THEME)
def outage_and_recovery(world: World) -> None:
    """A consumer dies and is restarted

    It stops at 08:30:30 and comes back at 09:00.

    Why: one mail is sent when the SLA is missed and one when it has recovered.
    """
    group = world.group(world.topic(rate=10))
    group.pause("08:30:30", "09:00")
    world.expect(good="08:00-08:30, 09:01-", bad="08:31-09:00")
    world.expect_miss("recovered", start="08:31", end="09:01", cause="stopped")
    world.expect_mail("SLA recovered")


@story(THEME)
def just_long_enough(world: World) -> None:
    """Five bad minutes, and `for` is five minutes

    The consumer stops at 08:30:30 and is back at 08:35.

    Why: bad time that is as long as `for` is a miss.
    """
    world.group(world.topic(rate=10)).pause("08:30:30", "08:35")
    world.expect(good="08:00-08:30, 08:36-", bad="08:31-08:35")
    world.expect_miss("recovered", start="08:31", end="08:36", cause="stopped")


@story(THEME)
def just_too_short(world: World) -> None:
    """Four bad minutes, and `for` is five minutes

    The consumer stops at 08:30:30 and is back at 08:34.

    Why: the bad minutes count against the objective, but no mail is sent.
    """
    world.group(world.topic(rate=10)).pause("08:30:30", "08:34")
    world.expect(good="08:00-08:30, 08:35-", bad="08:31-08:34")


@story(THEME)
def blips_every_half_hour(world: World) -> None:
    """Two bad minutes every half hour

    Deployments stop the consumer for two minutes at 08:15:30, 08:45:30 and so on.

    Why: the bad minutes spend error budget. None of them last long enough for a miss, and good time lies in between.
    """
    group = world.group(world.topic(rate=10))
    for hour in ("08", "09", "10"):
        group.pause(f"{hour}:15:30", f"{hour}:17:30")
        group.pause(f"{hour}:45:30", f"{hour}:47:30")
    blips = ", ".join(f"{hour}:16-{hour}:17, {hour}:46-{hour}:47" for hour in ("08", "09", "10"))
    calm = ", ".join(f"{hour}:00-{hour}:15, {hour}:18-{hour}:45, {hour}:48-{hour}:59" for hour in ("08", "09", "10"))
    world.expect(bad=blips, good=calm)


@story(THEME)
def two_outages(world: World) -> None:
    """Two outages with good time in between

    The consumer is down from 08:30:30 to 08:45 and from 09:30:30 to 09:45.

    Why: each is a miss of its own, with a mail when it opens and one when it recovers.
    """
    group = world.group(world.topic(rate=10))
    group.pause("08:30:30", "08:45")
    group.pause("09:30:30", "09:45")
    world.expect(good="08:00-08:30, 08:46-09:30, 09:46-", bad="08:31-08:45, 09:31-09:45")
    world.expect_miss("recovered", start="08:31", end="08:46", cause="stopped")
    world.expect_miss("recovered", start="09:31", end="09:46", cause="stopped")


@story(THEME)
def exactly_at_the_threshold(world: World) -> None:
    """Records are read exactly when the threshold is reached

    One record is written each ten minutes and committed a minute later to the second.

    Why: a latency of exactly `max_latency` is allowed. Where the bounds allow both, the window is unknown.
    """
    topic = world.topic(rate=0)
    group = world.group(topic, idle_commits=False, phase="0s")
    for hour in ("08", "09", "10"):
        for minute in (10, 30, 50):
            topic.write(f"{hour}:{minute}", 1)
            group.pause(f"{hour}:{minute - 1}:58", f"{hour}:{minute + 1}:00")
    world.expect(good_or_unknown="08:00-")


@story(THEME)
def commits_just_below_the_threshold(world: World) -> None:
    """A consumer commits each 50 seconds, and the threshold is a minute

    Log ends are polled each 15 seconds, so the bounds of the latency lie on both sides of the threshold.

    Why: no record is certainly late.
    """
    world.group(world.topic(rate=10), commits="50s")
    world.expect(good_or_unknown="08:00-")


@story(THEME)
def maintenance_during_a_miss(world: World) -> None:
    """Maintenance begins during a miss, and the consumer comes back in it

    The consumer stops at 08:10:30. Maintenance is planned from 09:00 to 09:30; the consumer is back at 09:10.

    Why: the miss ends at 09:00 because time in maintenance is not judged. It had not recovered by then.
    """
    world.set_sla(maintenance=[{"from": "2025-03-04T09:00:00Z", "to": "2025-03-04T09:30:00Z", "reason": "upgrade"}])
    world.group(world.topic(rate=10)).pause("08:10:30", "09:10")
    world.expect(good="08:00-08:10, 09:30-", bad="08:11-08:59", excluded="09:00-09:29")
    world.expect_miss("excluded", start="08:11", end="09:00", cause="stopped", text="upgrade")
    world.expect_mail("no longer judged")


@story(THEME)
def miss_outlives_maintenance(world: World) -> None:
    """Maintenance begins during a miss, and the consumer is still down afterwards

    The consumer stops at 08:10:30 and never comes back. Maintenance is planned from 09:00 to 09:30.

    Why: it is the same outage before and after the maintenance, so it is one miss.
    """
    world.set_sla(maintenance=[{"from": "2025-03-04T09:00:00Z", "to": "2025-03-04T09:30:00Z", "reason": "upgrade"}])
    world.group(world.topic(rate=10)).stop("08:10:30")
    world.expect(good="08:00-08:10", bad="08:11-08:59, 09:30-", excluded="09:00-09:29")
    world.expect_miss("open", start="08:11", cause="stopped")


@story(THEME)
def planned_maintenance(world: World) -> None:
    """The consumer is down during planned maintenance only

    It is down from 09:05 to 09:25. Maintenance is planned from 09:00 to 09:30.

    Why: planned maintenance is excluded, so nothing is reported.
    """
    world.set_sla(maintenance=[{"from": "2025-03-04T09:00:00Z", "to": "2025-03-04T09:30:00Z"}])
    world.group(world.topic(rate=10)).pause("09:05", "09:25")
    world.expect(good="08:00-08:59, 09:30-", excluded="09:00-09:29")


@story(THEME)
def topic_is_recreated_during_a_miss(world: World) -> None:
    """A topic is created again during a miss, and its consumer comes back

    The consumer stops at 08:10:30. The topic is gone from 08:50 to 08:51; at 08:55 the consumer reads the new one.

    Why: the late records are gone and were never read. The miss is no longer judged; it has not recovered.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    group.stop("08:10:30")
    topic.recreate("08:50", "08:51")
    group.seek("08:55", 0)
    group.start("08:55")
    world.expect(good="08:00-08:10, 09:02-", bad="08:11-08:48", any="08:49-09:01")
    world.expect_miss("excluded", start="08:11", cause="stopped")


@story(THEME)
def records_objective_in_an_outage(world: World) -> None:
    """An objective of records, and a consumer that is dead for an hour

    From 10:00 on nothing is read; until then everything was on time.

    Why: waiting records are late as soon as they are due, not when they are read. About a third of the records that
    were due so far are late.
    """
    world.set_sla(objective_of="records")
    world.group(world.topic(rate=10)).stop("10:00")
    world.expect(good="08:00-09:59", any="10:00-10:01", bad="10:02-")
    world.expect_miss("open", start="10:01-10:02", cause="stopped")
    world.expect_attainment(0.66, 0.71)


@story(THEME)
def records_objective_with_lost_records(world: World) -> None:
    """An objective of records, and records that expire unread

    Records are kept for 30 minutes. The consumer is down from 09:00 to 10:30.

    Why: records that retention removed unread are late too: those of 90 out of 190 minutes.
    """
    world.set_sla(objective_of="records")
    topic = world.topic(rate=10)
    topic.keep_for("30m")
    world.group(topic).pause("09:00", "10:30")
    world.expect(good="08:00-08:59, 10:32-", any="09:00-09:01, 10:30-10:31", bad="09:02-10:29")
    world.expect_miss("recovered", start="09:01-09:02", end="10:30-10:32", cause="stopped")
    world.expect_attainment(0.49, 0.56)


@story(THEME)
def bad_minutes_without_for(world: World) -> None:
    """A team wants to hear of every bad minute

    `for` is one minute. The consumer is down from 09:00:30 to 09:02.

    Why: with `for: 1m` every bad minute is a miss.
    """
    world.set_sla(for_="1m")
    world.group(world.topic(rate=10)).pause("09:00:30", "09:02")
    world.expect(good="08:00-09:00, 09:03-", bad="09:01-09:02")
    world.expect_miss("recovered", start="09:01", end="09:03", cause="stopped")
