"""The wire to one cluster for one pass: requests out, pipelined and to all brokers at once, answers or errors back.

A client serves one pass only: a long-lived one never finds its coordinators again after a rolling restart of the
brokers.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from struct import error as StructError
from types import TracebackType
from typing import Any

from kafka.errors import (
    AuthorizationError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
    ThrottlingQuotaExceededError,
    UnknownBrokerIdError,
    UnsupportedSaslMechanismError,
)

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.sources.kafka.login import kerberos
from kafka_sla.sources.kafka.login.client_config import client_configuration
from kafka_sla.sources.kafka.protocol.connection_errors import name_unresolved_broker, why_unreachable
from kafka_sla.sources.kafka.protocol.kafka_python import (
    BoundedConnectionManager,
    NetworkSelector,
    register_sasl_mechanism,
)
from kafka_sla.sources.kafka.protocol.kerberos_mechanism import KerberosMechanism

log = logging.getLogger(__name__)

IN_FLIGHT = 48
"""Requests that one broker is given before its first answer is awaited: one round trip then costs next to nothing."""
_KNOCK_S, _ANSWER_MS, _BOOTSTRAP_MS = 3, 5_000, 30_000
"""How long a cluster is tried that does not let us in, how long one broker may take to let us in (one that hangs
accepts connections and never answers), and how long it may then take to tell its fellows."""
_MAX_ANSWER_BYTES = 100 * 1024**2
"""As brokers bound requests by default (socket.request.max.bytes); decoding an answer takes a few times its size."""
_REQUEST_MS = 30_000
"""Kafka's own default: what is not answered by then is asked of the broker that has taken over."""
NONSENSE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, StructError, RecursionError)
"""What code raises that works with an answer which makes no sense: a null for a list, a number out of range."""
_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)
"""Errors that trying again does not cure."""
TAKE_OVER_S = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Pauses until another broker has taken over; together longer than the 9 s that a dead one is waited for by default."""
_PAUSE_MS, _PATIENCE_MS, _THROTTLED_S = 50, 10_000, 60.0
"""How long brokers are waited for that take no request: at a time, in the whole pass while they reconnect, and for one
request while a quota is used up: such a quota lets about one a second through, and the pass goes on."""

# At its usual levels the library logs every failed attempt, and in debug the configuration with its password.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

register_sasl_mechanism(kerberos.MECHANISM, KerberosMechanism, overwrite=True)


class QuotaUsedUp(ThrottlingQuotaExceededError):  # type: ignore[misc]
    """In place of what a broker withholds: it would answer after so many seconds."""

    message = "a quota of this client is used up; raise its consumer_byte_rate or request_percentage"
    retriable = False
    """Whoever gets this has waited long enough."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to one broker; `node` None means any broker."""

    node: int | None
    request: Any


class Client:
    """Open inside its `with` block; opening raises KafkaUnreachable with cause and cure."""

    def __init__(self, cluster: Cluster, connection: Connection) -> None:
        self.cluster, self.connection = cluster, connection
        self._configuration = {
            "client_id": "kafka-sla",
            **client_configuration(cluster.name, connection),
            "request_timeout_ms": _REQUEST_MS,
            "receive_message_max_bytes": _MAX_ANSWER_BYTES,
            # room above IN_FLIGHT for the client's own metadata requests: at its limit it refuses instead of waiting
            "max_in_flight_requests_per_connection": 2 * IN_FLIGHT,
            # its warnings about long steps mean nothing here: decoding 10,000 answers is one step
            "slow_task_threshold_secs": 0,
        }
        self._patience_ms = _PATIENCE_MS
        self._throttled_until = 0.0
        """As the last answers said."""
        self.waited_in_vain_s = 0.0
        """Seconds since a broker last let this pass have records, of those that it withholds."""
        self._net = NetworkSelector(**self._configuration)
        self._manager = BoundedConnectionManager(self._net, **self._configuration)

    def __enter__(self) -> Client:
        try:
            self._keep_to(self._manager.run(self._knock))
            self._manager.bootstrap(_BOOTSTRAP_MS)
        except Exception as error:  # whatever a peer that is no broker makes of the library
            self._close()
            raise self.unreachable(why_unreachable(self._configuration, error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections. An error that an answer without sense causes becomes KafkaUnreachable."""
        self._close()
        if isinstance(error, NONSENSE):
            raise self.nonsense(error) from error

    @property
    def brokers(self) -> list[int]:
        return sorted(int(broker.node_id) for broker in self._manager.cluster.brokers())

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The release that the broker's API versions belong to, such as (4, 3)."""
        return tuple(self._manager.broker_version)

    def versions(self, request: Any) -> tuple[int, int]:
        """Lowest and highest version of a request that the brokers say they answer; (0, -1): none."""
        known: dict[int, tuple[int, int]] = self._manager.broker_version_data.api_versions
        return known.get(request.API_KEY, (0, -1))

    def unreachable(self, cause: str) -> KafkaUnreachable:
        """The error for this cluster; `cause` says what happened and what to do."""
        return KafkaUnreachable(f"cluster {self.cluster.name!r} (connection {self.connection.id!r}): {cause}")

    def nonsense(self, error: BaseException) -> KafkaUnreachable:
        """The error for an answer that can be decoded and makes no sense; its details go to the log."""
        log.warning("An answer of cluster %s cannot be used", self.cluster.name, exc_info=error)
        return self.unreachable(
            f"what a broker answered cannot be used ({type(error).__name__}): check that bootstrap.servers names Kafka"
            " brokers and nothing between changes their answers; the log says more"
        )

    def ask(self, asks: Sequence[Ask]) -> list[Any]:
        """The answers in the order of the requests; a request that failed has its KafkaError in place of the answer."""
        answers: list[Any] = [None] * len(asks)
        by_node: dict[int | None, list[int]] = {}
        for index, ask in enumerate(asks):
            by_node.setdefault(ask.node, []).append(index)
        if asks:
            self._manager.run(self._ask_all, asks, by_node, answers)
        return answers

    def sleep(self, seconds: float) -> None:
        """Wait while connections stay alive."""
        self._manager.run(self._net.sleep, seconds)

    def pause(self, seconds: float) -> None:
        """Wait while connections stay alive, and look again which brokers there are."""
        self._manager.run(self._net_pause, seconds)

    def ask_one(self, request: Any, node: int | None = None) -> Any:
        """One answer; raises its KafkaError. Where any broker will do, one that fails is replaced by the next."""
        for left in reversed(range(max(1, len(self.brokers)) if node is None else 1)):
            (answer,) = self.ask([Ask(node, request)])
            if not isinstance(answer, KafkaError):
                break
            if not left or not answer.retriable:
                raise answer
        return answer

    async def _knock(self) -> str:
        """The address of a named broker that lets us in; the library's own way spends all its time on one that hangs,
        and tells no reason."""
        deadline = time.monotonic() + _KNOCK_S
        outcome: Exception = KafkaConnectionError("no broker is named")
        while True:
            for broker in self._manager.cluster.bootstrap_brokers():
                if (refusal := await self._reached(broker.node_id)) is None:
                    return f"[{broker.host}]:{broker.port}" if ":" in broker.host else f"{broker.host}:{broker.port}"
                outcome = refusal
            if isinstance(outcome, _REFUSALS) or time.monotonic() > deadline:
                raise outcome
            await self._net.sleep(0.3)

    def _keep_to(self, address: str) -> None:
        """Ask this broker, and no other of those named, who its fellows are."""
        if len(self._configuration["bootstrap_servers"]) == 1:
            return
        self._manager.close()
        self._manager = BoundedConnectionManager(self._net, **{**self._configuration, "bootstrap_servers": [address]})

    async def _reached(self, node: str) -> Exception | None:
        """None when this broker let us in, else why not."""
        opened = self._manager.get_connection(node, _ANSWER_MS, pop_on_close=True, refresh_metadata_on_err=False)
        try:
            await self._manager.wait_for(opened.init_future, _ANSWER_MS)  # for the library bounds no TLS handshake
        except Exception as error:
            opened.close()
            return error
        return None

    async def _net_pause(self, seconds: float) -> None:
        """A broker that does not answer is left alone by the library for a while, so that another one is asked next."""
        await self._net.sleep(seconds)
        for left in reversed(range(len(self.brokers))):
            try:
                await self._manager.cluster.refresh_metadata()
                return
            except KafkaError:
                if not left:
                    raise

    async def _ask_all(self, asks: Sequence[Ask], by_node: dict[int | None, list[int]], answers: list[Any]) -> None:
        running = [
            self._manager.call_soon(self._ask_node, node, [(i, asks[i].request) for i in indexes], answers)
            for node, indexes in by_node.items()
        ]
        for each in running:
            await each

    async def _ask_node(self, node: int | None, requests: list[tuple[int, Any]], answers: list[Any]) -> None:
        in_flight: deque[tuple[int, Any, Any]] = deque()
        for index, request in requests:
            if len(in_flight) >= IN_FLIGHT:
                await self._take_next(node, answers, in_flight)
            in_flight.append((index, request, self._send(node, request)))
        while in_flight:
            await self._take_next(node, answers, in_flight)

    async def _take_next(self, node: int | None, answers: list[Any], in_flight: deque[tuple[int, Any, Any]]) -> None:
        """Await the answer to the oldest request. Where it says that a broker reads nothing more of this connection for
        longer than an answer is waited for, so do those to the others, and what follows is asked on another one."""
        first, request, sent = in_flight.popleft()
        await self._take(node, answers, first, request, sent)
        seconds = _throttled_s(answers[first])
        if node is not None and seconds * 1_000 > _REQUEST_MS:
            for index, _, _ in in_flight:
                answers[index] = QuotaUsedUp(seconds)
            in_flight.clear()
            self._manager.close(node)

    async def _take(self, node: int | None, answers: list[Any], index: int, request: Any, sent: Any) -> None:
        """Await one answer; what a throttled or reconnecting broker would not take is sent again, with patience."""
        answers[index], deadline = await self._outcome(node, sent), time.monotonic() + _THROTTLED_S
        while isinstance(answers[index], NodeNotReadyError) and self._may_wait(answers[index], deadline):
            await self._net.sleep(_PAUSE_MS / 1_000)
            answers[index] = await self._outcome(node, self._send(node, request))

    def _may_wait(self, refused: NodeNotReadyError, deadline: float) -> bool:
        """Whether to send again; for a broker that reconnects this uses up the pass's patience."""
        now = time.monotonic()
        if now < self._throttled_until or "throttle" in str(refused):
            return now < deadline
        self._patience_ms -= _PAUSE_MS
        return self._patience_ms >= 0

    async def _outcome(self, node: int | None, sent: Any) -> Any:
        """What became of a sent request: its answer, or its error as a value."""
        if isinstance(sent, KafkaError):
            return sent
        try:
            answer = await self._manager.wait_for(sent, _REQUEST_MS + 1_000)
            throttled_s = min(_throttled_s(answer), _REQUEST_MS / 1_000)
            self._throttled_until = max(self._throttled_until, time.monotonic() + throttled_s)
            return answer
        except KafkaTimeoutError as error:
            if node is not None:
                self._manager.close(node)  # what waits for the same connection, which may never come about, fails too
            return error
        except KafkaError as error:
            return self._name_unresolved_broker(node, error)
        except Exception as error:
            log.warning("An answer of cluster %s cannot be decoded", self.cluster.name, exc_info=True)
            return KafkaProtocolError(f"an answer cannot be decoded ({type(error).__name__})")

    def _name_unresolved_broker(self, node: int | None, error: KafkaError) -> KafkaError:
        brokers = self._manager.cluster.brokers()
        return name_unresolved_broker(error, [one for one in brokers if node in (None, one.node_id)])

    def _send(self, node: int | None, request: Any) -> Any:
        try:
            return self._manager.send(request, node_id=node)
        except UnknownBrokerIdError:
            return LeaderNotAvailableError(f"broker {node} is not there now")  # another will take over
        except KafkaError as error:
            return error

    def _close(self) -> None:
        self._manager.close()
        self._net.close()


def _throttled_s(answer: Any) -> float:
    """How long the broker reads nothing more of the connection that this came on."""
    return float(getattr(answer, "throttle_time_ms", 0)) / 1_000
