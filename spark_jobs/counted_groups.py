"""Which groups of which topics have their unread records counted, as a condition in SQL. Knows no rows (KIP-490)."""

from __future__ import annotations

from kafka_sla.job import Job
from kafka_sla.model import Patterns, Sla


def counted_groups(job: Job) -> str:
    """The groups that a topic's list names; of other topics every group with an SLA."""
    listed = [
        (r.cluster.name, topic, groups) for r in job.replays for topic, groups in r.cluster.non_consumed_offsets_groups
    ]
    named = [f"cluster = {text(cluster)} AND topic = {text(topic)}" for cluster, topic, _ in listed]
    chosen = [f"{place} AND `group` IN ({', '.join(map(text, groups))})"
              for place, (_, _, groups) in zip(named, listed, strict=True) if groups]  # fmt: skip
    promised = [_promised(sla) for sla in job.slas]
    others = f"NOT ({any_of(named)}) AND ({any_of(promised)})"
    return any_of([*chosen, others])


def _promised(sla: Sla) -> str:
    return f"cluster = {text(sla.cluster)} AND {_matches('`group`', sla.groups)} AND {_matches('topic', sla.topics)}"


def _matches(column: str, patterns: Patterns) -> str:
    found, left_out = (
        [f"{column} RLIKE {text(f'^(?:{p})$')}" for p in some] for some in (patterns.include, patterns.exclude)
    )
    return f"({any_of(found)}) AND NOT ({any_of(left_out)})"


def any_of(conditions: list[str]) -> str:
    """True where one of them holds; never without any."""
    return " OR ".join(f"({one})" for one in conditions) or "false"


def text(value: str) -> str:
    """A text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
