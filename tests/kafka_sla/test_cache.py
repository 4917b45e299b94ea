"""What can be made again is kept where this user can write, also where a container gives a user no home and no name."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_sla.errors import SettingsError
from kafka_sla.spark.class_archive import archive_options
from kafka_sla.spark.package_zip import code_zip

NOWHERE = "/proc/self"
"""A home in which nobody can make a folder, root neither."""
World = Callable[[str | None], Path]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home, and a folder for temporary files, which is returned."""

    def made(home: str | None) -> Path:
        monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", home) if home else monkeypatch.delenv("HOME", raising=False)
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        return temporary

    return made


def test_a_home_keeps_it(world: World, tmp_path: Path) -> None:
    world(str(tmp_path))

    assert code_zip().parent == tmp_path / ".cache" / "kafka_sla"


def test_what_nobody_has_asked_for_in_a_month_goes_when_a_new_version_comes(world: World, tmp_path: Path) -> None:
    world(str(tmp_path))
    used = code_zip()
    for name, days in {used.name: 40, "kafka_sla-0.zip": 31, "kafka_sla-1.zip": 29, "spark-0.jsa": 99}.items():
        then = time.time() - days * 86_400
        (used.parent / name).touch()
        os.utime(used.parent / name, (then, then))
    assert code_zip() == used, "asked for again"

    used.rename(used.with_name("kafka_sla-2.zip"))
    assert code_zip() == used

    assert sorted(path.name for path in used.parent.iterdir()) == sorted(
        [used.name, "kafka_sla-1.zip", "kafka_sla-2.zip", "spark-0.jsa"]
    )


@pytest.mark.parametrize("home", [None, NOWHERE])
def test_without_a_home_to_write_to_it_lies_beside_temporary_files_for_this_user_alone(
    world: World, home: str | None
) -> None:
    temporary = world(home)

    assert archive_options() == ""
    assert not list(temporary.iterdir())
    made = code_zip()

    assert made.parent == temporary / f"kafka_sla-{os.getuid()}"
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert code_zip() == made


def test_what_an_image_was_built_with_is_used_where_its_home_cannot_be_written_to(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = world(str(tmp_path))
    built = code_zip()
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(built.parent)))

    assert code_zip() == built
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("how", ["others can write to it", "a link", "another user's"])
def test_code_never_runs_from_where_somebody_else_may_have_left_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    folder = world(None) / f"kafka_sla-{os.getuid()}"
    (tmp_path / "planted").mkdir(mode=0o700)
    if how == "a link":
        folder.symlink_to(tmp_path / "planted")
    else:
        folder.mkdir(mode=0o700)
    if how == "others can write to it":
        folder.chmod(0o777)
    if how == "another user's":
        mine = os.getuid()
        folder.rename(folder.with_name(f"kafka_sla-{mine + 1}"))
        monkeypatch.setattr(os, "getuid", lambda: mine + 1)

    with pytest.raises(SettingsError, match="set TMPDIR or XDG_CACHE_HOME to a folder of this user's own"):
        code_zip()


def test_a_file_in_its_place_is_told(world: World) -> None:
    (world(None) / f"kafka_sla-{os.getuid()}").touch()

    with pytest.raises(SettingsError, match=r"kafka_sla-\d+ cannot be made \(File exists\): set TMPDIR"):
        code_zip()


def nowhere() -> str:
    raise FileNotFoundError("No usable temporary directory found")


def test_where_nothing_can_be_written_one_is_told_what_to_set(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world(NOWHERE)
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)

    with pytest.raises(SettingsError, match=r"no folder for temporary files .+ set TMPDIR or XDG_CACHE_HOME"):
        code_zip()


def spilled(most: str) -> str:
    """What a query says that does not fit into so much memory."""
    code = f"""
from kafka_sla.sql import database
with database() as sql:
    sql.run("SET memory_limit = '{most}'")
    sql.run("SET threads = 1")
    (row,) = sql.rows("SELECT count(*) n FROM (SELECT DISTINCT range::VARCHAR || repeat('x', 40) FROM range(2000000))")
    print(row["n"])
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=NOWHERE, capture_output=True, text=True, check=False)
    return run.stdout or run.stderr


def test_what_a_query_cannot_keep_in_memory_goes_to_this_users_folder() -> None:
    """And not into the folder that the process was started in, where nobody can write here."""
    assert spilled("60MB").strip() == "2000000"
