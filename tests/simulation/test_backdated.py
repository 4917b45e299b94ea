"""Records of long ago that are written while nothing else is, as a back-fill does at night: answers for times skip
them, so that they look as if they had been there since the last record before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation import kernel
from benchmarks.simulation.facts import facts
from benchmarks.simulation.seeing import Plan, Run
from benchmarks.simulation.world import BASE, CLUSTER, NEVER, Commit, Life, Partition, Reader, TopicConfig, World
from kafka_sla.model.entities import Interval, Patterns, Sla, SteadyState
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.evaluate import judge

SECOND, MINUTE = 1_000, 60_000
END = BASE + 30 * MINUTE
SILENT = range(BASE + 14 * MINUTE, BASE + 20 * MINUTE)
WRITTEN = BASE + 16 * MINUTE
SLA = Sla("within 30 s", CLUSTER, Patterns(), Patterns(), 30_000, 300_000, 0.999, SteadyState(30_000))


def back_filled(age_ms: int) -> World:
    """A record each second but for six minutes, in which fifty come at once that are so old; all are read and committed
    within five seconds."""
    live = np.array([at for at in range(BASE + 500, END, SECOND) if at not in SILENT])
    old = WRITTEN + np.arange(50) * 200
    appended = np.sort(np.concatenate([live, old]))
    stamp = np.where(np.isin(appended, old), appended - age_ms, appended)
    count, nothing = len(appended), np.zeros(0, np.int64)
    life = Life(
        born=BASE - 1,
        died=NEVER,
        topic_id="id",
        appended=appended,
        stamp=stamp,
        visible=appended,
        record=np.ones(count, bool),
        marker=np.zeros(count, bool),
        removed=np.full(count, NEVER),
        moved_at=nothing,
        moved_to=nothing,
    )
    partition = Partition("orders.eu-west-1", 0, (life,))
    commits = tuple(Commit(at, life.log_end(at), 0) for at in range(BASE + 5 * SECOND, END, 5 * SECOND))
    topics = (TopicConfig("orders.eu-west-1", "delete", None, False, False),)
    return World(1, BASE, END, MINUTE, topics, (partition,), (Reader("pay-v2", partition, commits),), ())


def verdicts(world: World, folder: Path) -> str:
    """A letter a minute, of all of it measured at once from what runs of five minutes landed; small: not certain."""
    runs = tuple(Run(at, at + 5 * MINUTE, at + 5 * MINUTE + 400, True) for at in range(BASE, END, 5 * MINUTE))
    known = facts(world, Plan(runs, 250, MINUTE, 200_000, True, 0, (), (), False, ()))
    rows = kernel.measured(folder, known, BASE, END, MINUTE, (SLA,))
    span = Interval(kernel.at(BASE), kernel.at(END))
    judged = judge(SLA, span, MINUTE, rows[CONSUMER_LATENCY], rows[STEADY_STATE])
    return "".join(w.verdict[0].upper() if w.is_certain else w.verdict[0] for w in judged)


@pytest.mark.parametrize("age_ms", [10 * MINUTE, 3 * 365 * 1440 * MINUTE], ids=["ten minutes", "three years"])
def test_what_nobody_can_know_of_them_is_unknown_and_all_else_as_it_was(age_ms: int, tmp_path: Path) -> None:
    assert verdicts(back_filled(age_ms), tmp_path) == "e" + 13 * "G" + 6 * "u" + 10 * "G"
