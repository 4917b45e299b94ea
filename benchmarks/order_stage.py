"""One variant of the experiment: a store with the day's facts, a mailbox, a reader that polls, workers that run. Knows
no order: that is the caller's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from benchmarks.order_day import CLUSTER
from benchmarks.order_reader import canonical, seen_now
from benchmarks.order_worker import Plan, store_of
from demo.mailbox import Mailbox, mailbox
from demo.object_store import BUCKET, ObjectStore
from kafka_sla.lake.import_files import import_committed_offsets, import_log_offsets
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Interval

TABLES = ("consumer_latency", "steady_state", "consumer_status", "non_consumed", "sla_windows", "sla_misses")
_IMPORTS = {"log_offsets": import_log_offsets, "committed_offsets": import_committed_offsets}


@dataclass
class Stage:
    """The folder of one variant and what acts on it."""

    plan: Plan
    box: Mailbox
    known: list[dict[int, tuple[str, ...]]] = field(default_factory=list)
    """What may be seen of each interval: one entry a state that was complete, the oldest first."""

    @property
    def lake(self) -> Lake:
        return Lake(store_of(self.plan.folder))

    def import_files(self, files: Iterable[tuple[str, Path]]) -> None:
        import_facts(self.lake, files)

    def start(self, name: str, intervals: Sequence[Interval]) -> subprocess.Popen[bytes]:
        """A worker in a process group of its own, so that a kill takes its Spark along."""
        plan = replace(self.plan, name=name, intervals=tuple(intervals))
        command = [sys.executable, "-m", "benchmarks.order_worker", str(plan.write())]
        with (self.plan.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def run(self, *orders: Sequence[Interval]) -> None:
        """One worker an order, all at once; raises when one fails."""
        workers = [self.start(f"worker-{n}", order) for n, order in enumerate(orders)]
        try:
            codes = [worker.wait() for worker in workers]
            if any(codes):
                logs = [self.plan.folder / f"worker-{n}.log" for n in range(len(orders))]
                raise RuntimeError("a worker failed:\n" + "\n".join(log.read_text()[-3000:] for log in logs))
        finally:
            for worker in workers:
                kill(worker)

    def forget_journal(self) -> None:
        """As when all runs are cleared: every step is to run again."""
        for path in (self.plan.folder / "journal").glob("*"):
            path.unlink()

    def mark_complete(self) -> None:
        """What is published now is a complete state, which readers may see from here on."""
        self.known.append({n: seen_now(self.lake, interval) for n, interval in enumerate(self.plan.intervals)})

    def rows(self) -> dict[str, list[bytes]]:
        """All that is published, each row as bytes."""
        found = {name: self.lake.published(name, EVERYTHING).to_pylist() for name in TABLES}
        return {name: canonical(name, rows) for name, rows in found.items()}

    def mails(self) -> Counter[str]:
        """How often each miss was mailed as `<miss>.opened` or `<miss>.recovered`; a mail may be about several."""
        return Counter(event for mail in self.box.mails() for event in mailed(mail))


def import_facts(lake: Lake, files: Iterable[tuple[str, Path]]) -> None:
    """Files of facts by the table that they are of."""
    for table, path in files:
        _IMPORTS[table](lake, path, [CLUSTER])


def mailed(mail: EmailMessage) -> list[str]:
    """`<miss>.<opened or recovered>` of each miss that the mail is about."""
    kind = str(mail["Message-ID"]).partition("@")[0].rpartition(".")[2]
    return [f"{miss}.{kind}" for miss in str(mail["X-Kafka-Sla-Miss"]).split(", ")]


def kill(worker: subprocess.Popen[bytes]) -> None:
    """kill -9 of the worker and all that it started, unless it has ended."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


class SlowMailbox(Mailbox):
    """Takes its time between keeping a mail and saying so: a kill then leaves the sender in doubt."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        said = await super().handle_DATA(server, session, envelope)
        await asyncio.sleep(0.25)
        return said


@contextmanager
def stage(
    folder: Path,
    configuration: str,
    intervals: Sequence[Interval],
    *,
    broker: str | None = None,
    checked: bool = False,
    objects: ObjectStore | None = None,
) -> Iterator[Stage]:
    """A new variant, with its warehouse in the object store if there is one; at its end the reader has written what it
    saw to `seen.json`."""
    folder.mkdir(parents=True)
    if objects:
        extra = {"warehouse": f"s3://{BUCKET}/{folder.name}/warehouse", **objects.properties}
        store = {"conn_type": "sqlite", "host": str(folder / "kafka_sla.db"), "extra": extra}
        (folder / "store.json").write_text(json.dumps(store))
    (folder / "kafka_sla.yml").write_text(configuration)
    with mailbox(folder / "mail", SlowMailbox) as box:
        made = Stage(Plan(folder, tuple(intervals), box.port, broker, "reader", checked), box)
        command = [sys.executable, "-m", "benchmarks.order_reader", str(made.plan.write()), str(folder / "seen.json")]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as reader:
            yield made
            if reader.stdin is None or reader.poll() is not None:
                raise RuntimeError("the reader ended early")
            reader.stdin.close()
            if reader.wait(60):
                raise RuntimeError("the reader failed")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reader saw: how often it looked, and how often what it saw was no complete state."""

    polls: int
    nothing: int
    half: int


def seen(made: Stage) -> Seen:
    """Judge what the reader wrote down by the complete states of the variant."""
    told: list[tuple[int, list[str], int]] = json.loads((made.plan.folder / "seen.json").read_text())
    nothing = sum(count for _, digests, count in told if not any(digests[:2]))
    half = sum(count for number, digests, count in told if not _complete(made.known, number, digests))
    return Seen(sum(count for *_, count in told), nothing, half)


def _complete(known: list[dict[int, tuple[str, ...]]], number: int, digests: list[str]) -> bool:
    """Latency and steady states are each none or all of one state, the second no older than the first; so is each
    SLA's verdicts."""
    states = [("", ""), *(state[number][:2] for state in known)]
    ages: list[set[int]] = [{age for age, state in enumerate(states) if state[i] == digests[i]} for i in range(2)]
    verdicts: set[Any] = {one for state in known for one in state[number][2:]}
    return bool(ages[0] and ages[1] and min(ages[0]) <= max(ages[1]) and set(digests[2:]) <= verdicts)
