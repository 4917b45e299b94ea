"""What is installed is what is in the repository; under `make test` the built wheel is installed."""

from __future__ import annotations

from importlib.metadata import distribution, entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafka_sla import __version__

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "kafka_sla": ROOT / "plugins" / "kafka_sla",
    "kafka_sla.spark_jobs": ROOT / "spark_jobs",
    "kafka_sla.expectations": ROOT / "expectations",
}


def _files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _installed(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_every_file_of_a_package_is_installed(package: str) -> None:
    assert set() == _files(PACKAGES[package]) - _files(_installed(package))


def test_everything_installed_lies_under_one_package() -> None:
    top = {str(path).split("/")[0] for path in distribution("kafka-sla").files or () if path.suffix == ".py"}

    assert top <= {
        "kafka_sla",
        "kafka_sla_plugin.py",
        f"__editable___kafka_sla_{__version__.replace('.', '_')}_finder.py",
    }


def test_airflow_and_the_shell_find_their_doors() -> None:
    (plugin,) = entry_points(group="airflow.plugins", name="kafka_sla")
    (command,) = entry_points(group="console_scripts", name="kafka-sla")

    assert "kafka_sla" == plugin.load().name
    assert callable(command.load())
