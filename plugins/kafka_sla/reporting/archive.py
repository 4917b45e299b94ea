"""The archive of digests: where the page of each period is kept, what is there, and its text. Makes no page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast
from zoneinfo import ZoneInfo

from kafka_sla.config.store import Store
from kafka_sla.files import files_below, read_text
from kafka_sla.model.entities import Digest, Interval
from kafka_sla.reporting.digest_schedule import period_name, period_of

_FILE = re.compile(r"(?P<every>day|week|month)-(?P<start>\d{8}T\d{4})Z")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


Every = Literal["day", "week", "month"]


@dataclass(frozen=True, slots=True)
class Archived:
    """One page of the archive."""

    folder: str
    name: str
    """File name without its ending."""
    every: Every
    start: datetime
    """Of the period, UTC."""
    made_at: datetime
    digest: Digest | None
    """None: the configuration has no such digest any more, or its periods are others now."""

    @property
    def title(self) -> str:
        return self.digest.name if self.digest else self.folder

    @property
    def period(self) -> str:
        if self.digest:
            return period_name(self.digest, period_of(self.digest, self.start))
        return f"{self.every} from {self.start:%Y-%m-%d %H:%M} UTC"


def archive_path(store: Store, digest: Digest, period: Interval) -> str:
    """Where the page of a period is kept."""
    return f"{store.archive}/{page_name(digest, period)}.html"


def page_name(digest: Digest, period: Interval) -> str:
    """The page of a period within the archive, and within its address: `Payments/week-20261115T2300Z`."""
    return f"{folder_of(digest)}/{digest.every}-{period.start:%Y%m%dT%H%MZ}"


def folder_of(digest: Digest) -> str:
    """The digest's name as a folder; where it holds anything else, with a mark, so that no two digests share one."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", digest.name).strip("-.")
    if plain == digest.name:
        return plain
    return f"{plain or 'digest'}-{hashlib.sha256(digest.name.encode()).hexdigest()[:8]}"


def first_day(digest: Digest, start: datetime) -> str:
    """The day that names a period to people and forms, by the digest's clock: `2026-11-16`."""
    return f"{start.astimezone(ZoneInfo(digest.time_zone)):%Y-%m-%d}"


def archived(store: Store, digests: Sequence[Digest]) -> list[Archived]:
    """Every page that is kept, the newest period first."""
    known = {(folder_of(digest), digest.every): digest for digest in digests}
    pages = [
        page
        for path, made_at in files_below(store.archive).items()
        if (page := _page(path.removeprefix(f"{store.archive}/"), made_at, known))
    ]
    return sorted(pages, key=lambda page: (page.start, page.title), reverse=True)


def find(pages: Iterable[Archived], folder: str, name: str) -> Archived | None:
    return next((page for page in pages if (page.folder, page.name) == (folder, name)), None)


def text_of(store: Store, page: Archived) -> str:
    """The HTML of a page, pictures inside."""
    return read_text(f"{store.archive}/{page.folder}/{page.name}.html")


def _page(path: str, made_at: datetime, known: Mapping[tuple[str, Every], Digest]) -> Archived | None:
    """None for anything that no digest wrote."""
    folder, _, file = path.partition("/")
    name = file.removesuffix(".html")
    found = _FILE.fullmatch(name)
    if not found or name == file or not _FOLDER.fullmatch(folder):
        return None
    start, every = datetime.strptime(found["start"], "%Y%m%dT%H%M").replace(tzinfo=UTC), cast(Every, found["every"])
    return Archived(folder, name, every, start, made_at, known.get((folder, every)))
