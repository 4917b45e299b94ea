"""Runs all stories at once as a user would: one configuration, one `import`, some `run`s, and what they publish."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from email.message import EmailMessage
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.mailbox import Mailbox, mailbox
from kafka_sla.cli.main import main
from tests.stories.clock import format_instant, parse_time
from tests.stories.facts import write_facts
from tests.stories.world import World

DEFAULTS = {
    "max_latency": "60s",
    "for": "5m",
    "objective": "99%",
    "period": "day",
}
WHOLE = (format_instant(0), format_instant(parse_time("11:00")))


@dataclass(frozen=True)
class Window:
    verdict: str
    reason: str
    is_certain: bool


@dataclass
class Outcome:
    """What kafka-sla says of one story."""

    windows: dict[str, Window] = field(default_factory=dict)
    """By minute."""
    misses: list[dict[str, Any]] = field(default_factory=list)
    """As `misses --json` prints them, oldest first."""
    mails: list[EmailMessage] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)
    """As `status --json` prints it of the SLA."""
    figures: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcomes:
    """What kafka-sla says of all stories, and what its runs print."""

    stories: Mapping[str, Outcome]
    printed: str


def run_stories(
    folder: Path, worlds: Sequence[World], edges: Sequence[str] = WHOLE, *, notify: bool = True
) -> Outcomes:
    """Import the facts of all worlds into a new store, run from edge to edge, and read what was published.

    Mails go to a mail server of its own; each story's SLA has its own recipient.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kafka_sla.yml").write_text(write_configuration(worlds))
    log, commits = write_facts(folder, worlds)
    command = Command(folder)
    with mailbox(folder / "mails") as box, _smtp(box.port):
        printed = command.run("import", "--log-offsets", str(log), "--committed-offsets", str(commits))
        for begin, end in pairwise(edges):
            printed += command.run("run", "--from", begin, "--to", end, *(["--notify"] if notify else []))
    (folder / "printed.txt").write_text(printed)
    return read_outcomes(folder, [world.name for world in worlds])


def read_outcomes(folder: Path, names: Sequence[str]) -> Outcomes:
    """What the runs of `run_stories` in this folder published, mailed and printed."""
    command, outcomes = Command(folder), {name: Outcome() for name in names}
    _read_windows(command, outcomes)
    _read_status(command, outcomes)
    for miss in json.loads(command.run("misses", "--json")):
        outcomes[miss["sla"]].misses.append(miss)
    for mail in Mailbox(folder / "mails").mails():
        outcomes[str(mail["To"]).partition("@")[0]].mails.append(mail)
    return Outcomes(outcomes, (folder / "printed.txt").read_text())


def write_configuration(worlds: Sequence[World]) -> str:
    """A cluster and an SLA for each story."""
    slas = [
        {
            "name": world.name,
            "cluster": world.name,
            "groups": sorted({group.name for group in world.groups}),
            "topics": sorted({group.topic.name for group in world.groups}),
            "recipients": [_recipient(world.name)],
            **world.sla,
        }
        for world in worlds
    ]
    configuration = {"clusters": {world.name: {} for world in worlds}, "defaults": DEFAULTS, "slas": slas}
    return yaml.safe_dump(configuration, sort_keys=False)


def _recipient(name: str) -> str:
    return f"{name}@example.com"


@contextmanager
def _smtp(port: int) -> Iterator[None]:
    extra = {"from_email": "kafka-sla@example.com", "disable_ssl": True, "disable_tls": True}
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield


@dataclass(frozen=True)
class Command:
    """`kafka-sla` with the configuration and the store of one folder."""

    folder: Path

    def run(self, command: str, *arguments: str) -> str:
        """What it prints. Fails with that if its exit code is not 0."""
        out, errors = io.StringIO(), io.StringIO()
        where = ["--config", str(self.folder / "kafka_sla.yml"), "--store", str(self.folder / "store")]
        with redirect_stdout(out), redirect_stderr(errors):
            code = main([command, *where, *arguments])
        assert code == 0, f"kafka-sla {command} ended with {code}:\n{out.getvalue()}{errors.getvalue()}"
        return out.getvalue() + (errors.getvalue() if command == "run" else "")


def _read_windows(command: Command, outcomes: Mapping[str, Outcome]) -> None:
    path = command.folder / "sla_windows.csv"
    command.run("export", "sla_windows", "--from", WHOLE[0], "--to", WHOLE[1], "--output", str(path))
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            minute = row["window_start"][11:16]
            window = Window(row["verdict"], row["reason"], row["is_certain"] == "true")
            outcomes[row["sla"]].windows[minute] = window


def _read_status(command: Command, outcomes: Mapping[str, Outcome]) -> None:
    printed = json.loads(command.run("status", "--json"))
    for row in printed["slas"]:
        outcomes[row["sla"]].status = row
        outcomes[row["sla"]].figures["attainment"] = row["attainment"]
    for row in printed["clusters"]:
        outcomes[row["cluster"]].figures["coverage"] = row["coverage"]
