"""The marker file of a warehouse: to which store its files belong, and the newest state that the store reached. Knows
no database."""

from __future__ import annotations

import json
from typing import NamedTuple

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import create_text, entries_of, reached, read_text, write_text

HELP = "see docs/how-to/restore-a-store.md"
_ABOUT = "This folder is the warehouse of a kafka-sla store. Leave this file here: it ties the files to their database."


class State(NamedTuple):
    """A state that a store reached; whoever knows it knows every file that the warehouse held then."""

    store_id: str
    state: str


class Marker:
    """The marker of one warehouse."""

    def __init__(self, store: Store) -> None:
        self._folder = store.warehouse
        self._path = f"{store.warehouse}/kafka_sla_store.json"
        self._catalog = store.catalog_name

    def read(self) -> State | None:
        """None: there is none."""
        try:
            with reached(self._folder):
                text = _text_if_there(self._path)
            if text is None:
                return None
            read = json.loads(text)
            if read.get("catalog", "") != self._catalog:
                raise self._elsewhere(read.get("catalog", ""))
            return _state(read["store_id"], read["state"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(
                f"{self._path} is damaged: if the database of the store is the right one, delete this file; {HELP}"
            ) from error

    def create(self, state: State) -> None:
        """Write the marker unless somebody was faster."""
        with reached(self._path):
            create_text(self._path, self._text(state))

    def replace(self, state: State) -> None:
        with reached(self._path):
            write_text(self._path, self._text(state))

    def _text(self, state: State) -> str:
        catalog = {"catalog": self._catalog} if self._catalog else {}
        return json.dumps({"about": _ABOUT, **state._asdict(), **catalog}, indent=2) + "\n"

    def _elsewhere(self, catalog: str) -> StoreError:
        own = "the store's database"
        return StoreError(
            f"the tables of the warehouse {self._folder} are named by the {catalog or own}, not by the"
            f" {self._catalog or own}: correct `catalog` in the extra of the store's connection; if the catalog itself"
            f" was moved, write its new name into {self._path}; nothing was changed"
        )

    def strangers(self, *known: str) -> list[str]:
        """What else lies in the warehouse, besides what begins with one of these paths."""
        return [path for path in entries_of(self._folder) if not path.startswith((self._path, *known))]


def _state(store_id: object, state: object) -> State:
    if not isinstance(store_id, str) or not isinstance(state, str):
        raise TypeError("not text")
    return State(store_id, state)


def _text_if_there(path: str) -> str | None:
    try:
        return read_text(path)
    except FileNotFoundError:
        return None
