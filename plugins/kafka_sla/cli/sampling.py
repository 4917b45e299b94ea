"""`kafka-sla sample`: one thread a cluster, until it is stopped. Polls nothing itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.progress import note, noting
from kafka_sla.errors import BadRequest
from kafka_sla.lake.lake import Lake
from kafka_sla.pipeline.sampling import Pace, sample


def sample_clusters(place: Workplace, names: Sequence[str], pace: Pace, lasting_s: float | None) -> int:
    """Samples these clusters (none named: all that have a connection); answers how many rows were landed."""
    settings = place.settings
    clusters = [settings.cluster(name) for name in names] or [c for c in settings.clusters if c.connection]
    logins = [(cluster, place.login(cluster.connection)) for cluster in clusters if cluster.connection]
    if not logins:
        raise BadRequest("no cluster to sample has a connection; name one with --cluster")
    Lake(place.store).check_writable()
    stop, say = threading.Event(), noting()
    with ThreadPoolExecutor(len(logins)) as pool:
        running = [pool.submit(sample, place.store, cluster, login, pace, stop, say) for cluster, login in logins]
        try:
            stop.wait(lasting_s)
        except KeyboardInterrupt:
            note("stopping: what was polled is landed first")
        stop.set()
        return sum(each.result() for each in running)
