"""What `make mutate` makes wrong, and that it leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import psutil

from benchmarks.mutation.mutants import mutants

ROOT = Path(__file__).resolve().parents[2]
PYTHON = '''
"""Not 1 < 2 and 3."""
@cached(1)
def late(rows: list[int], most: int | None = None) -> bool:
    rows = rows[:-1]
    return not any(row >= most and row is not None for row in rows if row)
'''
QUERY = '''
QUERY = f"""
    SELECT count(*) FILTER (ours AND new) FROM rows WHERE NOT gone AND n >> 8 > 0 {"x = 1"} -- AND no more
"""
'''


def lines(text: str) -> list[str]:
    """What the changed line becomes, in each mutant."""
    return [one.diff.split("\n+ ")[1] for one in mutants("module.py", text)]


def test_one_thing_at_a_time_is_wrong_in_python_and_never_a_type_or_a_decorator() -> None:
    wrong = "return not any(row >= most and row is not None for row in rows if row)"

    assert sorted(lines(PYTHON)) == sorted(
        [
            "pass",
            "rows = rows[:1]",
            "rows = rows[:-2]",
            wrong.replace("not any", "any"),
            wrong.replace("any", "all"),
            wrong.replace(">=", ">"),
            wrong.replace("and", "or"),
            wrong.replace("is not", "is"),
            wrong.replace("if row", "if True"),
        ]
    )


def test_one_thing_at_a_time_is_wrong_in_sql_and_never_what_is_inserted_or_a_remark() -> None:
    wrong = 'SELECT count(*) FILTER (ours AND new) FROM rows WHERE NOT gone AND n >> 8 > 0 {"x = 1"} -- AND no more'

    assert sorted(lines(QUERY)) == sorted(
        [
            wrong.replace("FILTER (ours AND new)", ""),
            wrong.replace("ours AND", "ours OR"),
            wrong.replace("NOT ", ""),
            wrong.replace("gone AND", "gone OR"),
            wrong.replace(">> 8", ">> 9"),
            wrong.replace("> 0", ">= 0"),
            wrong.replace("> 0", "> 1"),
        ]
    )


def test_every_module_and_its_tests_are_there() -> None:
    modules = tomllib.loads((ROOT / "benchmarks/mutation/modules.toml").read_text())
    named = {path.partition("::")[0] for module, tests in modules.items() for path in (module, *tests)}

    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_a_killed_run_leaves_no_process_and_no_folder_and_changes_no_file(tmp_path: Path) -> None:
    module = ROOT / "plugins/kafka_sla/sla/objective_kinds.py"
    before = module.read_bytes()
    command = [sys.executable, "-m", "benchmarks.mutation", "--only", "objective_kinds"]
    run = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE)
    assert run.stderr is not None
    next(line for line in run.stderr if b": killed: " in line)  # mutants are being tried

    run.kill()
    run.wait()
    run.stderr.close()

    deadline = time.monotonic() + 300
    while (list(tmp_path.iterdir()) or working_in(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (list(tmp_path.iterdir()), working_in(tmp_path), module.read_bytes()) == ([], [], before)


def working_in(folder: Path) -> list[int]:
    """The processes whose folder is inside this one."""
    found = ((process.pid, process.info["cwd"]) for process in psutil.process_iter(["cwd"]))
    return [pid for pid, cwd in found if cwd and Path(cwd).is_relative_to(folder)]
