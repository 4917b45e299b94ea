"""`kafka-sla store`: look for damage, repair it, copy a store, adapt one that was moved. Mends nothing itself."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_sla.cli import local_run
from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.progress import step
from kafka_sla.cli.console.results import show, show_json
from kafka_sla.config.env_connections import environment_connection
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest, SettingsError
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.recovery.damage import Damage, Inspection
from kafka_sla.lake.recovery.relocation import move
from kafka_sla.lake.recovery.repair import Repair
from kafka_sla.lake.recovery.store_copy import copy_store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.pipeline.rollup_builder import sum_up
from kafka_sla.text.formatting import plural

_MEASURED = ("metrics", "load")
_CONSEQUENCES = {
    "catalog": "repair: made anew from the table's files",
    "facts": "repair: what can be read of it is kept, the rest is lost; where Kafka still remembers it, `kafka-sla run`"
    " of that time brings it back",
    "metrics": "repair: measured again from stored facts",
    "load": "repair: measured again from stored facts",
    "windows": "repair: judged again, from what was measured",
    "sums": "repair: added up anew",
}


def command(place: Workplace, asked: argparse.Namespace) -> int:
    """Run what was asked for; 1 where a store is damaged, or stays so."""
    return {"check": _check, "repair": _repair, "copy": _copy, "move": _move}[asked.what](place, asked)


def _move(place: Workplace, asked: argparse.Namespace) -> int:
    store = place.moved_store
    found = move(store)
    text = f"{store.warehouse}: {found.tables} tables moved, {found.files} files in them"
    show(asked, {"warehouse": store.warehouse, "tables": found.tables, "files": found.files}, lambda: text)
    return 0


def _copy(place: Workplace, asked: argparse.Namespace) -> int:
    if (asked.target is None) == (asked.to_connection is None):
        raise BadRequest("name where to copy the store: a folder, or --to-connection with a connection of a store")
    target = (
        Store.embedded(asked.target)
        if asked.target
        else Store.from_connection(environment_connection(asked.to_connection, kind="store"))
    )
    source = place.known_store
    with step(f"copy {source.warehouse}") as say:
        copied = copy_store(source, target, say)
    text = f"{target.warehouse}: {plural(copied.files, 'file')} copied, {copied.bytes:,} bytes; checked and ready"
    show(asked, {"warehouse": target.warehouse, "files": copied.files, "bytes": copied.bytes}, lambda: text)
    return 0


def _check(place: Workplace, asked: argparse.Namespace) -> int:
    found, inspection = _look(place.known_store)
    show(asked, _values(found, inspection), lambda: _text(found, inspection))
    return int(bool(found))


def _repair(place: Workplace, asked: argparse.Namespace) -> int:
    """As JSON one object at the end; else what is damaged now is printed before anything is changed."""
    if asked.json and not asked.yes:
        raise BadRequest("repair with --json puts no question: add --yes, once nothing else uses the store")
    found, inspection = _look(place.known_store)
    before = found
    if not asked.json:
        print(_text(found, inspection))
    if found:
        found, inspection = _mended(place, asked, found)
    if asked.json:
        show_json({"before": [_damage(damage) for damage in before], "after": _values(found, inspection)})
    elif before:
        print(_text(found, inspection))
    return int(bool(found))


def _mended(place: Workplace, asked: argparse.Namespace, found: list[Damage]) -> tuple[list[Damage], Inspection]:
    """The store once all that can be repaired is."""
    settings = None if asked.without_measuring else _settings(place)
    if not asked.yes and not _agreed():
        raise BadRequest("nothing was changed: answer y, or say --yes, once nothing else uses the store")
    for kind in ("catalog", "facts"):  # what a table names is known once it can be read
        if damages := [damage for damage in found if damage.kind == kind]:
            with step(f"mend {plural(len(damages), 'damage')} of {kind}"):
                Repair(place.store).tables(damages)
            found, _ = _look(place.store)
    if settings:
        _measure_again(place, [damage for damage in found if damage.kind in _MEASURED])
    with step("move what is damaged to the trash"):
        Repair(place.store).drop_loads({damage.load_id for damage in found if damage.kind in _MEASURED})
    if settings:
        _judge_again(place, settings, [damage for damage in found if damage.kind == "windows"])
        _sum_up(place, settings, [damage.where for damage in found if damage.kind == "sums"])
    return _look(place.store)


def _look(store: Store) -> tuple[list[Damage], Inspection]:
    inspection = Inspection(store)
    with step(f"read {store.warehouse}") as say:
        return list(inspection.damages(say)), inspection


def _settings(place: Workplace) -> Settings:
    """The configuration, without which nothing can be measured again."""
    try:
        return place.settings
    except SettingsError as error:
        raise BadRequest(
            f"{error}\nRepair measures again, which needs the configuration: name it with --config, or say"
            " --without-measuring, which leaves a gap where metrics were damaged"
        ) from error


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    return input("Repair it now, with nothing else using the store? [y/N] ").strip().lower() in ("y", "yes")


def _measure_again(place: Workplace, damages: Sequence[Damage]) -> None:
    """The time of each damaged load that is shown, in order: one carries on where the one before it ended."""
    wanted: dict[Interval, set[str]] = defaultdict(set)
    for damage in damages:
        if damage.interval:
            wanted[damage.interval].update(damage.clusters)
    for interval in sorted(wanted, key=lambda one: (one.start, one.end)):
        local_run.measure_again(place, interval, sorted(wanted[interval]))


def _judge_again(place: Workplace, settings: Settings, damages: Sequence[Damage]) -> None:
    """The days of SLAs whose windows are lost; those of an SLA that is configured no more stay so."""
    by_name = {sla.name: sla for sla in settings.slas}
    for damage in damages:
        if damage.interval and (sla := by_name.get(damage.where)):
            local_run.judge(place, local_run.Run(damage.interval, (sla.cluster,), (sla,), live=False))


def _sum_up(place: Workplace, settings: Settings, names: Sequence[str]) -> None:
    lake, ledger = Lake(place.store), Ledger(place.store)
    judged = ledger.queries.judged_slas()
    for sla in settings.slas:
        if sla.name in names:
            with step(f"add up {sla.name}"):
                sum_up(sla, lake, ledger, judged[sla.name], settings.window_ms)


def _values(found: Sequence[Damage], inspection: Inspection) -> dict[str, Any]:
    return {"files": inspection.files, "rows": inspection.rows, "damages": [_damage(damage) for damage in found]}


def _damage(damage: Damage) -> dict[str, Any]:
    names = ("kind", "where", "problem", "table", "clusters", "rows", "load_id")
    span = damage.interval
    return {name: getattr(damage, name) for name in names} | {
        "from": span and span.start,
        "to": span and span.end,
        "remediation": _CONSEQUENCES[damage.kind],
    }


def _text(found: Sequence[Damage], inspection: Inspection) -> str:
    if not found:
        return (
            f"ok   {plural(inspection.files, 'file')} with {plural(inspection.rows, 'row')}: all as they were written"
        )
    return "\n".join(_line(damage) for damage in found)


def _line(damage: Damage) -> str:
    touched = f"{damage.interval}" if damage.interval else "nothing that is shown"
    if damage.kind in ("catalog", "sums"):
        touched = "all of it"
    of = f" of {', '.join(damage.clusters)}" if damage.clusters else ""
    what = f"{damage.where}: {damage.problem}" if Path(damage.where).suffix else damage.problem
    return f"FAIL {what}\n     touches {damage.table or 'the tables'}: {touched}{of}\n     {_CONSEQUENCES[damage.kind]}"
