"""Files of a warehouse that nobody needs any more: moved to its trash first, deleted from there later. Touches no file
that this project cannot have written, wherever it lies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from kafka_sla.errors import StoreError
from kafka_sla.files import files_below, move_files, remove_empty_folder, remove_files
from kafka_sla.model.tables import FACTS, METRICS

_STAMP = "%Y%m%dT%H%M%SZ"
_AREAS = ("staging", "published", "facts", "commit_records", "unreadable_commit_records", "kafka_sla")
_HEX = "[0-9a-f]{32}"
_PARQUET = rf"\.parquet(\.{_HEX}\.part)?"
_OURS = re.compile(
    rf"staging/{_HEX}/.+"
    rf"|published/({'|'.join(t.name for t in METRICS)})/{_HEX}-[0-9a-f]{{16}}{_PARQUET}"
    rf"|facts/({'|'.join(t.name for t in FACTS)})/\d{{4}}-\d\d-\d\d/{_HEX}{_PARQUET}"
    rf"|(?:unreadable_)?commit_records/[^/]+/\d+-\d+{_PARQUET}"
    rf"|kafka_sla/({'|'.join(t.name for t in (*FACTS, *METRICS))})/metadata/[^/]+\.(metadata\.json|avro)"
)
"""Every path that this project writes below a warehouse, except for reports and the marker of the store."""
_TRASHED = re.compile(rf"(?P<stamp>\d{{8}}T\d{{6}}Z)/({_OURS.pattern})")


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep of a warehouse. What it moves lies below `trash/<time of the sweep>/` under its old path."""

    warehouse: str
    now: datetime

    def trash(self, needed: Set[str], kept: tuple[str, ...], before: datetime) -> int:
        """Move files last written to before `before` that are not needed and not below the folders `kept`."""
        if elsewhere := next((path for path in sorted(needed) if not path.startswith(f"{self.warehouse}/")), None):
            raise StoreError(
                f"nothing was swept: tables of the store need {elsewhere}, which is not below the warehouse"
                f" {self.warehouse}: name the warehouse by the path that the tables were made under"
            )
        old = [path for path, at in self._ours().items() if at < before]
        gone = [path for path in old if path not in needed and not path.startswith(kept)]
        moved = move_files(gone, self.warehouse, f"{self._trash}{self.now.astimezone(UTC):{_STAMP}}")
        staging = f"{self.warehouse}/staging/"
        for load_id in {path.removeprefix(staging).split("/", 1)[0] for path in gone if path.startswith(staging)}:
            remove_empty_folder(staging + load_id)
        return moved

    def delete_trash(self, before: datetime) -> int:
        """Delete what was moved to the trash before `before`."""
        gone: dict[str, list[str]] = {}
        for path in files_below(self._trash):
            found = _TRASHED.fullmatch(path.removeprefix(self._trash))
            if found and datetime.strptime(found["stamp"], _STAMP).replace(tzinfo=UTC) < before:
                gone.setdefault(found["stamp"], []).append(path)
        return sum(self._deleted(stamp, paths) for stamp, paths in gone.items())

    def _deleted(self, stamp: str, paths: Iterable[str]) -> int:
        deleted = remove_files(paths)
        remove_empty_folder(self._trash + stamp)
        return deleted

    def _ours(self) -> dict[str, datetime]:
        found: dict[str, datetime] = {}
        for area in _AREAS:
            found |= files_below(f"{self.warehouse}/{area}")
        return {path: at for path, at in found.items() if _OURS.fullmatch(path.removeprefix(f"{self.warehouse}/"))}

    @property
    def _trash(self) -> str:
        return f"{self.warehouse}/trash/"
