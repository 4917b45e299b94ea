"""Stories about consumers that begin, step back, are reset, die, or never catch up."""

from __future__ import annotations

from tests.stories.clock import MINUTE, format_minute, parse_time
from tests.stories.registry import story
from tests.stories.world import World

THEME = "Beginnings and steps back"


@story(THEME)
def late_consumer_steps_back(world: World) -> None:
    """A late consumer steps back a little

    Ten records a second are written. From 08:00 on the group reads eight a second. At 08:30, when it is six minutes
    late, one commit is 300 records lower than the one before; then everything continues as before.

    Why: records that were late before a step back are late after it. A step back begins bootstrapping only if the
    consumer was on time before it.
    """
    group = world.group(world.topic(rate=10))
    group.speed("08:00", 8)
    group.commit_once("08:30", behind=300)
    world.expect(good="08:00-08:02", any="08:03-08:05", bad="08:06-")
    world.expect_miss("open", start="08:05-08:06", cause="too_slow")
    world.expect_mail("was too slow: it consumed 8.03/s")


@story(THEME)
def dead_consumer_is_reset(world: World) -> None:
    """An operator resets the offset of a dead consumer

    The consumer stops at 08:10. At 08:40 somebody sets its offset back by a minute. The consumer does not come up.

    Why: the records were late before the reset, and they are not read after it either. The miss continues.
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

    Why: teams replay on purpose and do not want an alert about it. The replay is excluded while the backlog shrinks.
    """
    group = world.group(world.topic(rate=10))
    group.reset("10:00", back="2h")
    group.speed("10:00", 100)
    world.expect(good="08:00-09:59, 10:15-", excluded="10:00-10:12", any="10:13-10:14")


@story(THEME)
def replay_is_still_running(world: World) -> None:
    """A long replay is shown as not judged, with its reason

    At 10:05 the group is reset by two hours. It reads thirty records a second while ten are written, so it needs an
    hour, and has not caught up when the morning ends.

    Why: the replay is excluded while the backlog shrinks. People must be able to see that nothing is judged, since
    when, why, and when the consumer will have caught up.
    """
    group = world.group(world.topic(rate=10))
    group.reset("10:05", back="2h")
    group.speed("10:05", 30)
    world.expect(good="08:00-10:04", excluded="10:05-")
    world.expect_unjudged(0, since="10:05", reason="rewind")


@story(THEME)
def consumer_is_reset_and_dies(world: World) -> None:
    """A consumer is reset back ten minutes and dies at once

    The group is on time until it is reset at 08:30. Then it reads nothing.

    Why: after a reset the time is excluded for the progress deadline (30 minutes) at most. Without headway the SLA is
    judged again.
    """
    group = world.group(world.topic(rate=10))
    group.reset("08:30", back="10m")
    group.stop("08:30")
    world.expect(good="08:00-08:29", excluded="08:30-08:58", any="08:59-09:00", bad="09:01-")
    world.expect_miss("open", start="09:00-09:01", cause="not_catching_up", text="08:30")


@story(THEME)
def new_group_reads_history(world: World) -> None:
    """A new group reads a long history and catches up

    It begins at 08:30 with the oldest of 124,000 records and reads forty a second while ten are written. It has caught
    up at 09:39, long after the first progress deadline.

    Why: a long history takes time to read. It is excluded as long as the backlog shrinks.
    """
    world.group(world.topic(rate=10), speed=40, since="08:30", first="start")
    world.expect(unknown="08:00-08:29", excluded="08:30-09:37", any="09:38-09:39", good="09:40-")


@story(THEME)
def new_group_is_too_slow(world: World) -> None:
    """A new group reads more slowly than records are written

    It begins at 08:10 with the oldest record and reads eight a second while ten are written: it will never catch up.

    Why: the time is excluded for the progress deadline (30 minutes) only. Otherwise a consumer that never catches up
    would be excluded forever.
    """
    world.group(world.topic(rate=10), speed=8, since="08:10", first="start")
    world.expect(unknown="08:00-08:09", excluded="08:10-08:38", any="08:39-08:40", bad="08:41-")
    world.expect_miss("open", start="08:40-08:41", cause="not_catching_up")


@story(THEME)
def new_group_hangs(world: World) -> None:
    """A new group commits once and hangs

    Its only commit is at 08:10, at the oldest of many records.

    Why: the group has never caught up and makes no headway, so after the progress deadline it is judged.
    """
    group = world.group(world.topic(rate=10), speed=1, since="08:10", first="start")
    group.stop("08:10:04")
    world.expect(unknown="08:00-08:09", excluded="08:10-08:38", any="08:39-08:40", bad="08:41-")
    world.expect_miss("open", start="08:40-08:41", cause="not_catching_up")


@story(THEME)
def dead_before_the_first_poll(world: World) -> None:
    """A group that is already dead when monitoring begins

    Polls from 07:50 on see one position that never moves, far behind the log end.

    Why: monitoring that is installed in the middle of an outage must find it. A group that is first seen far behind is
    bootstrapping like any new group, and its backlog has to shrink.
    """
    group = world.group(world.topic(rate=10), first=50_000, polled="15s", speed=0)
    group.stop("07:50:10")
    world.expect(excluded="08:00-08:18", any="08:19-08:20", bad="08:21-")
    world.expect_miss("open", start="08:20-08:21", cause="not_catching_up")


@story(THEME)
def rebalances_step_back(world: World) -> None:
    """An at-least-once consumer steps back a few records at each rebalance

    Every ten minutes a commit is 100 records (ten seconds) lower than the one before. The threshold is a minute.

    Why: a step back that leaves the consumer on time does not begin bootstrapping.
    """
    group = world.group(world.topic(rate=10))
    for minute in range(parse_time("08:05") // MINUTE, parse_time("11:00") // MINUTE, 10):
        group.reset(f"{format_minute(minute)}:30", back=100)
    world.expect(good="08:00-")


@story(THEME)
def operator_shifts_within_threshold(world: World) -> None:
    """An operator sets the offset back by twenty seconds

    At 09:00 the offset is set back by 200 records; the consumer reads them again at once.

    Why: the consumer was never late, so there is nothing to exclude and nothing to report.
    """
    group = world.group(world.topic(rate=10))
    group.reset("09:00", back=200)
    world.expect(good="08:00-")


@story(THEME)
def poison_record(world: World) -> None:
    """A record that cannot be processed is sought back to forever

    From 08:10 on the consumer reads on a little, fails, and begins at the same record again, every half minute.

    Why: a consumer that reads the same records again and again is stuck, even though it commits.
    """
    group = world.group(world.topic(rate=10))
    group.speed("08:10", 8)
    stuck = 100_000 + parse_time("08:10") // 100
    for step in range(parse_time("08:10:30"), parse_time("11:00"), 30_000):
        group.seek(step, stuck)
    world.expect(good="08:00-08:09", any="08:10-08:15", bad="08:16-")
    world.expect_miss("open", start="08:11-08:16")


@story(THEME)
def barely_too_slow(world: World) -> None:
    """A consumer loses a little ground each minute

    It reads 19 records a second while 20 are written. The delay grows by three seconds a minute, past the threshold
    of a minute at 08:20, and to eight minutes at the end.

    Why: a slow decline is an outage too. It is reported once the threshold is passed.
    """
    group = world.group(world.topic(rate=20))
    group.speed("08:00", 19)
    world.expect(good="08:00-08:12", any="08:13-08:21", bad="08:22-")
    world.expect_miss("open", start="08:19-08:22")


@story(THEME)
def slow_for_a_while(world: World) -> None:
    """A slow downstream system delays a consumer for a quarter of an hour

    From 08:30 to 08:45 it reads two records a second instead of ten, then a hundred.

    Why: the records were late although the consumer was running. The miss recovers once the consumer has caught up.
    """
    group = world.group(world.topic(rate=10))
    group.speed("08:30", 2)
    group.speed("08:45", 100)
    world.expect(good="08:00-08:29, 08:48-", any="08:30-08:32, 08:46-08:47", bad="08:33-08:45")
    world.expect_miss("recovered", start="08:31-08:33", end="08:46-08:48", cause="too_slow")


@story(THEME)
def dies_and_topic_goes_quiet(world: World) -> None:
    """A consumer dies, and soon after nothing is written any more

    The consumer stops at 08:10, the producer at 08:15.

    Why: the records that were written still wait, even if no new ones arrive.
    """
    topic = world.topic(rate=10)
    world.group(topic).stop("08:10")
    topic.rate("08:15", 0)
    world.expect(good="08:00-08:09", any="08:10-08:11", bad="08:12-")
    world.expect_miss("open", start="08:11-08:12", cause="stopped")


@story(THEME)
def quiet_topic(world: World) -> None:
    """Nothing is written all morning

    The consumer has read everything and is alive.

    Why: nothing waits, so nothing is late.
    """
    world.group(world.topic(rate=0))
    world.expect(good="08:00-")


@story(THEME)
def quiet_topic_silent_group(world: World) -> None:
    """Nothing is written all morning, and the group commits nothing either

    Many clients commit only when they have read something. The group committed for the last time at 07:50.

    Why: a consumer without anything to read is not late, even if it shows no sign of life.
    """
    world.group(world.topic(rate=0), idle_commits=False)
    world.expect(good="08:00-")


@story(THEME)
def skips_to_the_end(world: World) -> None:
    """After an outage the consumer skips everything and continues at the end

    It stops at 08:10. At 09:30 its offset is set to the log end (`auto.offset.reset=latest`), and it continues.

    Why: the records waited until the offset was moved. Afterwards nothing waits.
    """
    group = world.group(world.topic(rate=10))
    group.stop("08:10")
    group.skip_to_end("09:30")
    group.start("09:30")
    world.expect(good="08:00-08:09, 09:31-", any="08:10-08:11, 09:30", bad="08:12-09:29")
    world.expect_miss("recovered", start="08:11-08:12", end="09:30-09:31", cause="stopped")


@story(THEME)
def joins_at_latest(world: World) -> None:
    """A new group begins at the end of the log

    It joins at 08:30 with `auto.offset.reset=latest`.

    Why: its first commit leaves it on time, so it is judged from the next minute on.
    """
    world.group(world.topic(rate=10), since="08:30")
    world.expect(unknown="08:00-08:29", any="08:30", good="08:31-")


@story(THEME)
def group_is_deleted_and_created_again(world: World) -> None:
    """A group is deleted and created again, and reads everything from the beginning

    It stops at 09:00, and comes back at once with the oldest record. It reads a hundred records a second and needs
    about 26 minutes for 142,000 records.

    Why: a consumer that was on time and starts over is bootstrapping. The time is excluded while it makes headway.
    """
    group = world.group(world.topic(rate=10))
    group.seek("09:00", 0)
    group.speed("09:00", 100)
    world.expect(good="08:00-08:59, 09:29-", excluded="09:00-09:24", any="09:25-09:28")


@story(THEME)
def late_consumer_is_reset_and_recovers(world: World) -> None:
    """A dead consumer is reset a little, and comes up

    It stops at 08:10. At 08:40 its offset is set back by a minute, and at 08:45 it comes up and reads a hundred records
    a second.

    Why: the outage lasts until the consumer has caught up. The reset does not end it.
    """
    group = world.group(world.topic(rate=10))
    group.stop("08:10")
    group.reset("08:40", back=600)
    group.speed("08:45", 100)
    group.start("08:45")
    world.expect(good="08:00-08:09, 08:51-", any="08:10-08:11, 08:48-08:50", bad="08:12-08:47")
    world.expect_miss("recovered", start="08:11-08:12", end="08:48-08:51", cause="stopped")


@story(THEME)
def replay_stalls(world: World) -> None:
    """A replay makes headway for five minutes and then only keeps pace

    At 08:30 the group is reset to where it was at 07:50. It reads thirty records a second for five minutes, then ten,
    as many as are written.

    Why: the replay is excluded while the backlog shrinks, and until a progress deadline after the last headway at the
    latest.
    """
    group = world.group(world.topic(rate=10))
    group.reset("08:30", back="40m")
    group.speed("08:30", 30)
    group.speed("08:35", 10)
    world.expect(good="08:00-08:29", excluded="08:30-08:58", any="08:59-09:36", bad="09:37-")
    world.expect_miss("open", start="08:59-09:37", cause="not_catching_up")


@story(THEME)
def resets_again_and_again(world: World) -> None:
    """A group is reset every ten minutes and never catches up

    From 08:30 on a script sets it back by half an hour each ten minutes. It reads thirty records a second.

    Why: each reset alone could be excluded, but a consumer that is never on time is an outage.
    """
    group = world.group(world.topic(rate=10))
    group.speed("08:29", 30)
    for minute in range(parse_time("08:30") // MINUTE, parse_time("11:00") // MINUTE, 10):
        group.reset(format_minute(minute), back="30m")
    world.expect(good="08:00-08:29", excluded="08:30-08:39", any="08:40-09:41", bad="09:42-")
    world.expect_miss("open", start="08:40-09:42")


@story(THEME)
def new_group_dies_while_reading_history(world: World) -> None:
    """A new group reads history for half an hour and then dies

    It begins at 08:10 with the oldest record, reads thirty records a second, and stops at 08:40.

    Why: the group made headway until it died, so it is excluded for one more progress deadline. Then the outage is
    reported.
    """
    group = world.group(world.topic(rate=10), speed=30, since="08:10", first="start")
    group.stop("08:40")
    world.expect(unknown="08:00-08:09", excluded="08:10-08:39", any="08:40-09:10", bad="09:11-")
    world.expect_miss("open", start="08:40-09:11", cause="not_catching_up or stopped")


@story(THEME)
def grace_period_is_the_limit(world: World) -> None:
    """A new group makes headway, but the team allows ten minutes only

    It begins at 08:30 with the oldest record and needs 69 minutes. The SLA sets `grace_period: 10m`.

    Why: `grace_period` is the longest time that is excluded, with or without headway.
    """
    world.set_sla(steady_state={"grace_period": "10m"})
    world.group(world.topic(rate=10), speed=40, since="08:30", first="start")
    world.expect(
        unknown="08:00-08:29", excluded="08:30-08:38", any="08:39-08:40, 09:37-09:39", bad="08:41-09:36", good="09:40-"
    )
    world.expect_miss("recovered", start="08:40-08:41", end="09:37-09:40")
