"""Stories about wrong clocks: producers', observers', and observers that look rarely, twice, or not at all."""

from __future__ import annotations

from tests.stories.clock import MINUTE, format_minute, parse_time
from tests.stories.registry import story
from tests.stories.world import World

THEME = "Wrong clocks and observers"


@story(THEME)
def producer_clock_ahead(world: World) -> None:
    """The producer's clock is an hour ahead

    Record timestamps are an hour in the future. The consumer is healthy. The log end is polled each 15 seconds.

    Why: timestamps are what producers say; polls of the log end are what was observed. The polls are enough to show
    that nothing is late.
    """
    world.group(world.topic(rate=10, stamp_skew="1h"))
    world.expect(good="08:00-")
    world.expect_warning("clock")


@story(THEME)
def producer_clock_ahead_consumer_dies(world: World) -> None:
    """The producer's clock is an hour ahead, and the consumer dies

    It stops at 08:30.

    Why: a record has been waiting since a poll first saw it in the log, whatever its timestamp says.
    """
    world.group(world.topic(rate=10, stamp_skew="1h")).stop("08:30")
    world.expect(good="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="stopped")


@story(THEME)
def producer_clock_behind(world: World) -> None:
    """Records are an hour old when they reach Kafka

    The producer's clock is an hour behind, or it sends records that it has kept for an hour. The consumer is healthy.

    Why: the consumer is judged from the time at which a record was appended. How old records were at that time is a
    separate figure.
    """
    world.group(world.topic(rate=10, stamp_skew="-1h"))
    world.expect(good="08:00-")


@story(THEME)
def old_records_consumer_dies(world: World) -> None:
    """Records are an hour old when they reach Kafka, and the consumer dies

    It stops at 08:30.

    Why: the wait since 08:30 is due to the consumer. The hour before the records reached Kafka is not.
    """
    world.group(world.topic(rate=10, stamp_skew="-1h")).stop("08:30")
    world.expect(good="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="stopped")


@story(THEME)
def seconds_as_milliseconds(world: World) -> None:
    """A producer stamps seconds where milliseconds belong

    All timestamps are of January 1970. The consumer is healthy.

    Why: impossible timestamps are ignored; the polls of the log end are enough.
    """
    world.group(world.topic(rate=10, epoch_stamps=True))
    world.expect(good="08:00-")


@story(THEME)
def seconds_as_milliseconds_consumer_dies(world: World) -> None:
    """A producer stamps seconds where milliseconds belong, and the consumer dies

    All timestamps are of January 1970. The consumer stops at 08:30.

    Why: the records wait, whatever their timestamps say.
    """
    world.group(world.topic(rate=10, epoch_stamps=True)).stop("08:30")
    world.expect(good="08:00-08:29", any="08:30-08:31", bad="08:32-")
    world.expect_miss("open", start="08:31-08:32", cause="stopped")


@story(THEME)
def second_observer_ahead(world: World) -> None:
    """A second observer, whose clock is 0.3 seconds ahead, polls once

    Fifty records a second are written; from 08:10 on the consumer reads 45. At 08:30 a second tool reads a log end
    that is a few records lower than its neighbour's.

    Why: two polls agree if they differ by no more than what is written within the difference of their clocks. The topic
    was not created again, and the miss is not over.
    """
    world.group(world.topic(rate=50)).speed("08:10", 45)
    world.observer("15s")
    world.observer("15s", ahead="300ms", phase="29s900ms", begin="08:29:30", until="08:30:10")
    world.expect(good="08:00-08:15", any="08:16-08:21", bad="08:22-")
    world.expect_miss("open", start="08:19-08:22", cause="too_slow")


@story(THEME)
def two_observers_all_day(world: World) -> None:
    """Two observers poll all morning, one of them 20 milliseconds ahead

    Both poll each 15 seconds. The consumer is healthy until it stops at 09:00.

    Why: a second observer changes nothing, neither for a healthy consumer nor for the detection of a dead one.
    """
    world.group(world.topic(rate=50)).stop("09:00")
    world.observer("15s")
    world.observer("15s", ahead="20ms", source="sampler")
    world.expect(good="08:00-08:59", any="09:00-09:01", bad="09:02-")
    world.expect_miss("open", start="09:01-09:02", cause="stopped")


@story(THEME)
def observer_clock_steps_back(world: World) -> None:
    """The observer's clock is set back by 30 seconds

    At 09:00 NTP corrects it. Log ends seem to be reached 30 seconds earlier than before. The consumer is healthy.

    Why: the correction of a clock is neither an outage nor a new topic.
    """
    world.group(world.topic(rate=10))
    world.observer("15s", ahead="30s").set_clock("09:00", "0s")
    world.expect(good_or_unknown="08:00-09:02", good="09:03-")


@story(THEME)
def observer_clock_steps_forward(world: World) -> None:
    """The observer's clock jumps ahead by 30 seconds

    From 09:00 on it is ahead of the brokers' clocks. The consumer is healthy.

    Why: commits seem to be ahead of the log end by what is written in 30 seconds. That does not make any record late.
    """
    world.group(world.topic(rate=10))
    world.observer("15s").set_clock("09:00", "30s")
    world.expect(good="08:00-08:58", good_or_unknown="08:59-")


@story(THEME)
def monitor_is_blind(world: World) -> None:
    """Nothing is recorded for an hour

    The monitoring host is down from 08:40 to 09:40. The consumer is healthy all the time.

    Why: time without facts is unknown: neither good nor bad, and no mail is sent. It does not count as covered.
    """
    world.group(world.topic(rate=10), polled="15s")
    world.go_blind("08:40", "09:40")
    world.expect(good="08:00-08:38, 09:42-", unknown="08:41-09:38", good_or_unknown="08:39-08:40, 09:39-09:41")
    world.expect_coverage(0.65, 0.72)


@story(THEME)
def dies_while_monitor_is_blind(world: World) -> None:
    """A consumer dies while nothing is recorded

    The monitoring host is down from 08:40 to 09:40; the consumer dies at 08:50.

    Why: a minute after the first poll, the unread records have certainly waited for longer than the threshold.
    """
    world.group(world.topic(rate=10), polled="15s").stop("08:50")
    world.go_blind("08:40", "09:40")
    world.expect(good="08:00-08:38", unknown_or_bad="08:51-09:39", any="08:39-08:50, 09:40-09:41", bad="09:42-")
    world.expect_miss("open", start="08:51-09:42", cause="stopped")


@story(THEME)
def sample_says_zero(world: World) -> None:
    """One sample of the position says 0

    Positions are polled each 15 seconds. At 08:30 one poll says 0; the next one is back where it was.

    Why: a consumer cannot read 127,000 records in 15 seconds. A contradicted poll begins no bootstrapping. The poll and
    its contradiction are in different windows here: these two windows alone are not judged.
    """
    group = world.group(world.topic(rate=10), polled="15s")
    group.commit_once("08:29:59", offset=0)
    world.expect(good="08:00-08:28, 08:32-", any="08:29-08:31")


@story(THEME)
def two_programs_one_group(world: World) -> None:
    """Two programs commit for the same group

    From 08:20 on a second program, started by mistake with the same `group.id` and fixed partitions, commits positions
    that are five minutes older. Both commit each five seconds.

    Why: the facts do not show which position is true. The time is unknown, and the reason asks whether two programs use
    the group. It is never excluded and never good.
    """
    topic = world.topic(rate=10)
    world.group(topic)
    world.group(topic, since="08:20", first=100_000 + (25 * 60) * 10, speed=10, phase="4s")
    world.expect(good="08:00-08:19", unknown="08:25-", any="08:20-08:24")
    world.expect_reason("09:00", "two programs")


@story(THEME)
def polled_each_five_minutes(world: World) -> None:
    """Positions are polled each five minutes only

    Neither the log of commits nor samples are there. The threshold is a minute. The consumer dies at 09:00.

    Why: polls every five minutes cannot show that a threshold of a minute was met, so healthy time is unknown. The
    outage is found, because the position never moves.
    """
    group = world.group(world.topic(rate=10), polled="5m")
    group.stop("09:00")
    world.expect(good_or_unknown="08:00-08:59", any="09:00-09:06", bad_or_unknown="09:07-")
    world.expect_miss("open", start="09:01-09:07", cause="stopped", certain=False)


@story(THEME)
def exporter_with_holes(world: World) -> None:
    """An exporter that loses four minutes of each half hour

    Log ends are missing then; every commit is known. The consumer is healthy.

    Why: missing polls make windows unknown at most. They are not an outage.
    """
    world.group(world.topic(rate=10))
    observer = world.observer("15s")
    for begin, end in (("08:10", "08:14"), ("08:40", "08:44"), ("09:10", "09:14"), ("09:40", "09:44")):
        observer.fail(begin, end)
    holes = "08:09-08:14, 08:39-08:44, 09:09-09:14, 09:39-09:44"
    world.expect(good="08:00-08:08, 08:15-08:38, 08:45-09:08, 09:15-09:38, 09:45-", good_or_unknown=holes)


@story(THEME)
def consumer_pauses_three_minutes(world: World) -> None:
    """A healthy consumer pauses for three minutes of every twenty

    The log end is polled each 30 seconds only, and the threshold is 30 seconds, so that windows in between may be
    unknown. `for` is five minutes.

    Why: there were never five bad minutes in a row, and 17 of each 20 minutes may have been good.
    """
    world.set_sla(max_latency="30s")
    group = world.group(world.topic(rate=5), commits="10s", phase="3s")
    world.observer("30s")
    bad, edges, calm = [], [], ["08:00-08:09"]
    for start in range(parse_time("08:10") // MINUTE, parse_time("11:00") // MINUTE, 20):
        first, second, third, back, next_start = (format_minute(start + passed) for passed in (0, 1, 2, 3, 19))
        group.pause(first, back)
        bad.append(f"{second}-{third}")
        edges.append(f"{first}, {back}")
        calm.append(f"{format_minute(start + 4)}-{min(next_start, '10:59')}")
    world.expect(bad=", ".join(bad), any=", ".join(edges), good_or_unknown=", ".join(calm))
