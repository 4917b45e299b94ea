"""What to do about a cause, as a sentence or two with the commands that help."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from kafka_sla.sla.root_cause.classify import Cause, Evidence
from kafka_sla.text.formatting import span

_SERVER = "--bootstrap-server BROKER:9092"


def remediation(e: Evidence) -> str | None:
    """What to do about the cause of a miss; None where the evidence does not show it."""
    rule = _REMEDIATIONS.get(e.cause)
    return rule(e) if rule else None


def _open_transaction(e: Evidence) -> str:
    transaction = e.open_transaction
    assert transaction is not None
    place = f"--topic {shlex.quote(e.topic)} --partition {transaction.partition}"
    steps = [
        f"Find it: kafka-transactions.sh {_SERVER} find-hanging {place}.",
        f"Abort it: kafka-transactions.sh {_SERVER} abort {place} --start-offset {transaction.start_offset}.",
    ]
    if transaction.transactional_id:
        named = f"--transactional-id {shlex.quote(transaction.transactional_id)}"
        steps.insert(1, f"See its state: kafka-transactions.sh {_SERVER} describe {named}.")
    return " ".join(steps)


def _produced_late(e: Evidence) -> str:
    return (
        f"Check the producers of {e.topic}, what buffers records before them, and their clocks. To judge the consumer"
        " alone, remove latency_from: created from the SLA."
    )


def _left_topic(e: Evidence) -> str:
    names = f"--group {shlex.quote(e.group)} --topic {shlex.quote(e.topic)}"
    return (
        f"If that is intended, exclude {e.topic} in the SLA, or delete the group's offsets:"
        f" kafka-consumer-groups.sh {_SERVER} --delete-offsets {names}. Otherwise subscribe the group to {e.topic}"
        " again."
    )


def _no_position(e: Evidence) -> str:
    return (
        f"Check that a member of group {e.group} is assigned to the partition. If the group leaves partitions out on"
        " purpose, set partitions: committed in the SLA."
    )


def _one_record_waiting(e: Evidence) -> str:
    return (
        "If the client commits the offset of the last record instead of the next one, set allowed_lag: 1 in the SLA, or"
        " correct the client."
    )


def _commits_rarely(e: Evidence) -> str:
    return f"Set max_latency to more than {span(e.commit_spacing_ms)}, or make the consumer commit more often."


def _not_catching_up(e: Evidence) -> str:
    if e.stood_still:
        return f"Check the members of group {e.group} and their logs; restart the ones that hang."
    return (
        f"Add members to group {e.group}, or speed up its processing; partitions of {e.topic} limit how many can read."
    )


_REMEDIATIONS: dict[Cause, Callable[[Evidence], str]] = {
    "open_transaction": _open_transaction,
    "produced_late": _produced_late,
    "left_topic": _left_topic,
    "no_position": _no_position,
    "one_record_waiting": _one_record_waiting,
    "commits_rarely": _commits_rarely,
    "not_catching_up": _not_catching_up,
}
