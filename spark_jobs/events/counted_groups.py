"""Which groups of which topics have their unread records counted (KIP-490)."""

from __future__ import annotations

from collections.abc import Callable

from kafka_sla.spark.job_spec import Job


def counted_groups(job: Job) -> Callable[[str, str, str], bool]:
    """A test of cluster, group and topic: the groups that a topic's list names; of other topics those with an SLA."""
    listed = {
        (replay.cluster.name, topic): groups
        for replay in job.replays
        for topic, groups in replay.cluster.non_consumed_offsets_groups
    }

    def counted(cluster: str, group: str, topic: str) -> bool:
        if (cluster, topic) in listed:
            return group in listed[cluster, topic]
        return any(
            sla.cluster == cluster and sla.groups.matches(group) and sla.topics.matches(topic) for sla in job.slas
        )

    return counted
