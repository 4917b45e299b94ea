"""`kafka-sla sample`: one thread a cluster, until it is stopped. Polls nothing itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.progress import note, noting, warn
from kafka_sla.errors import BadRequest, KafkaUnreachable
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster
from kafka_sla.pipeline.sampling import Look, Pace, sample
from kafka_sla.sources.unseen_clusters import Sight, blindness


def sample_clusters(place: Workplace, names: Sequence[str], pace: Pace, lasting_s: float | None) -> int:
    """Samples these clusters (none named: all that have a connection); answers how many rows were landed. When one
    fails, all are stopped; KafkaUnreachable in the end where no sample of one succeeded."""
    settings = place.settings
    clusters = [settings.cluster(name) for name in names] or [c for c in settings.clusters if c.connection]
    logins = [(cluster, place.login(cluster.connection)) for cluster in clusters if cluster.connection]
    if not logins:
        raise BadRequest("no cluster to sample has a connection; name one with --cluster")
    Lake(place.store).check_writable()
    stop, say, sampled = threading.Event(), noting(), set[str]()
    with ThreadPoolExecutor(len(logins)) as pool:
        running = [
            pool.submit(sample, place.store, cluster, login, pace, stop, say, _look(place, cluster, sampled), warn)
            for cluster, login in logins
        ]
        try:
            wait(running, lasting_s, FIRST_EXCEPTION)
        except KeyboardInterrupt:
            note("stopping: what was polled is landed first")
        stop.set()
        landed = sum(each.result() for each in running)
    _check_sampled([cluster.name for cluster, _ in logins if cluster.name not in sampled])
    return landed


def _check_sampled(never: Sequence[str]) -> None:
    if never:
        raise KafkaUnreachable(
            f"no sample of {', '.join(never)} succeeded, for the reasons above; see what `kafka-sla check` says, and"
            " run it again"
        )


def _look(place: Workplace, cluster: Cluster, sampled: set[str]) -> Look:
    def look(found: Sight) -> None:
        sampled.add(cluster.name)
        for text in blindness(place.settings, cluster, place.login, found):
            warn(f"cluster {cluster.name}: {text}")

    return look
