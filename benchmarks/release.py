"""Is what would be released whole? Builds sdist and wheel of the last commit, checks both, installs each alone.

    python -m benchmarks.release            # what `make release` runs; the two files stay in dist/

The wheel is built from the sdist, so that who has only the sdist gets the same. Nothing is uploaded.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from kafka_sla import __version__

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
_UV = [str(Path(sys.executable).with_name("uv")), "--quiet"]
_IN_SDIST = ("CHANGELOG.md", "LICENSE", "README.md", "setup.cfg", "dags/kafka_sla.yml", "dags/kafka_sla_watch.py")
_SHOWN = ("import kafka_sla_plugin", "from kafka_sla.config.schema import SlaKeys")


class Unfit(Exception):
    """What keeps this commit from being released."""


def main() -> int:
    try:
        _committed()
        _named_in_the_changelog()
        sdist, wheel = _built()
        _checked(sdist, wheel)
        for file in (sdist, wheel):
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB, {_installed(file)}")
    except (Unfit, subprocess.CalledProcessError) as error:
        print(f"not to be released: {error}", file=sys.stderr)
        return 1
    return 0


def _committed() -> None:
    if changed := _said(["git", "status", "--porcelain"], ROOT):
        raise Unfit(f"a release is what a commit holds; commit or remove first:\n{changed}")


def _named_in_the_changelog() -> None:
    heading = rf"^## {re.escape(__version__)}\b"
    if not re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        raise Unfit(f"CHANGELOG.md has no heading for {__version__}, the version of plugins/kafka_sla/__init__.py")


def _built() -> tuple[Path, Path]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        _run(
            [*_UV, "build", "--python", sys.executable, "--no-build-isolation", "--out-dir", str(DIST), "--clear"],
            folder,
        )
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    return sdist, wheel


def _checked(sdist: Path, wheel: Path) -> None:
    """Metadata that an index takes, and every file of the packages in both."""
    _run([*_UV, "tool", "run", "twine", "check", "--strict", str(sdist), str(wheel)], ROOT)
    with tarfile.open(sdist) as archive:
        in_sdist = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    packages = _said(["git", "ls-files", "plugins/kafka_sla", "spark_jobs", "expectations"], ROOT).splitlines()
    for path in (path for path in packages if not (ROOT / path).is_symlink()):
        name = path.removeprefix("plugins/") if path.startswith("plugins/") else f"kafka_sla/{path}"
        if name not in in_wheel:
            raise Unfit(f"{path} is not in {wheel.name}")
    if missing := [name for name in _IN_SDIST if name not in in_sdist]:
        raise Unfit(f"{', '.join(missing)} is not in {sdist.name}")


def _installed(file: Path) -> str:
    """Install it for workers into an environment of its own; how that went."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        _run([*_UV, "venv", "--python", sys.executable, folder], ROOT)
        _run([*_UV, "pip", "install", "--python", python, f"{file}[worker]"], ROOT)
        _run([*_UV, "pip", "check", "--python", python], ROOT)
        for line in _SHOWN:
            _run([python, "-c", line], folder)
        said = _said([f"{folder}/bin/kafka-sla", "--version"], Path(folder))
    if said != f"kafka-sla {__version__}":
        raise Unfit(f"{file.name} installed says {said!r}")
    return f"installs alone, says {said}"


def _run(command: list[str], where: str | Path) -> None:
    subprocess.run(command, cwd=where, check=True)


def _said(command: list[str], where: Path) -> str:
    return subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
