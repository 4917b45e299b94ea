"""Where this project keeps what it can make again. Knows none of it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from kafka_sla.errors import SettingsError


def cached(name: str) -> Path:
    """The file of this name where it has been made, or where it can be. An image may hold it in a home that nobody can
    write to when it runs. Raises SettingsError."""
    there = (folder / name for folder in _folders() if (folder / name).exists())
    return next(there, None) or cache_folder() / name


def cache_folder() -> Path:
    """A folder that can be written to: below XDG_CACHE_HOME or ~/.cache; containers may have no such home, and keep
    what they make in a folder of this user's own beside temporary files. Raises SettingsError."""
    return next(filter(_is_writable, _folders()), None) or _own_temporary()


def _folders() -> list[Path]:
    """Those that there are, best first; in the last one nobody else can have left code that would run here."""
    found, own = os.environ.get("XDG_CACHE_HOME") or _home_cache(), _temporary()
    return [*([Path(found) / "kafka_sla"] if found else []), *([own] if _is_ours(own) else [])]


def _home_cache() -> str | None:
    try:
        return str(Path.home() / ".cache")
    except RuntimeError:  # neither HOME nor an entry of this user
        return None


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"kafka_sla-{os.getuid()}"


def _own_temporary() -> Path:
    folder = _temporary()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"there is no folder for what can be made again: neither ~/.cache nor {folder} can be written to"
            f" ({error.strerror}); set XDG_CACHE_HOME to one that can"
        ) from None
    if not _is_ours(folder):
        raise SettingsError(
            f"{folder} is somebody else's, or others can write to it, and code must not run from there: set"
            " XDG_CACHE_HOME to a folder of this user's own"
        )
    return folder


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
