"""Stories about how real consumers behave: Flink, Kafka Connect, Streams, Spark, Debezium, loaders, deployments."""

from __future__ import annotations

from tests.stories.clock import MINUTE, format_minute, parse_time
from tests.stories.registry import story
from tests.stories.world import World

THEME = "How real consumers behave"


@story(THEME)
def flink_checkpoints(world: World) -> None:
    """Flink commits with each checkpoint, once a minute

    The threshold is three minutes.

    Why: a record counts as read when it is committed, within a minute here.
    """
    world.set_sla(max_latency="3m")
    world.group(world.topic(rate=10), commits="60s")
    world.expect(good="08:00-")


@story(THEME)
def flink_restores_a_savepoint(world: World) -> None:
    """A Flink job is stopped and restored from a savepoint

    It commits each minute. It stops at 08:30, and at 08:34 it continues from five minutes before, at a hundred records
    a second. The threshold is three minutes.

    Why: records waited for longer than three minutes, but for less than five minutes in a row (`for`).
    """
    world.set_sla(max_latency="3m")
    group = world.group(world.topic(rate=10), commits="60s")
    group.stop("08:30")
    group.reset("08:34", back="9m")
    group.speed("08:34", 100)
    group.start("08:34")
    world.expect(good="08:00-08:30, 08:38-", any="08:31-08:37")


@story(THEME)
def flink_checkpoints_fail(world: World) -> None:
    """A Flink job whose checkpoints fail

    The job reads on, but no checkpoint has completed since 08:30, so nothing is committed.

    Why: after a crash everything since 08:30 would be processed again. Records count as read when they are committed.
    """
    world.set_sla(max_latency="3m")
    world.group(world.topic(rate=10), commits="60s").stop("08:30")
    world.expect(good="08:00-08:31", any="08:32-08:33", bad="08:34-")
    world.expect_miss("open", start="08:32-08:34", cause="stopped")


@story(THEME)
def commits_rarer_than_threshold(world: World) -> None:
    """A connector flushes once a minute, but the threshold is 30 seconds

    The consumer is healthy, and commits each 60 seconds.

    Why: half of each minute's records are committed later than 30 seconds. The threshold can be neither met nor shown
    to be met, and the miss says so.
    """
    world.set_sla(max_latency="30s")
    world.group(world.topic(rate=10), commits="60s")
    world.expect(bad="08:00-")
    world.expect_miss("open", start="07:50-08:00", cause="commits_rarely")


@story(THEME)
def connect_rebalances(world: World) -> None:
    """Kafka Connect rebalances its tasks every quarter of an hour

    All tasks stop for 40 seconds each time. The threshold is two minutes.

    Why: no record waits for longer than the threshold.
    """
    world.set_sla(max_latency="2m")
    group = world.group(world.topic(rate=10, partitions=3), commits="10s")
    for start in range(parse_time("08:10") // MINUTE, parse_time("11:00") // MINUTE, 15):
        group.pause(format_minute(start), f"{format_minute(start)}:40")
    world.expect(good="08:00-")


@story(THEME)
def connect_sink_is_paused(world: World) -> None:
    """Somebody pauses a sink connector for half an hour

    From 09:00 to 09:30 nothing is read or committed; then it catches up in a minute.

    Why: for those who wait for the data a pause is an outage. A team that pauses on purpose can plan `maintenance`.
    """
    group = world.group(world.topic(rate=10), commits="10s")
    group.pause("09:00", "09:30")
    world.expect(good="08:00-08:59, 09:32-", any="09:00-09:01, 09:31", bad="09:02-09:30")
    world.expect_miss("recovered", start="09:01-09:02", end="09:31-09:32", cause="stopped")


@story(THEME)
def paused_but_committing(world: World) -> None:
    """A consumer has called `pause()` and keeps committing

    From 09:00 to 09:20 it polls, commits the same position again and again, and reads nothing.

    Why: the consumer is running but stuck. Commits without progress do not make it healthy.
    """
    group = world.group(world.topic(rate=10))
    group.speed("09:00", 0)
    group.speed("09:20", None)
    world.expect(good="08:00-08:59, 09:22-", any="09:00-09:01, 09:21", bad="09:02-09:20")
    world.expect_miss("recovered", start="09:01-09:02", end="09:21-09:22", cause="stalled")


@story(THEME)
def streams_commit_interval(world: World) -> None:
    """Kafka Streams with its default commit interval of 30 seconds

    The threshold is a minute.

    Why: 30 seconds until the commit and 15 seconds between polls of the log end add up to less than a minute.
    """
    world.group(world.topic(rate=10, partitions=2), commits="30s")
    world.expect(good="08:00-")


@story(THEME)
def streams_standby_takes_over(world: World) -> None:
    """A Kafka Streams instance dies and its standby takes over

    Two of four partitions are not read for 45 seconds (the session timeout) at 08:40.

    Why: no record waits for longer than the threshold of two minutes.
    """
    world.set_sla(max_latency="2m")
    group = world.group(world.topic(rate=10, partitions=4), commits="30s")
    for partition in (0, 1):
        group.pause("08:40", "08:40:45", partition=partition)
    world.expect(good="08:00-")


@story(THEME)
def spark_batches(world: World) -> None:
    """Spark Structured Streaming commits after each batch, and one batch hangs

    Batches take 45 seconds. The one of 09:00 takes ten minutes. The threshold is two minutes.

    Why: records waited for ten minutes, eight more than allowed. The batches before and after are on time.
    """
    world.set_sla(max_latency="2m")
    group = world.group(world.topic(rate=10), commits="45s")
    group.pause("09:00", "09:10")
    world.expect(good="08:00-08:59, 09:12-", any="09:00-09:02, 09:10-09:11", bad="09:03-09:09")
    world.expect_miss("recovered", start="09:01-09:03", end="09:10-09:12", cause="stopped")


@story(THEME)
def debezium_snapshot(world: World) -> None:
    """Debezium takes a snapshot, a burst of 60,000 records in ten minutes

    From 08:30 to 08:40 a hundred records a second are written instead of ten. The consumer can read forty.

    Why: the records are late, and the cause is the burst: the team should look at the source.
    """
    topic = world.topic(rate=10)
    world.group(topic, speed=40)
    topic.rate("08:30", 100)
    topic.rate("08:40", 10)
    world.expect(good="08:00-08:29, 09:01-", any="08:30-08:33, 08:58-09:00", bad="08:34-08:57")
    world.expect_miss("recovered", start="08:31-08:34", end="08:58-09:01", cause="produce_rate_jumped")


@story(THEME)
def debezium_source_pauses(world: World) -> None:
    """A Debezium source is down for an hour and then delivers everything

    Nothing is written from 08:30 to 09:30, then 36,000 records at once. The consumer reads a thousand a second.

    Why: while nothing is written nothing waits, and the backlog is read within a minute.
    """
    topic = world.topic(rate=10)
    world.group(topic, speed=1000)
    topic.rate("08:30", 0)
    topic.rate("09:30", 10)
    topic.write("09:30", 36_000)
    world.expect(good="08:00-09:29, 09:32-", good_or_unknown="09:30-09:31")


@story(THEME)
def nightly_batch(world: World) -> None:
    """A producer writes a nightly batch, and the team allows a quarter of an hour for it

    At 08:30 54,000 records arrive at once. The consumer reads a hundred a second and needs ten minutes. The threshold
    is 15 minutes.

    Why: the lag is large, but no record is late.
    """
    world.set_sla(max_latency="15m")
    topic = world.topic(rate=10)
    world.group(topic, speed=100)
    topic.write("08:30", 54_000)
    world.expect(good="08:00-")


@story(THEME)
def hourly_loader(world: World) -> None:
    """A loader commits once an hour

    The threshold is two hours.

    Why: a commit an hour is enough for a threshold of two hours.
    """
    world.set_sla(max_latency="2h")
    world.group(world.topic(rate=10), commits="1h", phase="5m")
    world.expect(any="08:00-08:55", good="08:56-")


@story(THEME)
def hourly_loader_fails(world: World) -> None:
    """An hourly loader fails once

    It commits at 08:00, then no more. The threshold is 90 minutes.

    Why: at 09:30 the first unread record has waited for 90 minutes.
    """
    world.set_sla(max_latency="90m")
    group = world.group(world.topic(rate=10), commits="1h", phase="10m")
    group.stop("08:30")
    world.expect(any="08:00-08:01, 09:29-09:31", good="08:02-09:28", bad="09:32-")
    world.expect_miss("open", start="09:30-09:32", cause="stopped")


@story(THEME)
def blue_green_cutover(world: World) -> None:
    """A deployment switches to a new group, and the SLA covers both

    At 08:30 the blue group stops and the green one continues at the end of the log. Blue's offsets remain. The SLA
    names both groups.

    Why: records still wait for the blue group, as far as Kafka's offsets show. Deleting its offsets, or removing it
    from the SLA, ends the miss.
    """
    topic = world.topic(rate=10)
    world.group(topic, suffix=".blue").stop("08:30")
    world.group(topic, suffix=".green", since="08:30")
    world.expect(good_or_unknown="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="stopped", text=".blue")


@story(THEME)
def green_group_joins(world: World) -> None:
    """A deployment switches to a new group that reads everything again

    The green group begins at 08:30 with the oldest record and reads 200 records a second: eleven minutes.

    Why: the group is unknown before its first commit, excluded while it catches up, and judged from then on.
    """
    world.group(world.topic(rate=10), since="08:30", first="start", speed=200)
    world.expect(unknown="08:00-08:29", excluded="08:30-08:39", any="08:40-08:42", good="08:43-")


@story(THEME)
def autoscaled_group(world: World) -> None:
    """Members of an autoscaled group come and go

    Each five minutes a rebalance stops all six partitions for twenty seconds.

    Why: no record waits for longer than a minute.
    """
    group = world.group(world.topic(rate=10, partitions=6))
    for start in range(parse_time("08:00") // MINUTE, parse_time("11:00") // MINUTE, 5):
        group.pause(f"{format_minute(start)}:05", f"{format_minute(start)}:25")
    world.expect(good="08:00-")


@story(THEME)
def scaled_to_zero(world: World) -> None:
    """A group is scaled to zero while its topic is quiet

    Nothing is written from 08:20 to 09:20, and no consumer runs from 08:25 on. It comes back at 09:20:20.

    Why: a group without members and commits is fine while nothing waits.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    topic.rate("08:20", 0)
    topic.rate("09:20", 10)
    group.pause("08:25", "09:20:20")
    world.expect(good="08:00-")


@story(THEME)
def scale_up_fails(world: World) -> None:
    """A group is scaled to zero, and does not come back when records arrive

    Nothing is written from 08:20 to 09:20, and no consumer runs from 08:25 on.

    Why: from 09:20 on records wait.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    topic.rate("08:20", 0)
    topic.rate("09:20", 10)
    group.stop("08:25")
    world.expect(good="08:00-09:19", any="09:20-09:21", bad="09:22-")
    world.expect_miss("open", start="09:21-09:22", cause="stopped")


@story(THEME)
def leaders_move(world: World) -> None:
    """Partitions are reassigned to another broker

    At 09:00 the log ends are not known for a minute, and nothing is read for 30 seconds.

    Why: the pause is shorter than the threshold. The minute without log ends may be unknown.
    """
    world.group(world.topic(rate=10, partitions=2)).pause("09:00", "09:00:30")
    world.observer("15s").fail("08:59:50", "09:00:50")
    world.expect(good="08:00-08:58, 09:02-", good_or_unknown="08:59-09:01")


@story(THEME)
def retry_topic(world: World) -> None:
    """A dead-letter topic is quiet for hours and gets one record

    One record is written at 10:00 and read at once. The group commits only when it has read something.

    Why: two hours without commits are not an outage if nothing was written.
    """
    topic = world.topic(rate=0)
    world.group(topic, idle_commits=False)
    topic.write("10:00", 1)
    world.expect(good="08:00-")


@story(THEME)
def retry_record_is_not_read(world: World) -> None:
    """A dead-letter topic gets one record that is not read

    It is written at 09:00. The consumer has been dead since 08:30, unnoticed because nothing waited.

    Why: a single late record is a late record.
    """
    topic = world.topic(rate=0)
    world.group(topic).stop("08:30")
    topic.write("09:00", 1)
    world.expect(good="08:00-08:59", any="09:00-09:01", bad="09:02-")
    world.expect_miss("open", start="09:01-09:02", cause="stopped or one_record_waiting")


@story(THEME)
def delayed_retries(world: World) -> None:
    """A retry topic whose consumer waits for a quarter of an hour on purpose

    It reads each record 15 minutes after it was written. The threshold is 20 minutes.

    Why: the threshold allows the delay.
    """
    world.set_sla(max_latency="20m")
    world.group(world.topic(rate=10), first=100_000 - 15 * 600, speed=10)
    world.expect(any="08:00-08:29", good="08:30-")


@story(THEME)
def commits_last_offset(world: World) -> None:
    """A sink commits the last offset instead of the next one, and the topic goes quiet

    Nothing is written after 08:20. Everything is processed, yet one record seems to wait forever.

    Why: the offsets look like one unread record, so the SLA is missed. The cause says that exactly one record has been
    waiting since the topic became quiet.
    """
    topic = world.topic(rate=1)
    world.group(topic, offset_error=-1)
    topic.rate("08:20", 0)
    world.expect(good="08:00-08:19", any="08:20-08:22", bad="08:23-")
    world.expect_miss("open", start="08:21-08:23", cause="one_record_waiting")


@story(THEME)
def commits_last_offset_allowed(world: World) -> None:
    """The same sink, with `allowed_lag: 1` in its SLA

    One record may wait for as long as it likes.

    Why: the team knows that its client commits this way.
    """
    world.set_sla(allowed_lag=1)
    topic = world.topic(rate=1)
    world.group(topic, offset_error=-1)
    topic.rate("08:20", 0)
    world.expect(good="08:00-")


@story(THEME)
def allowed_lag_hides_no_outage(world: World) -> None:
    """A consumer with `allowed_lag: 1` dies

    Ten records a second are written; it stops at 08:30.

    Why: one record may wait; thousands may not.
    """
    world.set_sla(allowed_lag=1)
    world.group(world.topic(rate=10), offset_error=-1).stop("08:30")
    world.expect(good="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="stopped")
