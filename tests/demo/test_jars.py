from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demo.jars import JarSet, JarsMissing, fetch_all, fetch_jars


def test_jars_that_are_there_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SLA_JARS", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no java here"))

    assert tmp_path == fetch_jars()


def test_a_failed_fetch_leaves_nothing_and_tells_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'SERVER ERROR: no network'\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KAFKA_SLA_JARS", str(tmp_path / "cache" / "kafka"))

    with pytest.raises(JarsMissing, match="no network"):
        fetch_jars(progress=lambda text: None)

    assert [] == list((tmp_path / "cache").iterdir())


def test_a_machine_without_java_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("KAFKA_SLA_JARS", str(tmp_path / "kafka"))

    with pytest.raises(JarsMissing, match="Java 17 is needed"):
        fetch_jars(progress=lambda text: None)


def test_sets_are_fetched_and_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_TAKES_A_JAR)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    sets = [JarSet(name, name, f"{name.upper()}_JARS", 2, ()) for name in ("first", "second")]
    for jars in sets:
        monkeypatch.setenv(jars.variable, str(tmp_path / "cache" / jars.name))
    told: list[str] = []

    fetch_all(sets, told.append)
    fetch_all(sets, told.append)

    assert ["fetching the jars of first, second (4 MB, once)"] == told
    assert ["first/one.jar", "second/one.jar"] == [
        str(path.relative_to(tmp_path / "cache"))
        for path in sorted((tmp_path / "cache").glob("**/*"))
        if path.is_file()
    ]


def test_who_wants_the_same_jars_meanwhile_waits_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_TAKES_A_JAR.replace("mkdir", "sleep 1; mkdir"))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KAFKA_SLA_JARS", str(tmp_path / "cache" / "kafka"))
    told: list[str] = []

    with ThreadPoolExecutor() as threads:
        folders = set(threads.map(lambda _: fetch_jars(told.append), range(3)))

    assert ({tmp_path / "cache" / "kafka"}, 1) == (folders, len(told))
    assert [tmp_path / "cache" / "kafka"] == list((tmp_path / "cache").iterdir())


_TAKES_A_JAR = """#!/bin/sh
for last; do :; done
folder=$(dirname "$last")
mkdir -p "$folder" && touch "$folder/one.jar"
"""
