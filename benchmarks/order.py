"""`python -m benchmarks.order HOURS RUNS KILLS [VARIANT …]`: do order, number or kills of runs change anything?

Runs the first HOURS of a day of facts in one run, and then the same in other ways, each into a store of its own, with
a reader that polls and a mailbox; prints a table as Markdown. Exit status 1 when a published row differs, a reader saw
half of an interval, or a mail was not told once. Knows the order of things only.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from benchmarks.order_day import CONFIGURATION, DAY, write_files
from benchmarks.order_kills import Killer, Kills
from benchmarks.order_stage import Stage, seen, stage
from benchmarks.order_table import Outcome, complaints, head, kill_table, line
from demo.object_store import ObjectStore, object_store
from kafka_sla.model.entities import Interval

_BEGAN = time.monotonic()
Files = list[tuple[str, Path]]
Act = Callable[[Stage, Files], None]


def main(hours: int, runs: int, kills: int, only: Sequence[str]) -> int:
    """Run the experiment; 1 when it shows that order matters."""
    with tempfile.TemporaryDirectory(prefix="kafka_sla-order-") as name:
        folder = Path(name)
        files = write_files(folder / "facts")
        whole, parts, every = _parts(hours, 1), _parts(hours, runs), _parts(hours, hours)
        lots = random.Random(7)  # noqa: S311
        variants: dict[str, tuple[Sequence[Interval], Act]] = {
            f"{runs} runs": (parts, lambda made, _: made.run(parts)),
            f"{runs} runs, backwards": (parts, lambda made, _: made.run(parts[::-1])),
            f"{runs} runs, four at once": (parts, lambda made, _: made.run(*(parts[n::4] for n in range(4)))),
            f"{hours} runs, shuffled": (every, lambda made, _: made.run(lots.sample(every, hours))),
            "twice": (every, lambda made, _: _twice(made, whole, every)),
        }
        landed: list[Kills] = []
        print(head(), flush=True)
        found = [_outcome(folder, files, "one run", whole, lambda made, _: made.run(whole))]
        for title, (intervals, act) in variants.items():
            if not only or title.split(", ")[-1] in only:
                found.append(_outcome(folder, files, title, intervals, act, found[0]))
        if not only or "late" in only:
            late = _late(files[1::2], every)
            outcome = _outcome(folder, files[::2], "half of the facts late", every, late, found[0])
            found.append(replace(outcome, more_mails=True))
        if kills and (not only or "kills" in only):
            found.append(_outcome(folder, files, f"{kills} kills", every, _killed(kills, every, landed), found[0]))
        if not only or "S3" in only:
            with object_store(folder / "objects") as there:
                plain, killed = lambda made, _: made.run(every), _killed(kills, every, landed)
                found.append(_outcome(folder, files, f"{hours} runs, on S3", every, plain, found[0], there))
                if kills:
                    found.append(_outcome(folder, files, f"{kills} kills, on S3", every, killed, found[0], there))
        for one in landed:
            print(kill_table(one))
    wrong = complaints(found)
    for text in wrong:
        _say(text)
    return int(bool(wrong))


def _parts(hours: int, count: int) -> list[Interval]:
    width = timedelta(hours=hours) / count
    return [Interval(DAY.start + n * width, DAY.start + (n + 1) * width) for n in range(count)]


def _outcome(
    folder: Path,
    files: Files,
    title: str,
    intervals: Sequence[Interval],
    act: Act,
    first: Outcome | None = None,
    objects: ObjectStore | None = None,
) -> Outcome:
    """Act out one variant, print its line and say what it left; `first`: what it is compared with."""
    began = time.monotonic()
    own = folder / title.replace(" ", "-").replace(",", "").lower()
    with stage(own, CONFIGURATION, intervals, objects=objects) as made:
        made.import_files(files)
        act(made, files)
        made.mark_complete()
        rows, mails = made.rows(), made.mails()
    found = Outcome(title, rows, mails, seen(made), timedelta(seconds=time.monotonic() - began))
    print(line(found, first or found), flush=True)
    return found


def _twice(made: Stage, whole: list[Interval], every: list[Interval]) -> None:
    """All at once, all at once again, and the hours on top."""
    made.run(whole)
    made.forget_journal()
    made.run([*whole, *every])


def _late(missing: Files, every: list[Interval]) -> Act:
    """The hours on half of the facts; then the others arrive, and the hours are run again, the last ones first."""

    def act(made: Stage, _: Files) -> None:
        made.run(every)
        made.mark_complete()
        made.import_files(missing)
        made.forget_journal()
        made.run(every[::-1])

    return act


def _killed(count: int, every: list[Interval], landed: list[Kills]) -> Act:
    def act(made: Stage, _: Files) -> None:
        killer = Killer(made, every, seed=count)
        landed.append(killer.run(count))
        killer.finish()

    return act


def _say(text: str) -> None:
    """Progress on standard error, so that standard output is the tables."""
    print(f"[{time.monotonic() - _BEGAN:5.0f} s] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
