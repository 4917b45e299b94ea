"""A small language for stories: topics that get records, groups that read them, observers that write both down.

A story calls `world.topic` and `world.group`, lets things happen to them at times of one morning, and says what
kafka-sla must make of it (`expect`, `expect_miss`, `expect_mail`, ...). Nothing is random. `tests.stories.facts` turns
a world into the files that `kafka-sla import` reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.stories.clock import LENGTH, MINUTE, SECOND, parse_duration, parse_minutes, parse_time

HISTORY = 100_000
"""Records that each partition holds when the facts begin."""


class Log:
    """One partition: how its log end and log start move."""

    def __init__(self, rate: float, created: int = 0, records: int = HISTORY) -> None:
        self.created = created
        self.is_gone: list[tuple[int, int]] = []
        """Times (from, until) at which the topic does not exist."""
        self._rates = [(created, rate)]
        self._jumps: list[tuple[int, int]] = [(created, records)]
        self._starts: list[tuple[int, int]] = [(0, 0)]

    def set_rate(self, moment: int, rate: float) -> None:
        self._rates.append((moment, rate))

    def add_records(self, moment: int, count: int) -> None:
        """Append so many records at once; a negative count truncates the log."""
        self._jumps.append((moment, count))

    def recreate(self, gone: int, back: int) -> None:
        """Delete the log, and begin a new one at offset 0."""
        self.is_gone.append((gone, back))
        self.add_records(back, -self.end(back))
        self._starts.append((back, 0))

    def move_start(self, moment: int, offset: int) -> None:
        """Remove all records below the offset."""
        self._starts.append((moment, offset))

    def exists(self, moment: int) -> bool:
        return moment >= self.created and not any(gone <= moment < back for gone, back in self.is_gone)

    def end(self, moment: int) -> int:
        """The log end offset."""
        following = [since for since, _ in self._rates[1:]] + [LENGTH * 2]
        spans = zip(self._rates, following, strict=True)
        written = sum(rate * max(0, min(moment, until) - since) / SECOND for (since, rate), until in spans)
        jumped = sum(count for since, count in self._jumps if since <= moment)
        return math.floor(written + 1e-6) + jumped

    def start(self, moment: int) -> int:
        """The log start offset."""
        return [offset for since, offset in self._starts if since <= moment][-1]


@dataclass
class Topic:
    """What producers do. All partitions get the same number of records a second unless a story says otherwise."""

    name: str
    logs: list[Log]
    stamp_skew: int | None = None
    """Milliseconds by which producers' timestamps are ahead of the truth; None: nobody looks at timestamps."""
    epoch_stamps: bool = False
    """Timestamps are of 1970: seconds that were taken for milliseconds."""

    def rate(self, when: str, per_second: float, partition: int | None = None) -> None:
        """From then on each partition (or this one) gets so many records a second."""
        for log in self.logs if partition is None else [self.logs[partition]]:
            log.set_rate(parse_time(when), per_second)

    def write(self, when: str, records: int, partition: int = 0) -> None:
        """Append so many records at once."""
        self.logs[partition].add_records(parse_time(when), records)

    def add_partition(self, when: str, per_second: float) -> None:
        self.logs.append(Log(per_second, parse_time(when), 0))

    def truncate(self, when: str, records: int) -> None:
        """An unclean leader election loses the last records of partition 0."""
        self.logs[0].add_records(parse_time(when), -records)

    def recreate(self, when: str, back: str) -> None:
        """Delete the topic, and create it again later."""
        for log in self.logs:
            log.recreate(parse_time(when), parse_time(back))

    def remove_records(self, when: str) -> None:
        """Retention or DeleteRecords removes all records."""
        moment = parse_time(when)
        for log in self.logs:
            log.move_start(moment, log.end(moment))

    def keep_for(self, age: str) -> None:
        """Retention removes records of this age, each minute."""
        for log in self.logs:
            for moment in range(parse_duration(age), LENGTH, MINUTE):
                log.move_start(moment, log.end(moment - parse_duration(age)))


@dataclass
class Reader:
    """What a group does on one partition at one moment. Events change it."""

    log: Log
    position: int
    speed: float | None
    """Records a second; None: as fast as they come."""
    is_running: bool
    commit_every: int
    commits: list[tuple[int, int]] = field(default_factory=list)
    """(moment, committed offset), as `__consumer_offsets` would hold them."""

    def commit(self, moment: int, offset: int | None = None) -> None:
        self.commits.append((moment, self.position if offset is None else offset))


Event = Callable[[Reader, int], None]


@dataclass
class Group:
    """What one consumer group does on one topic. Every commit is known unless only polls see it (`polled`)."""

    name: str
    topic: Topic
    partitions: tuple[int, ...] | None
    """None: all that there are."""
    speed_at_first: float | None
    commit_every: int
    phase: int
    """When the first commit comes after a beginning."""
    since: int
    """When it reads for the first time."""
    first_position: str | int
    """`end`, `start`, or an offset."""
    polled: int | None
    commits_when_idle: bool
    offset_error: int
    """Committed offsets are so much beside the position."""
    events: list[tuple[int, int | None, Event]] = field(default_factory=list)

    def on(self, when: str | int, event: Event, partition: int | None = None) -> None:
        self.events.append((when if isinstance(when, int) else parse_time(when), partition, event))

    def stop(self, when: str, partition: int | None = None) -> None:
        """Reads and commits nothing from then on."""
        self.on(when, lambda reader, _: setattr(reader, "is_running", False), partition)

    def start(self, when: str, partition: int | None = None) -> None:
        """Continues where it committed last."""

        def resume(reader: Reader, _: int) -> None:
            reader.is_running = True
            reader.position = reader.commits[-1][1] if reader.commits else reader.position

        self.on(when, resume, partition)

    def speed(self, when: str, per_second: float | None, partition: int | None = None) -> None:
        """Reads so many records a second from then on: 0 is alive but stuck, None is as fast as they come."""
        self.on(when, lambda reader, _: setattr(reader, "speed", per_second), partition)

    def reset(self, when: str, back: str | int, partition: int | None = None) -> None:
        """Seek back by a time or by a number of records, and commit that."""

        def go_back(reader: Reader, moment: int) -> None:
            earlier = reader.log.end(moment - parse_duration(back)) if isinstance(back, str) else 0
            latest = reader.commits[-1][1] if reader.commits else reader.position
            reader.position = earlier if isinstance(back, str) else latest - back
            reader.commit(moment)

        self.on(when, go_back, partition)

    def skip_to_end(self, when: str, partition: int | None = None) -> None:
        """`auto.offset.reset=latest`, or an operator: continue at the log end."""

        def skip(reader: Reader, moment: int) -> None:
            reader.position = reader.log.end(moment)
            reader.commit(moment)

        self.on(when, skip, partition)

    def seek(self, when: str | int, offset: int, partition: int | None = None) -> None:
        """Continue at this offset, and commit it."""

        def go(reader: Reader, moment: int) -> None:
            reader.position = offset
            reader.commit(moment)

        self.on(when, go, partition)

    def commit_once(self, when: str | int, offset: int | None = None, behind: int = 0, partition: int = 0) -> None:
        """One stray commit, by somebody else: the group itself reads on as before. `behind`: so many records before
        its position."""
        self.on(
            when,
            lambda reader, moment: reader.commit(moment, offset if offset is not None else reader.position - behind),
            partition,
        )

    def pause(self, when: str, until: str, partition: int | None = None) -> None:
        """Reads and commits nothing for a while, as in a rebalance or a restart."""
        self.stop(when, partition)
        self.start(until, partition)


@dataclass
class Observer:
    """Something that asks for log ends, and writes them down with its own clock's time."""

    every: int
    ahead: int = 0
    phase: int = 0
    source: str = "exporter"
    begin: int = 0
    until: int = LENGTH + 10 * MINUTE
    blind: list[tuple[int, int]] = field(default_factory=list)
    clock_steps: list[tuple[int, int]] = field(default_factory=list)

    def fail(self, when: str, until: str) -> None:
        """It is down for a while."""
        self.blind.append((parse_time(when), parse_time(until)))

    def set_clock(self, when: str, ahead: str) -> None:
        """From then on its clock is ahead by this much (negative: behind)."""
        self.clock_steps.append((parse_time(when), parse_duration(ahead)))

    def clock_at(self, moment: int) -> int:
        """What its clock shows at that moment."""
        return moment + [ahead for since, ahead in [(0, self.ahead), *self.clock_steps] if since <= moment][-1]

    def moments(self) -> list[int]:
        times = range(self.begin + self.phase, self.until + 1, self.every)
        return [at for at in times if not any(begin <= at < end for begin, end in self.blind)]


@dataclass(frozen=True)
class ExpectedMiss:
    state: str
    start: str
    """The first bad minute, or a span of minutes in which it must lie: `08:05-08:07`."""
    cause: str | None
    end: str | None
    text: str | None
    certain: bool


@dataclass
class World:
    """One story: what happens, and what is expected. `name` names its cluster, SLA, group and topic."""

    name: str
    sla: dict[str, Any] = field(default_factory=dict)
    topics: list[Topic] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    observers: list[Observer] = field(default_factory=list)
    is_blind: list[tuple[int, int]] = field(default_factory=list)
    verdicts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By minute, the verdicts that are right."""
    misses: list[ExpectedMiss] = field(default_factory=list)
    mails: list[str] = field(default_factory=list)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    unjudged: list[tuple[int, str, str]] = field(default_factory=list)
    """Partition, since when, and the reason that `status` shows."""
    warnings: list[str] = field(default_factory=list)
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Smallest and largest value of `attainment` and `coverage`."""

    def set_sla(self, **keys: Any) -> None:
        """Keys of the SLA besides its name, groups and topics; `for_` is `for`."""
        self.sla |= {name.rstrip("_"): value for name, value in keys.items()}

    def topic(
        self,
        rate: float = 10,
        partitions: int = 1,
        *,
        suffix: str = "",
        stamp_skew: str | None = None,
        epoch_stamps: bool = False,
    ) -> Topic:
        """A topic whose partitions each get `rate` records a second. With `stamp_skew` (how far timestamps are ahead)
        or `epoch_stamps` (all are of 1970), lookups by timestamp are among the facts."""
        skew = None if stamp_skew is None else parse_duration(stamp_skew)
        topic = Topic(self.name + suffix, [Log(rate) for _ in range(partitions)], skew, epoch_stamps)
        self.topics.append(topic)
        return topic

    def group(
        self,
        topic: Topic,
        *,
        speed: float | None = None,
        commits: str = "5s",
        phase: str = "2s",
        since: str = "07:50",
        first: str | int = "end",
        partitions: tuple[int, ...] | None = None,
        polled: str | None = None,
        idle_commits: bool = True,
        offset_error: int = 0,
        suffix: str = "",
    ) -> Group:
        group = Group(
            self.name + suffix,
            topic,
            partitions,
            speed,
            parse_duration(commits),
            parse_duration(phase),
            parse_time(since),
            first,
            parse_duration(polled) if polled else None,
            idle_commits,
            offset_error,
        )
        self.groups.append(group)
        return group

    def observer(
        self,
        every: str = "15s",
        *,
        ahead: str = "0s",
        phase: str = "0s",
        begin: str = "07:50",
        until: str = "11:10",
        source: str = "exporter",
    ) -> Observer:
        """One more observer of all log ends. A story without any has one that polls each 15 seconds."""
        observer = Observer(
            parse_duration(every),
            parse_duration(ahead),
            parse_duration(phase),
            source,
            parse_time(begin),
            parse_time(until),
        )
        self.observers.append(observer)
        return observer

    def go_blind(self, when: str, until: str) -> None:
        """Nothing at all is recorded for a while."""
        self.is_blind.append((parse_time(when), parse_time(until)))

    def expect(self, **spans: str) -> None:
        """Which minutes get which verdict, for instance `good="08:00-08:05", bad="08:07-", any="08:06"`.

        `good_or_unknown` allows both, `any` every verdict. All minutes from 08:00 to 10:59 must be named.
        """
        for verdict, text in spans.items():
            allowed = ("good", "bad", "unknown", "excluded") if verdict == "any" else tuple(verdict.split("_or_"))
            for minute in parse_minutes(text):
                assert minute not in self.verdicts, f"{self.name}: {minute} has two verdicts"
                self.verdicts[minute] = allowed

    def expect_miss(
        self,
        state: str,
        *,
        start: str,
        cause: str | None = None,
        end: str | None = None,
        text: str | None = None,
        certain: bool = True,
    ) -> None:
        """One miss. `end` and `start` are minutes or spans of minutes, `text` a part of its evidence or end reason."""
        self.misses.append(ExpectedMiss(state, start, cause, end, text, certain))

    def expect_mail(self, *texts: str) -> None:
        """The next mail to this SLA's recipients has this text."""
        self.mails += texts

    def expect_reason(self, minute: str, text: str) -> None:
        """The reason of this window says so."""
        self.reasons.append((minute, text))

    def expect_unjudged(self, partition: int, *, since: str, reason: str) -> None:
        """`kafka-sla status` shows at the end that this partition is not judged, since when and why."""
        self.unjudged.append((partition, since, reason))

    def expect_warning(self, text: str) -> None:
        """The run prints a warning with this text, and names the topic."""
        self.warnings.append(text)

    def expect_attainment(self, low: float, high: float) -> None:
        """The attainment of the day so far lies in between."""
        self.figures["attainment"] = (low, high)

    def expect_coverage(self, low: float, high: float) -> None:
        """The share of the time since 07:50 for which `kafka-sla status` calls the cluster covered."""
        self.figures["coverage"] = (low, high)
