"""Stories about partitions: nobody reads one, one lags behind, new ones appear, groups leave topics."""

from __future__ import annotations

from tests.stories.registry import story
from tests.stories.world import World

THEME = "Partitions and topics"


@story(THEME)
def partition_without_reader(world: World) -> None:
    """A new partition that the group never reads

    The topic gets a second partition at 08:10, with ten records a second. The group continues with the first only.

    Why: the SLA covers every record of the topic, and the records of the new partition are never read.
    """
    topic = world.topic(rate=10)
    world.group(topic, partitions=(0,))
    topic.add_partition("08:10", 10)
    world.expect(good="08:00-08:09", any="08:10-08:12", bad="08:13-")
    world.expect_miss("open", start="08:11-08:13", cause="no_position", text="partition 1")
    world.expect_mail("no position")


@story(THEME)
def partition_read_once(world: World) -> None:
    """A new partition that the group reads a little of

    The topic gets a second partition at 08:10. The group commits offset 50 of it at 08:10:10, and never again.

    Why: a single commit does not begin a new excluded time: the partition's records have been late since 08:11.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    topic.add_partition("08:10", 10)
    group.speed("08:10:05", 1, partition=1)
    group.stop("08:10:10", partition=1)
    world.expect(good="08:00-08:09", any="08:10-08:12", bad="08:13-")
    world.expect_miss("open", start="08:11-08:13", cause="stopped")


@story(THEME)
def expansion_is_noticed(world: World) -> None:
    """New partitions are read five minutes after they appear

    The topic gets two more partitions at 08:30. Consumers refresh metadata each five minutes by default, so the group
    begins to read them at 08:34, from their first record on.

    Why: the records waited, but for less than five minutes in a row, so no miss opens.
    """
    topic = world.topic(rate=10)
    world.group(topic, partitions=(0,))
    topic.add_partition("08:30", 10)
    topic.add_partition("08:30", 10)
    world.group(topic, partitions=(1, 2), since="08:34", first="start")
    world.expect(good="08:00-08:29, 08:36-", any="08:30-08:35")


@story(THEME)
def expansion_starts_at_the_end(world: World) -> None:
    """New partitions are read from their end on

    The topic gets a second partition at 08:30. The group begins to read it at 08:34 with `auto.offset.reset=latest`, so
    the first 2,400 records are never read.

    Why: the skipped records will never be read, so they do not wait. Afterwards everything is on time.
    """
    topic = world.topic(rate=10)
    world.group(topic, partitions=(0,))
    topic.add_partition("08:30", 10)
    late = world.group(topic, partitions=(1,), since="08:34", first="start")
    late.skip_to_end("08:34")
    world.expect(good="08:00-08:29, 08:36-", any="08:30-08:35")


@story(THEME)
def one_partition_bootstraps(world: World) -> None:
    """One of twelve partitions replays for hours

    Eleven partitions are read on time. The twelfth has a backlog of a week and catches up slowly, but steadily.

    Why: the eleven are judged. Wherever the SLA is shown, it must be visible that the twelfth is not judged, since
    when, and why.
    """
    topic = world.topic(rate=10, partitions=12)
    world.group(topic, partitions=tuple(range(11)))
    world.group(topic, partitions=(11,), first="start", speed=11)
    world.expect(good="08:00-")
    world.expect_unjudged(11, since="07:50", reason="first_commit")


@story(THEME)
def one_partition_stops(world: World) -> None:
    """One of six partitions is not consumed any more

    A task of the consumer dies at 08:30 and takes partition 3 with it. The other five are on time.

    Why: a sixth of all records waits. An average over partitions would hide it.
    """
    topic = world.topic(rate=10, partitions=6)
    world.group(topic).stop("08:30", partition=3)
    world.expect(good="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="stopped", text="one_partition_stops-3")


@story(THEME)
def hot_partition(world: World) -> None:
    """A hot key makes one partition ten times as busy

    From 08:30 to 08:50 partition 1 gets a hundred records a second; a consumer can read thirty.

    Why: the records of the busy partition are late, although the other partitions are on time.
    """
    topic = world.topic(rate=10, partitions=3)
    group = world.group(topic, speed=30)
    topic.rate("08:30", 100, partition=1)
    topic.rate("08:50", 10, partition=1)
    group.speed("08:51", 600)
    world.expect(good="08:00-08:29, 08:55-", any="08:30-08:32, 08:51-08:54", bad="08:33-08:50")
    world.expect_miss("recovered", start="08:31-08:33", end="08:51-08:55", cause="produce_rate_jumped or too_slow")


@story(THEME)
def canary_reads_one_partition(world: World) -> None:
    """A canary that reads one of four partitions on purpose

    Its SLA says `partitions: committed`.

    Why: the team has declared that it reads some partitions only.
    """
    world.set_sla(partitions="committed")
    world.group(world.topic(rate=10, partitions=4), partitions=(2,))
    world.expect(good="08:00-")


@story(THEME)
def canary_without_the_key(world: World) -> None:
    """The same canary without `partitions: committed`

    It reads one of four partitions. Nothing says that this is on purpose.

    Why: a partition that is not read is an outage unless the SLA says otherwise. Its time is excluded for the progress
    deadline first, because it has had no reader since monitoring began.
    """
    world.group(world.topic(rate=10, partitions=4), partitions=(2,))
    world.expect(any="08:00-08:20", bad="08:21-")
    world.expect_miss("open", start="08:00-08:21", cause="no_position")


@story(THEME)
def idle_partition_without_position(world: World) -> None:
    """A partition that never got a record has no committed offset

    Three of four partitions are read. Nothing was ever written to the fourth.

    Why: clients commit nothing where there is nothing to read, and no record waits there.
    """
    topic = world.topic(rate=10, partitions=3)
    topic.add_partition("07:50", 0)
    world.group(topic, partitions=(0, 1, 2))
    world.expect(good="08:00-")


@story(THEME)
def old_partition_without_position(world: World) -> None:
    """A partition with old records only has no committed offset

    The fourth partition holds records from before the group began, and gets no new ones. The group uses
    `auto.offset.reset=latest` and commits only where it reads.

    Why: records from before the group began are not the group's to read.
    """
    topic = world.topic(rate=10, partitions=4)
    topic.rate("07:50", 0, partition=3)
    world.group(topic, partitions=(0, 1, 2))
    world.expect(good="08:00-")


@story(THEME)
def topic_that_was_left(world: World) -> None:
    """A group stops reading one of its two topics

    From 08:30 on it reads only one topic. The other still gets records, and the group's old offset remains.

    Why: this may be the outage. A team that left the topic on purpose excludes it from the SLA, or deletes the group's
    offsets for it.
    """
    kept, left = world.topic(rate=10), world.topic(rate=10, suffix=".left")
    world.group(kept)
    world.group(left).stop("08:30")
    world.expect(good="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="left_topic or stopped", text=".left")


@story(THEME)
def topic_is_recreated(world: World) -> None:
    """A topic is deleted and created again, and its consumer continues

    It is gone from 08:30 to 08:31. The consumer begins at offset 0 of the new topic.

    Why: offsets of the two topics cannot be compared, so a few minutes are unknown. No record is late.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    topic.recreate("08:30", "08:31")
    group.seek("08:31", 0)
    world.expect(good="08:00-08:28, 08:36-", good_or_unknown_or_excluded="08:29-08:35")


@story(THEME)
def topic_is_recreated_while_dead(world: World) -> None:
    """A topic is deleted and created again while its consumer is dead

    The consumer stops at 08:10. The topic is gone from 08:40 to 08:41, and the consumer does not come back.

    Why: the old records are gone and no longer judged, but nothing has recovered: the new topic is not read either.
    """
    topic = world.topic(rate=10)
    world.group(topic).stop("08:10")
    topic.recreate("08:40", "08:41")
    world.expect(
        good="08:00-08:09", any="08:10-08:11", bad="08:12-08:38", bad_or_unknown="08:39-08:45", unknown_or_bad="08:46-"
    )
    world.expect_miss("open or excluded", start="08:11-08:12", cause="stopped")


@story(THEME)
def unclean_election_while_dead(world: World) -> None:
    """An unclean leader election truncates the log while the consumer is dead

    The consumer stops at 08:20. At 08:40 the log loses its last 500 records.

    Why: the rest of the backlog still waits. A shorter log is not a new topic.
    """
    topic = world.topic(rate=10)
    world.group(topic).stop("08:20")
    topic.truncate("08:40", 500)
    world.expect(good="08:00-08:19", any="08:20-08:21", bad="08:22-")
    world.expect_miss("open", start="08:21-08:22", cause="stopped")
    world.expect_warning("truncat")


@story(THEME)
def unclean_election_under_a_reader(world: World) -> None:
    """An unclean leader election truncates the log under a healthy consumer

    At 08:40 the log loses its last 500 records; the consumer's offset is out of range, and it continues at the end.

    Why: some minutes may be unknown, but nothing is late, and the consumer is judged again soon.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    topic.truncate("08:40", 500)
    group.skip_to_end("08:40:10")
    world.expect(good="08:00-08:38, 08:46-", good_or_unknown_or_excluded="08:39-08:45")


@story(THEME)
def records_expire_unread(world: World) -> None:
    """Retention is shorter than the outage

    Records are kept for 30 minutes. The consumer stops at 08:20 and comes back at 10:00 at the first record that is
    left.

    Why: two thirds of the records were lost unread. The outage lasts until the consumer is back.
    """
    topic = world.topic(rate=10)
    topic.keep_for("30m")
    group = world.group(topic)
    group.stop("08:20")
    group.start("10:00")
    world.expect(good="08:00-08:19, 10:02-", any="08:20-08:21, 10:00-10:01", bad="08:22-09:59")
    world.expect_miss("recovered", start="08:21-08:22", end="10:00-10:02", cause="stopped")


@story(THEME)
def records_are_deleted(world: World) -> None:
    """Somebody deletes records while the consumer is stopped

    It stops at 08:30. At 08:40 all records are deleted (`kafka-delete-records.sh`). It comes back at 09:00.

    Why: the log end is still known, so the group is judged as usual. When the records are deleted nothing waits any
    more, which ends the first miss; the records written since then wait, which begins the second one.
    """
    topic = world.topic(rate=10)
    group = world.group(topic)
    group.stop("08:30")
    topic.remove_records("08:40:20")
    group.start("09:00")
    world.expect(
        good="08:00-08:29, 08:40, 09:02-",
        any="08:30-08:31, 08:41, 09:00-09:01",
        bad="08:32-08:39, 08:42-08:59",
    )
    world.expect_miss("recovered", start="08:31-08:32", end="08:40", cause="stopped")
    world.expect_miss("recovered", start="08:41-08:42", end="09:00-09:02", cause="stopped")


@story(THEME)
def emptied_quiet_topic(world: World) -> None:
    """A quiet topic whose records have all expired

    The group has read everything, commits its position each five seconds, and the log is empty. Log ends are polled
    each five minutes.

    Why: two equal log ends prove that nothing was written in between, with or without old records in the log.
    """
    topic = world.topic(rate=0)
    topic.remove_records("07:55")
    world.group(topic)
    world.observer("5m")
    world.expect(good="08:00-")


@story(THEME)
def repartition_topic_is_purged(world: World) -> None:
    """Kafka Streams deletes the records of a repartition topic once it has read them

    Each minute everything that the group has committed is deleted.

    Why: records that are deleted after they were read are not lost, and nothing is late.
    """
    topic = world.topic(rate=10)
    world.group(topic, commits="30s")
    topic.keep_for("2m")
    world.expect(good="08:00-")
