"""What tasks import, imported before in the process that they are forked from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_sla.tasks.preload import VARIABLE
from tests.airflow_home import ROOT

_HEAVY = ("great_expectations", "pyspark.sql.connect.client", "pyarrow", "duckdb", "pyiceberg", "matplotlib")
_LOADED = f"""
import os
import sys
import tests.airflow_home
import kafka_sla_plugin

print([name for name in {_HEAVY} if name in sys.modules], flush=True)
"""
_FORKED = (
    _LOADED
    + """
before = set(sys.modules)
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
import dags.kafka_sla_watch
from kafka_sla.pipeline import steps
from kafka_sla.spark_jobs.standing import measure_standing
import pyarrow as pa
from kafka_sla.sql import database
with database(rows=pa.table({"n": list(range(1_000_000))})) as db:
    print(db.rows("SELECT sum(n)::BIGINT AS n FROM rows"))
print(sorted(name for name in set(sys.modules) - before if name.startswith("kafka_sla.")))
from scipy.stats._distn_infrastructure import rv_frozen
import scipy.stats
print(isinstance(scipy.stats.norm(), rv_frozen))
"""
)
_SPAWNED = """
import multiprocessing
import sys

def said(queue):
    import tests.airflow_home
    import kafka_sla_plugin
    queue.put((sys.argv[1], "great_expectations" in sys.modules))

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    worker = spawn.Process(target=said, args=(queue := spawn.SimpleQueue(),))
    worker.start()
    print(queue.get())
    worker.join()
"""


def _said(code: str, component: str, asked: str) -> list[str]:
    """What a component of Airflow prints that is started like this."""
    environment = os.environ | {VARIABLE: asked}
    command = [sys.executable, "-W", "ignore", "-c", code, component]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


@pytest.mark.slow
def test_a_scheduler_imports_for_the_tasks_that_are_forked_from_it_and_what_it_imported_works_there() -> None:
    loaded, added_up, more, plain = _said(_FORKED, "scheduler", "1")[-4:]

    assert (str(list(_HEAVY)), "[{'n': 499999500000}]", "[]") == (loaded, added_up, more)
    assert "True" == plain, "what tasks of other DAGs import is no stand-in"


def test_a_worker_that_is_not_forked_imports_nothing_ahead(tmp_path: Path) -> None:
    program = tmp_path / "scheduler.py"
    program.write_text(_SPAWNED)
    command = [sys.executable, "-W", "ignore", str(program), "scheduler"]
    environment = os.environ | {VARIABLE: "1", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert "('scheduler', False)" == ended.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "asked"), [("scheduler", ""), ("api-server", "1"), ("dag-processor", "1"), ("triggerer", "1")]
)
def test_unless_it_is_asked_to_nobody_imports_anything(component: str, asked: str) -> None:
    assert "[]" == _said(_LOADED, component, asked)[-1]
