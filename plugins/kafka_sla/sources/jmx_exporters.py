"""The door to brokers' JMX exporters: their running totals of fetches, as facts (KIP-736).

An exporter that is down or shows something else is told in a note: the rest of a snapshot is worth having without it.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any

import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Exporter
from kafka_sla.model.tables import BROKER_REQUESTS, REPLICA_FETCHES
from kafka_sla.network.http_answers import NoAnswer, request_answer

log = logging.getLogger(__name__)

_TIMES_S = (3.0, 10.0)
"""To connect, and until all of the answer is there: no exporter must hold up a run of every five minutes."""
_MAX_BYTES = 16 * 1024**2
"""Size of an answer: an exporter that shows all metrics of a large broker takes a few MB."""
_AT_ONCE = 16
_TRIES = 4
"""How often an exporter is read that shows a request in some of its totals only."""
_MAX_VALUE = 1e19
"""Of any metric that is read: more than 300 years of waiting in nanoseconds."""
_MAX_COUNT = 2**53
_SKEW_S = 86_400
"""How far a broker's clock may be ahead of ours."""
_ID = re.compile(r"[0-9]{1,9}")
_HOW_TO = "docs/how-to/add-broker-metrics.md"

_REQUESTS, _MEAN_MS = "kafka_request_time_requests", "kafka_request_time_mean_ms"
_RESPONSES, _IO_WAIT_NS = "kafka_replica_fetcher_responses", "kafka_replica_fetcher_io_wait_ns"
_FETCHES, _PARTS = ("FetchFollower", "FetchConsumer"), ("Total", "Remote", "Local")
_STARTED = "process_start_time_seconds"
_WANTED = (_REQUESTS, _MEAN_MS, _RESPONSES, _IO_WAIT_NS, _STARTED)

Row = dict[str, Any]
Samples = Mapping[tuple[str, ...], float]
"""Values by metric and its labels' values, in the order of the labels' names."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """Facts that fit their table contracts."""

    broker_requests: pa.Table
    replica_fetches: pa.Table
    notes: tuple[str, ...]
    """Which exporters told nothing, and why, for people."""


class _Silent(Exception):
    """An exporter told nothing; the message says why."""


def scrape(cluster: Cluster) -> Scraped:
    """What all exporters of a cluster show now, read at once: the rows of one round have the same time. Whatever one of
    them answers costs only its own rows, with a note."""
    at = datetime.now(UTC)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="jmx_exporters") as threads:
        answers = list(threads.map(partial(_read_exporter, cluster.name, at), cluster.jmx_exporters))
    return Scraped(
        pa.concat_tables([arrow_rows(BROKER_REQUESTS, []), *(answer.broker_requests for answer in answers)]),
        pa.concat_tables([arrow_rows(REPLICA_FETCHES, []), *(answer.replica_fetches for answer in answers)]),
        tuple(note for answer in answers for note in answer.notes),
    )


def _read_exporter(cluster: str, at: datetime, exporter: Exporter) -> Scraped:
    """The rows of one exporter, or a note that says why there are none."""
    where = f"the JMX exporter of broker {exporter.broker} at {exporter.url}"
    try:
        samples = _consistent_samples(exporter)
        common = {"cluster": cluster, "at": at, "started_at": _started_at(samples, at)}
        requests_of, fetches = _broker_requests(exporter.broker, samples), _replica_fetches(exporter.broker, samples)
        return Scraped(
            arrow_rows(BROKER_REQUESTS, (common | row for row in requests_of)),
            arrow_rows(REPLICA_FETCHES, (common | row for row in fetches)),
            (),
        )
    except _Silent as silent:
        note = f"{where} {silent}"
    except Exception as error:
        log.warning("%s shows something that cannot be read", where, exc_info=True)
        note = f"{where} shows something that cannot be read ({type(error).__name__}); see the log"
    return Scraped(arrow_rows(BROKER_REQUESTS, []), arrow_rows(REPLICA_FETCHES, []), (note,))


def _consistent_samples(exporter: Exporter) -> Samples:
    """The wanted samples, read again while a request ended between two of them. Raises `_Silent` if they are wrong."""
    samples = _samples(_text(exporter.url))
    for _ in range(1, _TRIES):
        if _is_of_one_moment(samples):
            break
        samples = _samples(_text(exporter.url))
    _check(exporter.broker, samples)
    return samples


def _text(url: str) -> str:
    try:
        answer = request_answer("GET", url, _TIMES_S, max_bytes=_MAX_BYTES, params={"name[]": _WANTED})
    except NoAnswer as error:
        why = f"cannot be reached ({error})" if error.in_time else "does not answer in time"
        raise _Silent(
            f"{why}: fetch latency is unknown without it; check its address, the broker, the network"
        ) from error
    if answer.status != HTTPStatus.OK:
        raise _Silent(f"answers {answer.status}: correct its address; logins and redirects are not supported")
    return answer.text


def _samples(text: str) -> Samples:
    try:
        found = [s for family in text_string_to_metric_families(text) for s in family.samples if s.name in _WANTED]
    except ValueError as error:
        raise _Silent(f"shows no Prometheus metrics: correct its address ({_HOW_TO})") from error
    for sample in found:
        if math.isfinite(sample.value) and not 0 <= sample.value <= _MAX_VALUE:
            raise _Silent(f"shows the impossible value {sample.value:g} of {sample.name}: look at the exporter")
    return {
        (s.name, *(s.labels[label] for label in sorted(s.labels))): s.value for s in found if math.isfinite(s.value)
    }


def _check(broker: int, samples: Samples) -> None:
    if not any(True for _ in _broker_requests(broker, samples)):
        raise _Silent(f"shows no request metrics by the names that are read here: give it the rules of {_HOW_TO}")
    if any(row["leader"] == broker for row in _replica_fetches(broker, samples)):
        raise _Silent(
            f"shows fetches from broker {broker} itself: it belongs to another broker, correct `jmx_exporters`"
        )


def _is_of_one_moment(samples: Samples) -> bool:
    """No request ended while the broker's totals were read one after the other."""
    counts = ({samples.get((_REQUESTS, part, request)) for part in _PARTS} - {None} for request in _FETCHES)
    return all(len(one) <= 1 for one in counts)


def _started_at(samples: Samples, at: datetime) -> datetime | None:
    seconds = samples.get((_STARTED,))
    if seconds is None:
        return None
    if seconds > at.timestamp() + _SKEW_S:
        raise _Silent(f"shows a broker that starts in the future ({_STARTED} {seconds:g}): correct the broker's clock")
    return datetime.fromtimestamp(seconds, UTC)


def _broker_requests(broker: int, samples: Samples) -> Iterator[Row]:
    """Kafka shows means over all time; mean times count is the running total, of whole milliseconds.

    The count is that of one part: others may have been read a few requests later, on a busy broker.
    """
    for request in _FETCHES:
        count = samples.get((_REQUESTS, _PARTS[0], request))
        means = [samples.get((_MEAN_MS, part, request)) for part in _PARTS]
        if count is not None and None not in means:
            totals = (float(_count(_MEAN_MS, round(count * mean))) for mean in means if mean is not None)
            row = dict(zip(("total_ms", "remote_ms", "local_ms"), totals, strict=True))
            yield {"broker": broker, "request": request, "requests": _count(_REQUESTS, count)} | row


def _replica_fetches(broker: int, samples: Samples) -> Iterator[Row]:
    for (name, *labels), responses in samples.items():
        waited = samples.get((_IO_WAIT_NS, *labels))
        if name == _RESPONSES and waited is not None:
            fetcher, leader = (_label(name, label) for label in labels)
            totals = {"responses": _count(_RESPONSES, responses), "io_wait_ms": waited / 1e6}
            yield {"follower": broker, "leader": leader, "fetcher_thread": fetcher} | totals


def _count(name: str, value: float) -> int:
    """A running count, exact as a float."""
    if value > _MAX_COUNT:
        raise _Silent(f"shows the impossible value {value:g} of {name}: look at the exporter")
    return int(value)


def _label(name: str, text: str) -> int:
    if not _ID.fullmatch(text):
        raise _Silent(f"shows {name} with the label {text[:50]!r}, which is no number: give it the rules of {_HOW_TO}")
    return int(text)
