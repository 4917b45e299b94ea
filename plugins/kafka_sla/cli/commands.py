"""What each command of `kafka-sla` does: it calls the rooms that do the work, and prints. A room is imported when its
command runs: the others need not wait for it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kafka_sla.cli.console.requested import interval_of, output_file
from kafka_sla.cli.console.results import show, show_json
from kafka_sla.errors import BadRequest

if TYPE_CHECKING:
    from kafka_sla.cli.console.context import Workplace


def _check(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.check import connection_findings, findings

    found = connection_findings(place, asked.connection) if asked.connection else findings(place)
    if asked.json:
        listed = list(found)
        show_json(
            [
                {"ok": one.ok, "text": one.text, "remediation": one.cure or None, "entry": one.entry or None}
                for one in listed
            ]
        )
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
    target = output_file(asked.output)
    write_text(str(target), first_configuration(asked.cluster, asked.group, asked.topic))
    text = f"{asked.output}: next, define its connection as its comments say, then run: kafka-sla check"
    show(asked, {"configuration": asked.output}, lambda: text)
    return 0


def _completion(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.completion import script
    from kafka_sla.cli.console.arguments import parser

    print(script(parser()))
    return 0


def _schema(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.config.settings import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def _import(place: Workplace, asked: argparse.Namespace) -> int:
    if not asked.log_offsets and not asked.committed_offsets:
        raise BadRequest("nothing to import: name files with --log-offsets or --committed-offsets")
    from kafka_sla.cli.console.progress import step
    from kafka_sla.lake.import_files import import_committed_offsets, import_log_offsets
    from kafka_sla.lake.lake import Lake

    clusters = [cluster.name for cluster in place.settings.clusters]
    lake = Lake(place.store)
    lake.check_writable()
    landed = []
    for files, read in ((asked.log_offsets, import_log_offsets), (asked.committed_offsets, import_committed_offsets)):
        for file in files:
            with step(f"import {file}"):
                landed.append({"file": file, "new_rows": read(lake, file, clusters)})
            if not asked.json:
                print(f"{file}: {landed[-1]['new_rows']} new rows")
    if asked.json:
        show_json(landed)
    return 0


def _run(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli import local_run
    from kafka_sla.cli.status import interval_values
    from kafka_sla.cli.status_text import interval_text
    from kafka_sla.ledger.ledger import Ledger

    plan = local_run.plan(place.settings, interval_of(asked), asked.cluster, asked.sla, datetime.now(UTC))
    local_run.execute(place, replace(plan, notify=asked.notify, memory=asked.driver_memory))
    ledger = Ledger(place.store)
    judged = interval_values(plan.slas, ledger, plan.interval)
    values = {"from": plan.interval.start, "to": plan.interval.end, "clusters": plan.clusters, "slas": judged}
    show(asked, values, lambda: interval_text(plan.slas, ledger, plan.interval))
    failing = (sla for sla in plan.slas if sla.on_miss == "fail")
    return int(any(not miss.exclusion for sla in failing for miss in ledger.verdicts.misses(sla, plan.interval)))


def _sample(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.sampling import sample_clusters
    from kafka_sla.pipeline.sampling import Pace

    pace = Pace(asked.every / 1000, asked.land_every / 1000, place.settings.window_ms)
    landed = sample_clusters(place, asked.cluster, pace, asked.lasting and asked.lasting / 1000)
    show(asked, {"new_rows": landed}, lambda: f"{landed} new rows")
    return 0


def _spark_server(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.spark.server import become_server

    become_server(asked.port, address=asked.address, memory=asked.driver_memory, master=asked.master)


def _status(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.status import cluster_status, status_values
    from kafka_sla.cli.status_text import status_text
    from kafka_sla.lake.lake import Lake
    from kafka_sla.lake.queries.pace_rows import published_catch_ups
    from kafka_sla.ledger.ledger import Ledger
    from kafka_sla.pipeline.chain_rows import newest_chains

    settings, ledger = place.settings, Ledger(place.known_store)
    clusters = cluster_status(settings, ledger)
    until = {c.cluster: c.last.end for c in clusters if c.last}
    lake = Lake(place.known_store)
    paces = published_catch_ups(lake, settings.slas, until, settings.window_ms)
    chains = newest_chains(lake, settings.slas, until, settings.window_ms)
    if asked.json:
        show_json(status_values(settings, ledger, paces, clusters, chains))
    else:
        print(status_text(settings, ledger, paces, clusters, chains, wide=asked.wide))
    return 0


def _misses(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.status_text import miss_text
    from kafka_sla.ledger.ledger import Ledger
    from kafka_sla.sla.miss_rule import remove_miss

    sla = place.settings.sla(asked.sla).name if asked.sla else None
    ledger = Ledger(place.known_store)
    configured = {sla.name for sla in place.settings.slas}
    misses = ledger.verdicts.misses(sla, interval_of(asked), open_only=asked.open)
    found = [miss if miss.sla in configured else remove_miss(miss) for miss in misses]
    if asked.open:
        found = [miss for miss in found if miss.state == "open"]
    if asked.json:
        incidents = ledger.alert_reports.incidents_of(found)
        show_json([asdict(miss) | {"incident": incidents.get(miss.id)} for miss in found])
    else:
        print("\n\n".join(map(miss_text, found)) or "no misses")
    return 0


def _exclusions(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.exclusions import command

    return command(place, asked)


def _report(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.documents import report

    return report(place, asked)


def _digest(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.documents import digest

    return digest(place, asked)


def _suggest(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.suggest import command

    return command(place, asked)


def _export(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.documents import export

    return export(place, asked)


def _import_slo(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.documents import import_slo

    return import_slo(place, asked)


def _export_slo(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.documents import export_slo

    return export_slo(place, asked)


def _store(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.store import command

    return command(place, asked)


COMMANDS = {
    "check": _check,
    "schema": _schema,
    "import": _import,
    "run": _run,
    "sample": _sample,
    "spark-server": _spark_server,
    "status": _status,
    "misses": _misses,
    "exclusions": _exclusions,
    "report": _report,
    "digest": _digest,
    "suggest": _suggest,
    "export": _export,
    "store": _store,
    "import-slo": _import_slo,
    "export-slo": _export_slo,
    "init": _init,
    "completion": _completion,
}
