"""What each command of `kafka-sla` does: it calls the rooms that do the work, and prints. Knows no option's help. A
room is imported when its command runs: the others need not wait for it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import EVERYTHING, Interval

if TYPE_CHECKING:
    from kafka_sla.cli.context import Workplace
    from kafka_sla.lake.export_files import Format


def _check(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.check import connection_findings, findings

    found = connection_findings(place, asked.connection) if asked.connection else findings(place)
    if asked.json:
        listed = list(found)
        _print_json([{"ok": one.ok, "text": one.text, "remediation": one.cure or None} for one in listed])
        return int(not all(one.ok for one in listed))
    failed = False
    for finding in found:
        failed = failed or not finding.ok
        label = "FAIL" if not finding.ok else "note" if finding.cure else "ok  "
        print(f"{label} {finding.text}" + (f"\n     {finding.cure}" if finding.cure else ""))
        if finding.entry:
            print(f"\n{finding.entry}")
    return int(failed)


def _init(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.first_configuration import first_configuration
    from kafka_sla.files import write_text

    if asked.output.exists():
        raise BadRequest(f"{asked.output} is there already; name another file with --output, or move it away")
    _check_output(asked.output)
    write_text(str(asked.output.absolute()), first_configuration(asked.cluster, asked.group, asked.topic))
    print(f"{asked.output}: next, define its connection as its comments say, then run: kafka-sla check")
    return 0


def _completion(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.arguments import parser
    from kafka_sla.cli.completion import script

    print(script(parser()))
    return 0


def _schema(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.config.settings import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def _import(place: Workplace, asked: argparse.Namespace) -> int:
    if not asked.log_offsets and not asked.committed_offsets:
        raise BadRequest("nothing to import: name files with --log-offsets or --committed-offsets")
    from kafka_sla.cli.progress import step
    from kafka_sla.lake.import_files import import_committed_offsets, import_log_offsets
    from kafka_sla.lake.lake import Lake

    clusters = [cluster.name for cluster in place.settings.clusters]
    lake = Lake(place.store)
    lake.check_writable()
    for files, read in ((asked.log_offsets, import_log_offsets), (asked.committed_offsets, import_committed_offsets)):
        for file in files:
            with step(f"import {file}"):
                landed = read(lake, file, clusters)
            print(f"{file}: {landed} new rows")
    return 0


def _run(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli import local_run
    from kafka_sla.cli.status_text import interval_text
    from kafka_sla.ledger.ledger import Ledger

    plan = local_run.plan(place.settings, _interval(asked), asked.cluster, asked.sla, datetime.now(UTC))
    local_run.execute(place, replace(plan, notify=asked.notify, memory=asked.driver_memory))
    ledger = Ledger(place.store)
    print(interval_text(plan.slas, ledger, plan.interval))
    return int(any(sla.on_miss == "fail" and ledger.verdicts.misses(sla, plan.interval) for sla in plan.slas))


def _sample(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.sampling import sample_clusters
    from kafka_sla.pipeline.sampling import Pace

    pace = Pace(asked.every / 1000, asked.land_every / 1000, place.settings.window_ms)
    landed = sample_clusters(place, asked.cluster, pace, asked.lasting and asked.lasting / 1000)
    print(f"{landed} new rows")
    return 0


def _status(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.status import status_values
    from kafka_sla.cli.status_text import status_text
    from kafka_sla.ledger.ledger import Ledger

    ledger = Ledger(place.store)
    if asked.json:
        _print_json(status_values(place.settings, ledger))
    else:
        print(status_text(place.settings, ledger, wide=asked.wide))
    return 0


def _misses(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.status_text import miss_text
    from kafka_sla.ledger.ledger import Ledger

    sla = place.settings.sla(asked.sla).name if asked.sla else None
    verdicts = Ledger(place.store).verdicts
    found = verdicts.misses(sla, _interval(asked), open_only=asked.open)
    if asked.json:
        _print_json([asdict(miss) for miss in found])
    else:
        since = [Interval(miss.start, miss.end or EVERYTHING.end) for miss in found]
        texts = [miss_text(m, () if m.end else verdicts.windows(m.sla, i)) for m, i in zip(found, since, strict=True)]
        print("\n\n".join(texts) or "no misses")
    return 0


def _report(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.ledger.ledger import Ledger
    from kafka_sla.reporting.report import write_report

    _check_output(asked.output)
    slas = [place.settings.sla(name) for name in asked.sla] or place.settings.slas
    print(write_report(asked.output, Ledger(place.store), slas, _interval(asked)))
    return 0


def _digest(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.notifications import digest_delivery

    settings, store = place.settings, place.store
    at = digest_delivery.day_asked(settings.digest(asked.name), asked.day, datetime.now(UTC))
    if asked.output:
        _check_output(asked.output)
    made = digest_delivery.make_digest(settings, store, asked.name, at, asked.output and str(asked.output.absolute()))
    print(f"{made['digest']}, {made['period']}: {made['summary']}\n{made['page']}")
    if asked.mail_to:
        if place.smtp is None:
            raise BadRequest("the configuration names no smtp_connection; name one, or leave --mail-to out")
        digest_delivery.mail_digest(settings, store, asked.name, at, place.smtp, to=[asked.mail_to])
        print(f"mailed to {asked.mail_to}")
    return 0


def _export(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.lake.aggregate import rolled_up
    from kafka_sla.lake.export_files import write_file, write_stream
    from kafka_sla.lake.lake import Lake

    target, form = asked.output, _form(asked)
    _check_export(asked, form)
    clusters = [place.settings.cluster(name).name for name in asked.cluster] or None
    rows = Lake(place.store).published(asked.table, _interval(asked), clusters)
    if asked.by != "partition":
        rows = rolled_up(rows, asked.by)
    if target is None:
        write_stream(rows, form, sys.stdout.buffer)
    else:
        write_file(rows, form, target)
        print(f"{target}: {rows.num_rows} rows", file=sys.stderr)
    return 0


def _store(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.store import command

    return command(place, asked)


def _form(asked: argparse.Namespace) -> Format:
    """The format that was asked for, else the one that the file's name ends in, else CSV."""
    ending = asked.output.suffix.lower() if asked.output else ""
    endings: dict[str, Format] = {".json": "json", ".parquet": "parquet"}
    form: Format = asked.format or endings.get(ending, "csv")
    return form


def _check_export(asked: argparse.Namespace, form: str) -> None:
    if asked.by != "partition" and asked.table != "consumer_latency":
        raise BadRequest(f"--by {asked.by} sums up consumer_latency only; leave it out for {asked.table}")
    if asked.output is None and form == "parquet":
        raise BadRequest("Parquet is not for terminals: name a file with --output")
    if asked.output is not None:
        _check_output(asked.output)


def _check_output(target: Path) -> None:
    if not target.absolute().parent.is_dir():
        raise BadRequest(f"the folder of --output {target} does not exist; make it first")
    if target.is_dir():
        raise BadRequest(f"--output {target} is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise BadRequest(f"--output {target} is a device or a pipe, which a file would replace; name a file")


def _interval(asked: argparse.Namespace) -> Interval:
    start, end = asked.start or EVERYTHING.start, asked.end or EVERYTHING.end
    if end <= start:
        raise BadRequest("--to must be after --from")
    return Interval(start, end)


def _print_json(values: Any) -> None:
    print(json.dumps(values, default=datetime.isoformat, indent=2, ensure_ascii=False))


COMMANDS = {
    "check": _check, "schema": _schema, "import": _import, "run": _run,
    "sample": _sample, "status": _status, "misses": _misses, "report": _report, "digest": _digest,
    "export": _export, "store": _store,
    "init": _init, "completion": _completion,
}  # fmt: skip
