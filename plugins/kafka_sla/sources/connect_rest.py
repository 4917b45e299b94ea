"""The door to Connect's REST endpoint: how far a source connector has copied."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from kafka_sla.errors import ConnectUnreachable
from kafka_sla.model.entities import Connection, KeptPosition, ReplicationFlow, epoch_ms
from kafka_sla.model.position_values import MAX_INT, MAX_OFFSET, whole_number
from kafka_sla.network import http_extra
from kafka_sla.network.http_answers import Answer, NoAnswer, request_answer

SOURCE = "connect_rest"
_MAX_BYTES = 16 * 1024**2
"""Size of an answer: the offsets of 100,000 partitions take about 12 MB."""
_TIMES_S = (5, 20)
"""To be let in, and to be answered: a worker that rebalances answers late."""


class _NotConnect(Exception):
    """The answer is not the one that Connect gives."""


def read_flow(flow: ReplicationFlow, connection: Connection) -> list[KeptPosition]:
    """Where the flow stands now, as Connect's stored source offsets say. Raises ConnectUnreachable with the cure."""
    address = f"{_address(connection)}/connectors/{quote(flow.connector, safe='')}/offsets"
    login = (connection.login, connection.password or "") if connection.login else None
    try:
        how = http_extra.read(connection.extra)
    except ValueError as error:
        raise _unreachable(flow, connection, str(error)) from None
    try:
        answer = request_answer(
            "GET", address, _TIMES_S, max_bytes=_MAX_BYTES, **how, **({"auth": login} if login else {})
        )
        if not answer.is_success:
            raise _unreachable(flow, connection, _refusal(answer.status))
        at = epoch_ms(datetime.now(UTC))
        return list(_positions(flow, _offsets(answer), at))
    except NoAnswer as error:
        raise _unreachable(flow, connection, f"{error}; correct the connection") from None
    except _NotConnect:
        raise _unreachable(flow, connection, "what answers is no Connect worker; correct the connection") from None
    except (ValueError, LookupError, TypeError) as error:
        raise _unreachable(flow, connection, f"it shows an offset that cannot be: {error}") from None


def _offsets(answer: Answer) -> list[dict[str, Any]]:
    try:
        content = answer.json()
    except ValueError:
        raise _NotConnect from None
    offsets = content.get("offsets") if isinstance(content, dict) else None
    if not isinstance(offsets, list):
        raise _NotConnect
    return offsets


def _address(connection: Connection) -> str:
    """Airflow's HTTP connections may carry the scheme in the host or in the schema."""
    host = connection.host or "localhost"
    if "://" not in host:
        host = f"{connection.schema or 'http'}://{host}"
    return f"{host}:{connection.port}" if connection.port else host


def _positions(flow: ReplicationFlow, told: list[dict[str, Any]], at: int) -> Iterator[KeptPosition]:
    for entry in told:
        where, offset = entry["partition"], entry["offset"]
        if flow.topics.matches(str(where["topic"])):
            position = None if offset is None else whole_number(offset["offset"], MAX_OFFSET - 1) + 1
            partition = whole_number(where["partition"], MAX_INT)
            yield KeptPosition(flow.name, where["topic"], partition, at, position, SOURCE)


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"the login is refused ({status}); correct login and password of the connection"
    if status == 404:
        return (
            "there is no such connector, or MirrorMaker runs in its dedicated mode, whose REST shows no offsets (404);"
            " correct the connector's name, or leave connect out to read the offsets topic"
        )
    if 300 <= status < 400:
        return f"it redirects ({status}), which is not followed; name the worker's own address in the connection"
    return f"it answered {status}; check the worker's log"


def _unreachable(flow: ReplicationFlow, connection: Connection, cause: str) -> ConnectUnreachable:
    return ConnectUnreachable(
        f"Connect (connection {connection.id!r}), connector {flow.connector!r} of flow {flow.name!r}: {cause}"
    )
