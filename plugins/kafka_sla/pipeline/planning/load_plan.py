"""What one load must read: which facts, from when on, and which published rows it carries over. Starts no Spark.

Rows that were published for the window before stand for all facts before it, as long as nothing older has landed since
and the rules of the steady state are the same. Otherwise the facts are replayed from the beginning: all of them, or
those of the topics of an SLA that is new or has other rules.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain

import pyarrow.compute as pc

from kafka_sla.config.settings import Settings
from kafka_sla.errors import DamagedFile
from kafka_sla.lake.iceberg import FileRows
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.configurations import Rules
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    FACTS,
    LOG_OFFSETS,
    METRICS,
    RECORD_RANGES,
    TOPIC_CONFIGS,
    Table,
)
from kafka_sla.parquet_files import verify
from kafka_sla.pipeline.planning.lookback import read_since
from kafka_sla.pipeline.planning.unknown_slas import older_facts, topics_of
from kafka_sla.spark.job_spec import (
    CHAIN_MARGIN,
    NEXT_POLL,
    Carried,
    Job,
    Replay,
    chain_reach,
    longest_expiry,
    measured_cluster,
)

_MARGIN = timedelta(minutes=15)
"""Points kept before the oldest unread record: the nearest poll, and a slope to prolong, lie within it."""
_WIDEST_WINDOW = timedelta(minutes=5)
_LAST_SEEN = timedelta(hours=1)
"""How far back states, configurations and broker totals are read, so that the ones before the interval are known."""
_CUT = {COMMITTED_OFFSETS.name, *(table.name for table in METRICS)}
"""Tables of whose files only rows of the time that is asked for are measured with."""
_Files = dict[str, dict[str, FileRows]]
"""By table and path."""


def job_for(settings: Settings, lake: Lake, ledger: Ledger, interval: Interval, clusters: Sequence[str]) -> Job:
    """The job that measures `interval` for these clusters."""
    lake.make_tables()
    slas = tuple(s for s in settings.slas if s.cluster in clusters)
    seqs = {name: _adopted(ledger, name, rules_of(settings.cluster(name), slas)) for name in clusters}
    replays, since = [], []
    is_whole = cache(partial(_is_whole, lake))  # of several clusters most have one load
    for name in clusters:
        carried, unknown = _carried(ledger, name, interval, settings.window_ms, is_whole)
        new = [sla for sla in slas if sla.cluster == name and sla.name in unknown]
        anew = topics_of(new, lake, name, carried, interval, settings.window_ms) if carried else ()
        replays.append(Replay(measured_cluster(settings.cluster(name)), carried, anew=anew))
        thresholds = [sla.max_latency_ms for sla in slas if sla.cluster == name]
        since.append(_since(lake, name, carried, interval, settings.window_ms, max(thresholds, default=0)))
    start = None if None in since else min(t for t in (*since, _chained_since(slas, interval)) if t)
    load_id = uuid.uuid4().hex
    facts = _facts(lake, start, replays, slas, interval)
    carried_over = dict.fromkeys(r.carried for r in replays if r.carried)
    carry = {t.name: _all(_carry_files(lake, t, one) for one in carried_over) for t in METRICS}
    anew_by_cluster = {replay.cluster.name: replay.anew for replay in replays}
    older = older_facts(lake, anew_by_cluster, facts, interval.end + NEXT_POLL)
    rows, again = _rows(facts | carry), sum(one.rows for groups in older.values() for one in groups)
    return Job(
        load_id=load_id,
        interval=interval,
        window_ms=settings.window_ms,
        replays=tuple(replays),
        slas=tuple(sla.measured for sla in slas),
        facts=_paths(facts),
        carry=_paths(carry),
        output=lake.stage_dir(load_id),
        facts_seq=seqs,
        input_rows=rows.all + again,
        measured_rows=rows.inside + again,
        older=older,
    )


def replay_of(settings: Settings, lake: Lake, interval: Interval, cluster: str, topics: Patterns) -> Job:
    """The job of a replay from the beginning of what is stored of these topics, for who only supposes SLAs: it has no
    place for its rows, and nothing is written."""
    own = replace(measured_cluster(settings.cluster(cluster)), topics=topics)
    replays = (Replay(own, None),)
    facts = _facts(lake, None, replays, (), interval)
    return Job(
        "",
        interval,
        settings.window_ms,
        replays,
        (),
        _paths(facts),
        {},
        lake.stage_dir(""),
        {},
        *_rows(facts),
    )


def _facts(
    lake: Lake, log_since: datetime | None, replays: Sequence[Replay], slas: Sequence[Sla], interval: Interval
) -> _Files:
    return {
        t.name: lake.counted_fact_files(t, _from(t.name, log_since, replays, slas, interval), _until(t.name, interval))
        for t in FACTS
    }


def _paths(files: _Files) -> dict[str, list[str]]:
    return {table: list(counted) for table, counted in files.items()}


def _rows(files: _Files) -> FileRows:
    """Of all files together; inside are those that are measured with: of facts that tell what stood before, all."""
    found = [(name in _CUT, rows) for name, of_table in files.items() for rows in of_table.values()]
    return FileRows(
        sum(rows.all for _, rows in found), sum(rows.inside if is_cut else rows.all for is_cut, rows in found)
    )


def rules_of(cluster: Cluster, slas: Sequence[Sla]) -> Rules:
    """Digests that change when anything that is carried over may come out differently: steady states, evaluated
    commits, totals."""
    own = sorted((s for s in slas if s.cluster == cluster.name), key=lambda s: s.name)
    rules = [
        (s.name, s.groups, s.topics, s.max_latency_ms, s.steady_state, s.allowed_lag, s.partitions, s.latency_from)
        for s in own
    ]
    status = (cluster.status.commits, cluster.status.expire_group_ms)
    counted = sorted(cluster.non_consumed_offsets_groups)
    expire = longest_expiry([sla.measured for sla in own])
    return Rules(
        _digest((rules, status, counted)), _digest((status, counted, expire)), {of[0]: _digest(of) for of in rules}
    )


def _digest(rules: object) -> str:
    return hashlib.sha256(repr(rules).encode()).hexdigest()


def _adopted(ledger: Ledger, cluster: str, rules: Rules) -> int:
    """Measure by these rules; answers the newest landing of facts that is readable under them."""
    adopt = partial(ledger.rule_versions.adopt, cluster, rules)
    adopt()
    seq = ledger.ingestions.readable_seq(cluster)
    while adopt():  # a run by another configuration came between
        seq = ledger.ingestions.readable_seq(cluster)
    return seq


def _carried(
    ledger: Ledger, cluster: str, interval: Interval, window_ms: int, is_whole: Callable[[Carried], bool]
) -> tuple[Carried | None, frozenset[str]]:
    """The published window that the replay may begin after, that of the newest load whose files are whole; and the SLAs
    that it does not know."""
    before = interval.start
    while found := ledger.publications.carry(cluster, before, window_ms):
        at, facts_seq = found
        window = Interval(at - timedelta(milliseconds=window_ms), at)
        slices = ledger.publications.slices([cluster], window)
        if not slices:
            break
        carried = Carried(at, slices[-1].load_id)
        if is_whole(carried):
            return carried, ledger.rule_versions.unknown_to(cluster, facts_seq)
        before = ledger.publications.start_of([carried.load_id]) or window.start
    return None, frozenset()


def _carry_files(lake: Lake, table: Table, carried: Carried) -> dict[str, FileRows]:
    """The files that may hold the carried rows: a load of a whole day has one for each hour. Each with its rows."""
    return lake.counted_metric_files([carried.load_id], table, Interval(carried.at - _WIDEST_WINDOW, carried.at))


def _all(files: Iterable[Mapping[str, FileRows]]) -> dict[str, FileRows]:
    return dict(chain.from_iterable(counted.items() for counted in files))


def _is_whole(lake: Lake, carried: Carried) -> bool:
    """Can all that may be carried over be read? Histograms never are."""
    try:
        for table in METRICS:
            columns = [name for name in table.names if name != "latency_histogram"]
            verify(list(_carry_files(lake, table, carried)), columns)
    except DamagedFile:
        return False
    return True


def _since(
    lake: Lake, cluster: str, carried: Carried | None, interval: Interval, window_ms: int, longest_threshold_ms: int
) -> datetime | None:
    """From when on the points of a cluster are read; None: from the beginning."""
    if carried is None:
        return None
    oldest = _oldest_needed(lake, cluster, carried, window_ms, longest_threshold_ms)
    return read_since(lake, cluster, carried, interval, window_ms, oldest)


def _oldest_needed(lake: Lake, cluster: str, carried: Carried, window_ms: int, longest_threshold_ms: int) -> datetime:
    """Produced time of the oldest record that a group had not read at the carry-over, or that becomes due after it,
    less a margin."""
    window = Interval(carried.at - timedelta(milliseconds=window_ms), carried.at)
    bounds = ["backlog_age_high_ms", "backlog_age_low_ms"]
    rows = lake.published(CONSUMER_LATENCY.name, window, [cluster], bounds)
    ages = pc.coalesce(rows["backlog_age_high_ms"], rows["backlog_age_low_ms"])
    oldest = max(pc.max(ages).as_py() or 0.0, longest_threshold_ms)
    return carried.at - timedelta(milliseconds=oldest) - _MARGIN


def _chained_since(slas: Sequence[Sla], interval: Interval) -> datetime | None:
    """From when on facts are read for records that pass chains; None: there are no chains."""
    reach = chain_reach([sla.measured for sla in slas])
    return interval.start - reach - CHAIN_MARGIN if reach else None


def _from(
    table: str, log_since: datetime | None, replays: Sequence[Replay], slas: Sequence[Sla], interval: Interval
) -> datetime | None:
    """From when on a fact table is read."""
    if table in (LOG_OFFSETS.name, RECORD_RANGES.name):
        return log_since
    if table == COMMITTED_OFFSETS.name:
        starts = [r.carried.at if r.carried else None for r in replays]
        return None if None in starts else min(t for t in (*starts, _chained_since(slas, interval)) if t)
    return interval.start - _LAST_SEEN


def _until(table: str, interval: Interval) -> datetime:
    """Until when a fact table is read."""
    return interval.end + NEXT_POLL if table in (LOG_OFFSETS.name, TOPIC_CONFIGS.name) else interval.end
