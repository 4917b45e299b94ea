"""Where this project keeps what it can make again, and what it needs for a moment. Knows none of it."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from kafka_sla.errors import SettingsError

_MONTH_S = 30 * 24 * 3600
_SET = "set TMPDIR or XDG_CACHE_HOME to a folder of this user's own"


def cached(name: str) -> Path | None:
    """The file of this name where it has been made. An image may hold it in a home that nobody can write to when it
    runs."""
    places = [folder / name for folder in _folders()]
    found = next(filter(os.path.exists, places), None)  # unlike Path.exists, False where nobody may look
    if found:
        with suppress(OSError):  # an image's cannot be touched
            os.utime(found)
    return found


def forget_unused(kind: str) -> None:
    """Delete files `kind-…` that nobody has asked for in a month: each version of what they are made of leaves one."""
    for path in cache_folder().glob(f"{kind}-*"):
        with suppress(OSError):  # another process may be faster
            if path.is_file() and path.stat().st_mtime < time.time() - _MONTH_S:
                path.unlink()


def cache_folder() -> Path:
    """A folder that can be written to: below XDG_CACHE_HOME or ~/.cache; containers may have no such home, and keep
    what they make in a folder of this user's own beside temporary files. Raises SettingsError."""
    return next(filter(_is_writable, _folders()), None) or own_temporary()


def own_temporary() -> Path:
    """A folder beside temporary files in which nobody else can have left anything. Raises SettingsError."""
    folder = _temporary()
    if folder is None:
        raise SettingsError(f"there is no folder for temporary files that can be written to: {_SET}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"{folder} cannot be made ({error.strerror}): {_SET}") from None
    if not _is_ours(folder):
        raise SettingsError(f"{folder} is somebody else's, or others can write to it, and must not be used: {_SET}")
    return folder


def _folders() -> list[Path]:
    """Those that there are, best first; in the last one nobody else can have left code that would run here."""
    found, own = os.environ.get("XDG_CACHE_HOME") or _home_cache(), _temporary()
    return [*([Path(found) / "kafka_sla"] if found else []), *([own] if own and _is_ours(own) else [])]


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


def _temporary() -> Path | None:
    try:
        return Path(tempfile.gettempdir()) / f"kafka_sla-{os.getuid()}"
    except FileNotFoundError:  # nowhere can anything be written
        return None


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
