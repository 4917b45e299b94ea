"""`make matrix`: the built wheel in an environment per cell of Airflow, Python and Spark, and what works there, as a
table. Each cell resolves its dependencies by itself, without our constraints.

Every cell parses the DAGs, imports the web application, and measures the same imported facts: all hashes must agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.printed import put
from benchmarks.speed_table import machine, say, table
from kafka_sla.text.timestamps import instant_text

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".work" / "matrix"
SHOWN = 16
"""Characters of a hash."""
EXPORTED = ("consumer_latency", "consumer_status", "steady_state", "sla_windows", "sla_misses")
CONFIG = """\
clusters: {eu-west: {}}
slas:
  - {name: alerts, group: billing.alerts, topic: billing.alerts-authorised-v2, max_latency: 30s, objective: 99%}
"""
_START = datetime(2026, 11, 1, 8, tzinfo=UTC)
_PARSE = """
import json, sys, time
began = time.monotonic()
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:
    from airflow.models.dagbag import DagBag
bag = DagBag(sys.argv[1])
seconds = time.monotonic() - began
import kafka_sla.web.app
heavy = [name for name in ("pyspark", "great_expectations", "matplotlib") if name in sys.modules]
print(json.dumps({"dags": len(bag.dags), "errors": list(bag.import_errors.values()), "heavy": heavy, "s": seconds}))
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One environment; without Spark it is that of a web server or DAG processor."""

    airflow: str
    python: str
    spark: str | None

    @property
    def folder(self) -> Path:
        return WORK / f"airflow-{self.airflow}-python-{self.python}-spark-{self.spark or 'none'}"

    @property
    def program(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def run(self) -> Path:
        """Where its run is; what it said stays there."""
        return self.folder.with_name(f"{self.folder.name}-run")


CELLS = (
    Cell("3.1.8", "3.11", "4.0.4"),
    Cell("3.1.8", "3.12", "4.1.3"),
    Cell("3.1.8", "3.13", "4.2.0"),
    Cell("3.2.2", "3.11", "4.1.3"),
    Cell("3.2.2", "3.12", "4.2.0"),
    Cell("3.2.2", "3.13", "4.0.4"),
    Cell("3.3.2", "3.11", "4.2.0"),
    Cell("3.3.2", "3.12", "4.0.4"),
    Cell("3.3.2", "3.13", "4.1.3"),
    Cell("3.3.2", "3.13", None),
)
"""Each two of an Airflow, a Python and a Spark meet in one of them."""
_HEAD = ("Airflow", "Python", "Spark", "installed in", "packages", "MB", "conflicts", "DAGs parse", "rows (SHA-256)")


def main(cells: Sequence[Cell]) -> int:
    """Print the table; 1 when a cell failed or the hashes of two cells differ."""
    rows = [_row(cell) for cell in cells]
    text = f"{table(_HEAD, rows)}\n\n<sub>{machine()}</sub>"
    print(text)
    hashes = {row[-1] for row in rows} - {"-"}
    wrong = len(hashes) > 1 or any(cell.startswith("failed") for row in rows for cell in row)
    if not wrong and cells == CELLS:
        put("compatibility.md", "make matrix", text)
    return int(wrong)


def _row(cell: Cell) -> tuple[str, ...]:
    """What a cell is and what works there; its environment, of more than a gigabyte, is removed."""
    began = time.monotonic()
    install(cell, next((ROOT / "dist").glob("*.whl")))
    took = time.monotonic() - began
    packages = len(list(cell.folder.glob("lib/python*/site-packages/*.dist-info")))
    megabytes = sum(path.stat().st_size for path in cell.folder.rglob("*") if path.is_file()) // 1_000_000
    rows = measured(cell.folder / "bin", cell.run)[:SHOWN] if cell.spark else "-"
    found = (
        *(cell.airflow, cell.python, cell.spark or "none", f"{took:.0f} s", f"{packages}", f"{megabytes:,}"),
        *(conflicts(cell), parsed(cell), rows),
    )
    shutil.rmtree(cell.folder)
    say(" | ".join(found))
    return found


def install(cell: Cell, wheel: Path) -> None:
    """The wheel and what it depends on, in a new environment."""
    pins = [f"apache-airflow=={cell.airflow}"]
    pins += [f"{name}=={cell.spark}" for name in ("pyspark", "pyspark-client") if cell.spark]
    _uv("venv", "--clear", "--python", cell.python, str(cell.folder))
    _uv("pip", "install", "--python", cell.program, f"{wheel}{'[worker]' if cell.spark else ''}", *pins)


def conflicts(cell: Cell) -> str:
    """`none`, or what failed."""
    done = subprocess.run([_UV, "pip", "check", "--python", cell.program], capture_output=True, text=True, check=False)
    return "none" if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1]}"


def parsed(cell: Cell) -> str:
    """Do the DAG files parse and the pages import, without what only workers need?"""
    done = subprocess.run(
        [cell.program, "-W", "ignore", "-c", _PARSE, str(ROOT / "dags")],
        env=_environment(cell.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    wrong = [*found["errors"], *found["heavy"]]
    return f"failed: {wrong[0]}" if wrong else f"{found['dags']} in {found['s']:.1f} s"


def measured(programs: Path, place: Path) -> str:
    """The hash of what a run over imported facts exports, or `failed`; what was said is in the folder `place`."""
    place.mkdir(parents=True, exist_ok=True)
    write_facts(place)
    span = ("--from", instant_text(_START), "--to", instant_text(_START + timedelta(minutes=10)))
    steps = [("import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"), ("run", *span)]
    steps += [("export", table, *span, "--output", f"{table}.csv") for table in EXPORTED]
    with (place / "output.log").open("w") as log:
        command = str(programs / "kafka-sla")
        for step in steps:
            if subprocess.run([command, *step], cwd=place, env=_environment(place), stdout=log, stderr=log).returncode:
                return "failed"
    return hashlib.sha256(b"".join((place / f"{table}.csv").read_bytes() for table in EXPORTED)).hexdigest()


def write_facts(folder: Path) -> None:
    """Ten records a second for ten minutes, polled every ten seconds; a consumer that stops for four of them."""
    topic = "billing.alerts-authorised-v2"
    (folder / "kafka_sla.yml").write_text(CONFIG)
    polls = [f"eu-west,{topic},0,{_stamp(s)},0,{s * 10},exporter" for s in range(0, 601, 10)]
    header = "cluster,topic,partition,at,log_start_offset,log_end_offset,source"
    (folder / "log.csv").write_text("\n".join([header, *polls]))
    moving = [s for s in range(1, 600, 5) if not 240 < s < 480]
    commits = [f"eu-west,billing.alerts,{topic},0,{_stamp(s)},{(s - 1) * 10},commit_log" for s in moving]
    header = "cluster,group,topic,partition,at,committed_offset,source"
    (folder / "commits.csv").write_text("\n".join([header, *commits]))


def _stamp(seconds: float) -> str:
    return instant_text(_START + timedelta(seconds=seconds))


def _environment(folder: Path) -> dict[str, str]:
    """None of this project's own variables; Airflow's home is in the folder."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "KAFKA_SLA", "PYTHON"))
    }
    return kept | {"AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


_UV = str(Path(sys.executable).with_name("uv"))


def _uv(*arguments: str) -> None:
    subprocess.run([_UV, "--quiet", *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main(tuple(cell for cell in CELLS if not sys.argv[1:] or cell.airflow in sys.argv[1:])))
