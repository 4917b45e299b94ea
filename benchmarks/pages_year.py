"""A year as the pages would find it: 300 SLAs over 10,000 group-partitions, made by SQL in bulk. Measures nothing.

Real in number and size: the sums of every SLA by hour and day, of the last eight days by slot and of the last day by
window, misses, validation results, snapshots of 1,000 groups for two months, and the rows of the 10,000
group-partitions of yesterday (one file, as the nightly run leaves it) and of today (a file each five minutes); one
group in twenty may be behind. Of the other days only a row exists: no page reads their rows, but their files are
planned. Verdicts per window fill the whole year for as many SLAs as asked.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np

from benchmarks import pages_beside
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.table_layout import LOADS, MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.rollups import SLA_ROLLUPS, SLOTS_KEPT, WINDOWS_KEPT
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, GROUP_STATES
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, packed_histogram
from kafka_sla.sla.windows.cells import cells_of, packed_cells

SLAS, PARTITIONS, GROUPS = 300, 34, 1_000
"""Each SLA has its own group and topic of so many partitions."""
DAYS, SNAPSHOT_DAYS = 365, 62
_UNTIL = "until.txt"
_POOL = 400
"""Different packed rollups; each row takes one of them."""


@dataclass(frozen=True, slots=True)
class Year:
    """What was built, and until when."""

    config: Path
    store: Store
    end: datetime


def build(folder: Path, windows_for: int) -> Year:
    """The year until the last whole five minutes; `windows_for`: SLAs whose verdicts fill the whole year."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    end = now - timedelta(minutes=now.minute % 5)
    folder.mkdir(parents=True, exist_ok=True)
    config, store = folder / "kafka_sla.yml", Store.embedded(folder / "store")
    config.write_text(_configuration())
    lake, ledger = Lake(store), Ledger(store)
    ledger.open(writing=True)
    _database(Path(str(store.url.database)), end, windows_for)
    _files(folder, store, lake, ledger, end)
    _snapshots(folder, store, end)
    pages_beside.facts(store, end, GROUPS, SLAS, PARTITIONS)
    ledger.observed_time.add("prod", (end - i * timedelta(milliseconds=SLOT_MS) for i in range(SNAPSHOT_DAYS * 288)))
    (folder / _UNTIL).write_text(end.isoformat())
    return Year(config, store, end)


def built(folder: Path) -> Year | None:
    """The year that was built in this folder before."""
    if not (folder / _UNTIL).exists():
        return None
    end = datetime.fromisoformat((folder / _UNTIL).read_text())
    return Year(folder / "kafka_sla.yml", Store.embedded(folder / "store"), end)


def _configuration() -> str:
    slas = [
        {
            "name": f"sla {i:03}",
            "group": f"group-{i:03}",
            "topic": f"topic-{i:03}",
            "max_latency": "30s",
            "for": "5m",
            "period": "year" if i % 2 else "month",
            "team": f"team {i % 15}",
        }
        for i in range(SLAS)
    ]
    clusters = {"prod": {"connection": "kafka_prod", "replication": [{"to": "dr"}]}, "dr": {"connection": "kafka_dr"}}
    defaults = {"objective": "99.9%", "cluster": "prod"}
    return json.dumps({"clusters": clusters, "defaults": defaults, "slas": slas})


def _database(path: Path, end: datetime, windows_for: int) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA synchronous=OFF")
        for width, kept in _KEPT.items():
            start = end - kept
            columns = SLA_ROLLUPS.columns.keys()
            db.executemany(f"INSERT INTO sla_rollups VALUES (:{',:'.join(columns)})", _rollups(width, start, end))
            db.executemany("INSERT INTO sla_rollup_details VALUES (?,?,?,?,?)", _details(width, start, end))
        db.execute(_WINDOWS, {"slas": windows_for, "minutes": DAYS * 1_440, "end": f"{end:%Y-%m-%d %H:%M:%S}"})
        db.execute(
            _WINDOWS_OF_TODAY, {"slas": SLAS, "from": windows_for, "minutes": 1_440, "end": f"{end:%Y-%m-%d %H:%M:%S}"}
        )
        db.execute(_MISSES, {"end": f"{end:%Y-%m-%d %H:%M:%S}"})
        db.execute(_VALIDATION, {"end": f"{end:%Y-%m-%d %H:%M:%S}"})
        db.execute("ANALYZE")


_YEAR = timedelta(days=DAYS)
_KEPT = {60_000: WINDOWS_KEPT, SLOT_MS: SLOTS_KEPT, HOUR_MS: _YEAR, DAY_MS: _YEAR}


def _starts(width_ms: int, start: datetime, end: datetime) -> Iterator[tuple[int, str]]:
    for i, span in enumerate(Interval(start, end).windows(width_ms)):
        yield i, f"{span.start:%Y-%m-%d %H:%M:%S}.000000"


def _rollups(width: int, start: datetime, end: datetime) -> Iterator[dict[str, object]]:
    dice = np.random.default_rng(1)
    for sla in range(SLAS):
        for i, at in _starts(width, start, end):
            worst = float(dice.lognormal(8.5, 0.4))
            bad = width // 100 if (i * 7 + sla) % 97 == 0 else 0
            yield {
                "sla": f"sla {sla:03}",
                "width_ms": width,
                "start_at": at,
                "good_ms": width - bad,
                "bad_ms": bad,
                "excluded_ms": 0,
                "unknown_ms": 0,
                "records_due": width,
                "records_late": width // 1000,
                "records_late_low": width // 1000,
                "records_late_high": width // 1000,
                "records_in_unknown_time": 0,
                "worst_latency_ms": worst,
                "worst_latency_low_ms": worst * 0.95,
                "worst_latency_high_ms": worst * 1.05,
                "max_latency_ms": 30_000,
                "all_consumed": width,
                "all_produced": width,
            }


def _details(width: int, start: datetime, end: datetime) -> Iterator[tuple[object, ...]]:
    dice = np.random.default_rng(2)
    for sla in range(SLAS):
        pool = [_packed(dice, sla) for _ in range(_POOL // 20)]
        for i, at in _starts(width, start, end):
            yield (f"sla {sla:03}", width, at, *pool[i % len(pool)])


def _packed(dice: np.random.Generator, sla: int) -> tuple[bytes, bytes]:
    middle = int(dice.normal(400, 10))
    histogram = {middle + i: int(1e5 * np.exp(-((i / 25) ** 2))) + 1 for i in range(-60, 60)}
    worst = dice.lognormal(8, 0.5, PARTITIONS)
    cells = cells_of([(f"group-{sla:03}", f"topic-{sla:03}", np.arange(PARTITIONS), worst)])
    return packed_histogram(histogram), packed_cells(cells)


_COLUMNS = (
    "sla, cluster, window_start, window_end, verdict, is_certain, reason, max_latency_ms, min_time_to_expiry_ms,"
    " worst_latency_ms, worst_latency_low_ms, worst_latency_high_ms, worst_group, worst_topic, worst_partition,"
    " steady_partitions, bootstrapping_partitions, unknown_partitions, records_due, records_late,"
    " records_late_low, records_late_high, records_of_unknown_state"
)
_VERDICT = """
    printf('sla %03d', s.value), 'prod',
    strftime('%Y-%m-%d %H:%M:%S.000000', :end, (m.value - :minutes) || ' minutes'),
    strftime('%Y-%m-%d %H:%M:%S.000000', :end, (m.value - :minutes + 1) || ' minutes'),
    'good', 1, NULL, 30000, NULL, 4000.0 + (m.value * 37 % 1000), 3900.0, 5200.0, printf('group-%03d', s.value),
    printf('topic-%03d', s.value), 1, 100, 0, 0, 60000, 0, 0, 0, 0
"""
_WINDOWS = f"""
    WITH RECURSIVE s(value) AS (SELECT 0 WHERE :slas > 0 UNION ALL SELECT value + 1 FROM s WHERE value + 1 < :slas),
        m(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM m WHERE value + 1 < :minutes)
    INSERT INTO sla_windows ({_COLUMNS}) SELECT {_VERDICT} FROM s, m
"""
_WINDOWS_OF_TODAY = f"""
    WITH RECURSIVE s(value) AS (SELECT :from UNION ALL SELECT value + 1 FROM s WHERE value + 1 < :slas),
        m(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM m WHERE value + 1 < :minutes)
    INSERT INTO sla_windows ({_COLUMNS}) SELECT {_VERDICT} FROM s, m
"""
_MISSES = f"""
    WITH RECURSIVE s(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM s WHERE value + 1 < {SLAS}),
        d(value) AS (SELECT 1 UNION ALL SELECT value + 7 FROM d WHERE value + 7 < {DAYS})
    INSERT INTO sla_misses (miss_id, sla, cluster, state, start_at, end_at, opened_at, bad_windows, is_certain,
        max_latency_ms, min_time_to_expiry_ms, for_ms, worst_latency_ms, worst_latency_low_ms, worst_latency_high_ms,
        worst_at, worst_group, worst_topic, worst_partition, evidence)
    SELECT printf('%03d-%03d', s.value, d.value), printf('sla %03d', s.value), 'prod',
        'recovered',
        strftime('%Y-%m-%d %H:%M:%S.000000', :end, -d.value || ' days'),
        strftime('%Y-%m-%d %H:%M:%S.000000', :end, -d.value || ' days', '20 minutes'),
        strftime('%Y-%m-%d %H:%M:%S.000000', :end, -d.value || ' days', '5 minutes'),
        20, 1, 30000, NULL, 300000, 90000.0, 80000.0, 95000.0,
        strftime('%Y-%m-%d %H:%M:%S.000000', :end, -d.value || ' days', '9 minutes'),
        printf('group-%03d', s.value), printf('topic-%03d', s.value), 7,
        '{{"cause": "stopped", "sentence": "Group stopped."}}'
    FROM s, d
"""
_VALIDATION = """
    WITH RECURSIVE l(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM l WHERE value + 1 < 30 * 288),
        e(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM e WHERE value + 1 < 60)
    INSERT INTO validation_results SELECT printf('load-%06d', l.value),
        strftime('%Y-%m-%d %H:%M:%S.000000', :end, (-5 * (l.value + 1)) || ' minutes'),
        strftime('%Y-%m-%d %H:%M:%S.000000', :end, (-5 * l.value) || ' minutes'),
        'table ' || (e.value / 10), 'expectation ' || (e.value % 10), 'it holds', 'warning',
        NOT (l.value % 500 = 0 AND e.value = 3), 'this', 0
    FROM l, e
"""


def _files(folder: Path, store: Store, lake: Lake, ledger: Ledger, end: datetime) -> None:
    """The rows of yesterday and today, and one row of each other day."""
    today = end.replace(hour=0, minute=0)
    pieces = [Interval(today - timedelta(days=d), today - timedelta(days=d - 1)) for d in range(DAYS, 0, -1)]
    pieces += list(Interval(today, end).windows(SLOT_MS))
    paths = []
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for number, piece in enumerate(pieces):
            path = Path(lake.stage_dir(f"load{number}")) / CONSUMER_LATENCY.name / "part-00000.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            real = piece.end >= today
            db.execute(
                _LATENCY.format(
                    path=path,
                    load=f"load{number}",
                    groups=SLAS if real else 1,
                    partitions=PARTITIONS if real else 1,
                    minutes=int((piece.end - piece.start) / timedelta(minutes=1)) if real else 1,
                ),
                {"start": piece.start},
            )
            paths.append(str(path))
            ledger.publications.publish(["prod"], piece, f"load{number}", 0)
    pages_beside.add(store, CONSUMER_LATENCY, paths, LOADS)
    recent = [(f"load{number}", piece) for number, piece in enumerate(pieces) if piece.end >= today]
    pages_beside.metrics(store, recent, SLAS, PARTITIONS)


_LATENCY = """
    COPY (
        SELECT 'prod' AS cluster, printf('group-%03d', g.range) AS "group", printf('topic-%03d', g.range) AS topic,
            p.range::INT AS partition, $start + to_minutes(m.range::BIGINT) AS window_start,
            $start + to_minutes(m.range::BIGINT + 1) AS window_end, 600::BIGINT AS records_consumed,
            (4000 + hash(g.range, p.range, m.range) % 2000)::DOUBLE AS records_latency_max_ms,
            MAP {{(380 + m.range % 20)::INT: 400::BIGINT, (415 + p.range % 20)::INT: 190::BIGINT, 440::INT: 10::BIGINT}}
                AS latency_histogram,
            0::BIGINT AS negative_latency_records, 0::BIGINT AS unknown_latency_records, 20::BIGINT AS records_lag,
            900::DOUBLE AS backlog_age_ms, 850::DOUBLE AS backlog_age_low_ms, 950::DOUBLE AS backlog_age_max_ms,
            CASE WHEN g.range % 20 = 0 THEN 120000 ELSE 1000 END::DOUBLE AS backlog_age_high_ms,
            900::DOUBLE AS backlog_age_max_low_ms, backlog_age_high_ms AS backlog_age_max_high_ms,
            (600 * m.range)::BIGINT AS committed_offset, (600 * m.range)::BIGINT AS effective_position,
            (600 * m.range + 20)::BIGINT AS log_end_offset,
            $start AS interval_start, '{load}' AS load_id
        FROM range({groups}) g, range({partitions}) p, range({minutes}) m ORDER BY g.range, p.range, m.range
    ) TO '{path}' (FORMAT parquet, COMPRESSION snappy)
"""


def _snapshots(folder: Path, store: Store, end: datetime) -> None:
    """What a snapshot each five minutes saw of the groups, a file a day."""
    paths = []
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for day in range(SNAPSHOT_DAYS):
            path = folder / "store" / "warehouse" / "facts" / GROUP_STATES.name / f"{day}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            start = end.replace(hour=0, minute=0) - timedelta(days=day)
            db.execute(_STATES.format(path=path, groups=GROUPS), {"start": start})
            paths.append(str(path))
    pages_beside.add(store, GROUP_STATES, paths, MAIN)


_STATES = """
    COPY (
        SELECT 'prod' AS cluster, printf('group-%04d', g.range) AS "group",
            $start + to_minutes(5 * t.range::BIGINT) AS "at", 'classic' AS type, 'Stable' AS state, 3 AS members
        FROM range(288) t, range({groups}) g
    ) TO '{path}' (FORMAT parquet, COMPRESSION zstd)
"""
