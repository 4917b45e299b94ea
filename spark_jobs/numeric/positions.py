"""Which commits are positions, and why the others are none. NumPy only.

A commit beyond the log end, or one that may belong to another life of a topic that was created again, says nothing of
where its group stands: from then on, until the next commit, nobody knows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark.job_spec import NEXT_POLL_US
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Ints
from kafka_sla.spark_jobs.numeric.produced_timeline import Timeline

VALID, BEYOND_END, OTHER_INCARNATION, BETWEEN_INCARNATIONS = range(4)
"""Whether a commit is a position: or it lies beyond the log end, or belongs to another life of its topic, for sure or
for all that anybody knows."""
BEYOND = "the committed offset is beyond the log end: it is no position, and the group has not committed since"
RECREATED = "the topic was created again and the group has not committed since"
AROUND = "the topic was created again around this time: which of its lives a position belongs to is not known"
REASONS = (None, BEYOND, RECREATED, AROUND)


def codes(reasons: pa.ChunkedArray) -> pa.ChunkedArray:
    """What `unknown_reason` of published rows says of their positions."""
    return pc.add(pc.fill_null(pc.index_in(reasons, pa.array(REASONS[1:])), -1), 1)


def checked(timeline: Timeline, partition: Ints, at: Ints, offset: Ints, code: Ints) -> tuple[Ints, Ints]:
    """Why each commit is no position (VALID: it is one), and from when on that is known (FAR: never).

    What a poll of the log end says soon after a commit counts from the commit on, what a later one says from then on.
    """
    epoch, soon, there = timeline.epoch_of(partition, at), at + NEXT_POLL_US, offset != NONE
    exceeded = np.where(there, timeline.exceeded(epoch, at, offset), FAR)
    between = np.where(there, timeline.between_incarnations(partition, at), FAR)
    why = np.where(exceeded < FAR, BEYOND_END, np.where(between < FAR, OTHER_INCARNATION, VALID))
    since = np.where(exceeded <= soon, at, np.where(exceeded < FAR, exceeded, np.maximum(between, at)))
    return np.where(code == VALID, why, np.minimum(code, OTHER_INCARNATION)), np.where(code == VALID, since, -FAR)
