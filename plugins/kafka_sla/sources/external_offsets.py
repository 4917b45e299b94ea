"""All positions of a cluster's consumers that are not in its commit log, gathered through their doors. Reads no log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from kafka_sla.config.settings import Settings
from kafka_sla.errors import KafkaSlaError, SettingsError
from kafka_sla.model.entities import Checkpoint, Cluster, Connection, Interval, KeptPosition, ReplicationFlow, epoch_ms
from kafka_sla.model.position_values import check_position
from kafka_sla.sources.spark_checkpoints import read_checkpoint

log = logging.getLogger(__name__)

Login = Callable[[str], Connection]
"""An Airflow connection's id → the connection."""
_LOOK_BACK = timedelta(hours=1)
"""As for commits: what was seen shortly before an interval may land with it."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    positions: tuple[KeptPosition, ...]
    notes: tuple[str, ...]
    """What could not be read and why, for people: it costs only its own rows."""


def positions_elsewhere(
    settings: Settings, cluster: Cluster, login: Login, interval: Interval, *, live: bool
) -> Elsewhere:
    """Positions of the cluster's replication flows and checkpoints in the interval and shortly before it.

    `live` also reads what is there now; without it the answer depends on the logs alone. Whatever a source answers
    costs only the positions of that source, with a note.
    """
    start, end = epoch_ms(interval.start - _LOOK_BACK), None if live else epoch_ms(interval.end)
    positions: list[KeptPosition] = []
    notes: list[str] = []
    kept: tuple[ReplicationFlow | Checkpoint, ...] = (*cluster.replication, *cluster.checkpoints)
    for one in kept:
        try:
            read = _read(settings, one, login, start, end)
            for position in read:
                check_position(position)
            positions += read
        except SettingsError:
            raise
        except KafkaSlaError as error:
            notes.append(str(error))
        except ValueError as error:
            notes.append(f"{_name(one)} has an impossible value: {error}; none of its positions are used")
        except Exception as error:
            log.warning("%s has an answer that cannot be read", _name(one), exc_info=True)
            notes.append(f"{_name(one)} has an answer that cannot be read ({type(error).__name__}); see the log")
    return Elsewhere(tuple(positions), tuple(notes))


def _name(source: ReplicationFlow | Checkpoint) -> str:
    if isinstance(source, Checkpoint):
        return f"checkpoint {source.path} of group {source.group!r}"
    return f"replication flow {source.name!r}"


def _read(
    settings: Settings, one: ReplicationFlow | Checkpoint, login: Login, start: int, end: int | None
) -> list[KeptPosition]:
    if isinstance(one, Checkpoint):
        return read_checkpoint(one, start, end)
    if one.connect:
        return _ask_connect(one, login(one.connect)) if end is None else []
    return _read_topic(settings, one, login, start, end)


def _ask_connect(flow: ReplicationFlow, connection: Connection) -> list[KeptPosition]:
    from kafka_sla.sources import connect_rest

    return connect_rest.read_flow(flow, connection)


def _read_topic(
    settings: Settings, flow: ReplicationFlow, login: Login, start: int, end: int | None
) -> list[KeptPosition]:
    from kafka_sla.sources.kafka.mm2_offsets import read_flow

    target = settings.cluster(flow.target)
    assert target.connection, "the configuration's rules see to it"
    return read_flow(flow, target, login(target.connection), start, end)
