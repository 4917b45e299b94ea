from __future__ import annotations

from pathlib import Path

import pytest

from demo.jars import JarsMissing, fetch_jars


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
