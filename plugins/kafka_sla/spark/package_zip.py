"""The code that Spark needs, as one zip named after its content.

`python -m kafka_sla.spark.package_zip` makes it, where an image is to hold it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import uuid
import zipfile
from pathlib import Path

from kafka_sla.cache import cache_folder, cached, forget_unused
from kafka_sla.errors import SettingsError

PACKAGES = ("kafka_sla", "kafka_sla.spark_jobs", "kafka_sla.expectations")
SUFFIXES = (".py", ".json")


def application() -> Path:
    """The file that spark-submit runs."""
    return package_folder("kafka_sla.spark_jobs") / "measure.py"


def code_zip(folder: Path | None = None) -> Path:
    """A zip of the packages that Spark imports, made once per version of the code."""
    folders = {package.replace(".", "/"): package_folder(package) for package in PACKAGES}
    files = {f"{name}/{path}": data for name, folder in folders.items() for path, data in _files(folder)}
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + data + b"\0" for name, data in files.items())).hexdigest()
    name = f"kafka_sla-{digest[:16]}.zip"
    target = folder / name if folder else cached(name) or cache_folder() / name
    if not target.exists():
        _write(target, files)
        forget_unused("kafka_sla")
    return target


def _files(folder: Path) -> list[tuple[str, bytes]]:
    found = sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in found]


def _write(target: Path, files: dict[str, bytes]) -> None:
    """Write beside and rename, so that no other task ever reads half a zip."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{uuid.uuid4().hex}")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    part.replace(target)


def package_folder(package: str) -> Path:
    """Where a package is imported from."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            f"the package {package} cannot be imported here; install kafka-sla with pip where Airflow runs,"
            " or put the repository's folder on PYTHONPATH"
        )
    return Path(spec.submodule_search_locations[0])


if __name__ == "__main__":
    code_zip()
