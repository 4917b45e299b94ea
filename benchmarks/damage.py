"""`python -m benchmarks.damage [flips]`: what becomes of a store whose files are damaged?

Measures a small store with the real pipeline, damages a copy of it in one way after another, runs every reading command
on it, then `store check` and `store repair`, and prints as Markdown what was seen, said, repaired and lost. Exit status
1 when a command ended in a traceback, damage went unnoticed and changed a row, or repair left damage.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from kafka_sla.cli.main import main as kafka_sla
from kafka_sla.text.timestamps import instant_text

_START = datetime(2026, 11, 1, 8, tzinfo=UTC)
_TIMES = [("2026-11-01T08:00Z", "2026-11-01T08:20Z"), ("2026-11-01T08:20Z", "2026-11-01T08:40Z")]
_CONFIGURATION = """
clusters: {old.eu-west-1: {}}
slas: [{name: payments within 30 s, group: billing.payments-v2, topic: payments.authorised-v2, max_latency: 30s,
        for: 2m}]
"""
_READING = (
    ("status",),
    ("misses",),
    ("check",),
    ("export", "sla_windows"),
    ("export", "consumer_latency"),
    ("export", "log_offsets"),
    ("report", "--from", _TIMES[0][0], "--to", _TIMES[1][1], "--output", "report.html"),
)
_ROWS = ("log_offsets", "committed_offsets", "consumer_latency", "steady_state", "sla_windows", "sla_misses")
_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True)
class Ended:
    """How one command ended: its exit status (None: a traceback), and the last line that it said."""

    code: int | None
    line: str


@dataclass(frozen=True, slots=True)
class World:
    """The store as it was measured, and the folder in which it is damaged."""

    whole: Path
    here: Path

    def anew(self) -> Path:
        """The undamaged store in its place; its warehouse."""
        shutil.rmtree(self.here / "store", ignore_errors=True)
        shutil.copytree(self.whole, self.here / "store")
        return self.here / "store" / "warehouse"

    def run(self, *command: str) -> Ended:
        """One command, in this process."""
        said = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                code: int | None = kafka_sla([*command, "--store", str(self.here / "store")])
            except Exception as error:
                code = None
                print(f"{type(error).__name__}: {error}")
        lines = said.buffer.getvalue().decode().strip().splitlines() or [""]  # type: ignore[attr-defined]
        return Ended(code, next((line for line in lines if line.startswith("FAIL")), lines[-1]))

    def rows(self) -> dict[str, str | None]:
        """What each table exports; None where it cannot be read."""
        found: dict[str, str | None] = {}
        for table in _ROWS:
            target = self.here / f"{table}.csv"
            target.unlink(missing_ok=True)
            ended = self.run("export", table, "--output", str(target))
            found[table] = target.read_text() if ended.code == 0 else None
        return found


@contextlib.contextmanager
def measured(folder: Path) -> Iterator[World]:
    """A store with two published intervals of imported facts, measured by Spark."""
    with contextlib.chdir(folder):
        Path("kafka_sla.yml").write_text(_CONFIGURATION)
        _history()
        world = World(folder / "whole", folder)
        (folder / "store").mkdir()
        commands = [["import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"]]
        commands += [["run", "--from", start, "--to", end] for start, end in _TIMES]
        for command in commands:
            if (ended := world.run(*command)).code != 0:
                raise SystemExit(f"{' '.join(command)}: {ended.line}")
        shutil.copytree(folder / "store", world.whole)
        yield world


def _history() -> None:
    """Ten records a second for forty minutes; a group that stops for six of them."""

    def stamp(seconds: float) -> str:
        return instant_text(_START + timedelta(seconds=seconds))

    log = [f"old.eu-west-1,payments.authorised-v2,0,{stamp(s)},0,{s * 10},exporter" for s in range(0, 2401, 10)]
    Path("log.csv").write_text("\n".join(["cluster,topic,partition,at,log_start_offset,log_end_offset,source", *log]))
    commits = [
        f"old.eu-west-1,billing.payments-v2,payments.authorised-v2,0,{stamp(s)},{(s - 1) * 10},commit_log"
        for s in range(1, 2400, 5)
        if not 480 < s < 840
    ]
    Path("commits.csv").write_text("\n".join(["cluster,group,topic,partition,at,committed_offset,source", *commits]))


Break = Callable[[Path], None]


def _first(pattern: str, damage: Callable[[Path], None]) -> Break:
    return lambda warehouse: damage(sorted(warehouse.glob(pattern))[0])


def _all(pattern: str, damage: Callable[[Path], None]) -> Break:
    def each(warehouse: Path) -> None:
        for path in sorted(warehouse.glob(pattern)):
            damage(path)

    return each


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _foreign(path: Path) -> None:
    path.write_text("the lines of somebody else's file\n" * 50)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _database(warehouse: Path) -> Path:
    path = warehouse.parent / "kafka_sla.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    return path


def _sql(statement: str) -> Break:
    def run(warehouse: Path) -> None:
        with contextlib.closing(sqlite3.connect(warehouse.parent / "kafka_sla.db")) as connection:
            connection.execute(statement)
            connection.commit()

    return run


def _behind(warehouse: Path) -> None:
    """The catalog names the table as it was after the first of the two loads."""
    versions = sorted(warehouse.glob("kafka_sla/consumer_latency/metadata/*.metadata.json"))
    _sql(f"UPDATE iceberg_tables SET metadata_location = '{versions[-3]}' WHERE table_name = 'consumer_latency'")(
        warehouse
    )


_METRICS, _FACTS, _META = (
    "staging/*/consumer_latency/*.parquet",
    "facts/log_offsets/*/*.parquet",
    "kafka_sla/*/metadata",
)
BREAKAGES: dict[str, Break] = {
    "a file of metrics truncated": _first(_METRICS, _truncate),
    "a file of metrics replaced by a foreign one": _first(_METRICS, _foreign),
    "a file of metrics deleted": _first(_METRICS, _remove),
    "the staging folder of a load deleted": _first("staging/*", _remove),
    "a file of facts truncated": _first(_FACTS, _truncate),
    "a file of facts deleted": _first(_FACTS, _remove),
    "Iceberg's metadata.json of all tables truncated": _all(f"{_META}/*.metadata.json", _truncate),
    "Iceberg's metadata folder of a table deleted": _first("kafka_sla/consumer_latency", _remove),
    "all manifest lists foreign": _all(f"{_META}/snap-*.avro", _foreign),
    "all manifests deleted": _all(f"{_META}/*-m0.avro", _remove),
    "a table's row in the catalog some commits behind": lambda warehouse: _behind(warehouse),
    "sums of an SLA altered": _sql("UPDATE sla_rollups SET good_ms = good_ms + 60000 WHERE width_ms = 86400000"),
    "a table of the database dropped": _sql("DROP TABLE sla_rollups"),
    "the database truncated": lambda warehouse: _truncate(_database(warehouse)),
    "the database a foreign file": lambda warehouse: _foreign(_database(warehouse)),
    "the database deleted": lambda warehouse: _remove(_database(warehouse)),
    "the warehouse deleted": _remove,
    "the marker of the warehouse truncated": _first("kafka_sla_store.json", _truncate),
}
KINDS: dict[str, Callable[[Path], list[Path]]] = {
    "Parquet of metrics": lambda warehouse: sorted(warehouse.glob(_METRICS)),
    "Parquet of facts": lambda warehouse: sorted(warehouse.glob(_FACTS)),
    "Iceberg's metadata.json": lambda warehouse: _newest(warehouse, "*.metadata.json", 1),
    "Iceberg's manifest lists": lambda warehouse: _newest(warehouse, "snap-*.avro", 2),
    "Iceberg's manifests": lambda warehouse: _newest(warehouse, "*-m0.avro", 2),
    "the database": lambda warehouse: [_database(warehouse)],
    "the marker": lambda warehouse: [warehouse / "kafka_sla_store.json"],
}
"""The files of a kind that are in use, one of which is damaged."""


def _newest(warehouse: Path, pattern: str, many: int) -> list[Path]:
    """The newest files of a table: a branch has a manifest list of its own."""
    found = warehouse.glob(f"kafka_sla/consumer_latency/metadata/{pattern}")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)[-many:]


def _breakages(world: World) -> bool:
    before, held = world.rows(), True
    print("| breakage | commands that failed in words | tracebacks | `store check` said | `store repair` | lost |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, damage in BREAKAGES.items():
        damage(world.anew())
        ended = [world.run(*command) for command in _READING]
        failed, tracebacks = sum(e.code not in (0, None) for e in ended), sum(e.code is None for e in ended)
        check = world.run("store", "check")
        repair = world.run("store", "repair", "--yes")
        after = world.rows()
        lost = _lost(before, after)
        repaired = "refused" if check.code == 1 and repair.code != 0 else "whole" if repair.code == 0 else "in part"
        tracebacks += (check.code is None) + (repair.code is None)
        held = held and not tracebacks
        said = check.line.replace(str(world.here), "").replace("|", "/")[:150]
        print(f"| {name} | {failed} of {len(_READING)} | {tracebacks} | {said} | {repaired} | {lost} |")
        print(f"[{time.monotonic() - _BEGAN:4.0f} s] {name}: {[e for e in ended if e.code is None]}", file=sys.stderr)
    return held


def _lost(before: dict[str, str | None], after: dict[str, str | None]) -> str:
    if None in after.values():
        return "nothing for good: all is back once what the error names is put right, or a backup is restored"
    rows = {table: set((before[table] or "").splitlines()) - set((after[table] or "").splitlines()) for table in _ROWS}
    return ", ".join(f"{len(lost)} rows of {table}" for table, lost in rows.items() if lost) or "nothing"


def _flips(world: World, times: int) -> bool:
    held, chosen = True, np.random.default_rng(1)
    print(
        "\n| one flipped bit in | tried | found by `store check` | unnoticed, no row changed | rows changed unnoticed"
        " | tracebacks |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    world.anew()
    before = world.rows()
    for kind, place in KINDS.items():
        found = harmless = changed = tracebacks = 0
        for _ in range(times):
            files = place(world.anew())
            path = files[int(chosen.integers(len(files)))]
            content = bytearray(path.read_bytes())
            content[int(chosen.integers(len(content)))] ^= 1 << int(chosen.integers(8))
            path.write_bytes(content)
            check = world.run("store", "check")
            tracebacks += check.code is None
            found += check.code == 1
            if check.code == 0:
                same = world.rows() == before
                harmless, changed = harmless + same, changed + (not same)
        held = held and not tracebacks
        print(f"| {kind} | {times} | {found} | {harmless} | {changed} | {tracebacks} |", flush=True)
    return held


def main(flips: int) -> int:
    """Print both tables; 1 when a command ended in a traceback."""
    with tempfile.TemporaryDirectory(prefix="kafka_sla-damage-") as folder, measured(Path(folder)) as world:
        held = [_breakages(world), _flips(world, flips)]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
