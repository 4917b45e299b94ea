"""The commands that write files of what was published, and SLAs as OpenSLO has them. Measures and judges nothing."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.requested import interval_of, output_file
from kafka_sla.cli.console.results import show
from kafka_sla.config.settings import Settings
from kafka_sla.errors import BadRequest
from kafka_sla.text.timestamps import instant_text

if TYPE_CHECKING:
    from kafka_sla.lake.files.export_files import Format


def report(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.ledger.ledger import Ledger
    from kafka_sla.reporting.report import write_report

    target = output_file(asked.output)
    slas, interval = [place.settings.sla(name) for name in asked.sla] or place.settings.slas, interval_of(asked)
    if interval.start >= datetime.now(UTC):
        raise BadRequest(f"--from {instant_text(interval.start)} is in the future: there is nothing to report yet")
    write_report(target, Ledger(place.known_store), slas, interval)
    show(asked, {"page": asked.output, "slas": [sla.name for sla in slas]}, lambda: str(asked.output))
    return 0


def digest(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.notifications import digest_delivery

    settings, store, smtp = place.settings, place.known_store, place.smtp if asked.mail_to else None
    at = digest_delivery.day_asked(settings.digest(asked.name), asked.day, datetime.now(UTC))
    target = asked.output and output_file(asked.output)
    if asked.mail_to and smtp is None:
        raise BadRequest("the configuration names no smtp_connection; name one, or leave --mail-to out")
    made = digest_delivery.make_digest(settings, store, asked.name, at, str(target) if target else None)
    if smtp:
        digest_delivery.mail_digest(settings, store, asked.name, at, smtp, to=[asked.mail_to])
    mailed = f"\nmailed to {asked.mail_to}" if smtp else ""
    text = f"{made['digest']}, {made['period']}: {made['summary']}\n{made['page']}{mailed}"
    show(asked, {**made, "mailed_to": asked.mail_to}, lambda: text)
    return 0


def export(place: Workplace, asked: argparse.Namespace) -> int:
    from kafka_sla.cli.console.progress import note
    from kafka_sla.lake.files.export_files import write_file, write_stream
    from kafka_sla.lake.lake import Lake
    from kafka_sla.lake.queries.aggregate import rolled_up

    form = _form(asked)
    _check(asked, form)
    target = asked.output and output_file(asked.output)
    clusters = [place.settings.cluster(name).name for name in asked.cluster] or None
    rows = Lake(place.known_store).published(asked.table, interval_of(asked), clusters)
    if asked.by != "partition":
        rows = rolled_up(rows, asked.by)
    if target is None:
        write_stream(rows, form, sys.stdout.buffer)
    else:
        write_file(rows, form, target)
        note(f"{asked.output}: {rows.num_rows} rows")
    return 0


def _form(asked: argparse.Namespace) -> Format:
    """The format that was asked for, else the one that the file's name ends in, else CSV."""
    ending = asked.output.suffix.lower() if asked.output else ""
    endings: dict[str, Format] = {".json": "json", ".parquet": "parquet"}
    form: Format = asked.format or endings.get(ending, "csv")
    return form


def _check(asked: argparse.Namespace, form: str) -> None:
    if asked.by != "partition" and asked.table != "consumer_latency":
        raise BadRequest(f"--by {asked.by} sums up consumer_latency only; leave it out for {asked.table}")
    if asked.output is None and form == "parquet":
        raise BadRequest("Parquet is not for terminals: name a file with --output")


def export_slo(place: Workplace, asked: argparse.Namespace) -> int:
    """Write the SLAs of the configuration; 1 when one of them does not fit."""
    import yaml

    from kafka_sla.cli.console.progress import note, warn
    from kafka_sla.config.openslo.exported_documents import export_slos

    target, settings = asked.output and output_file(asked.output), place.settings
    wanted = [settings.sla(name).name for name in asked.sla] or [sla.name for sla in settings.slas]
    documents, unfit = [], 0
    for name, document, notes in export_slos(place.raw_slas, settings.window_ms):
        if name in wanted:
            unfit += document is None
            documents += [document] if document else []
            for text in notes:
                note(f"{name}: {text}") if document else warn(f"{name}: not exported: {text}")
    _write(target, yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True))
    return int(unfit > 0)


def import_slo(place: Workplace, asked: argparse.Namespace) -> int:
    """Print the SLAs of OpenSLO documents as entries of a configuration; 1 when one of them does not fit."""
    import yaml

    from kafka_sla.cli.console.progress import warn
    from kafka_sla.config.openslo.imported_documents import import_slos

    target = asked.output and output_file(asked.output)
    slas: list[dict[str, Any]] = []
    unfit = 0
    for name, found in import_slos(_documents(asked.file), asked.window or _window_ms(place)):
        slas += found.slas
        unfit += bool(found.problems)
        for text in found.problems:
            warn(f"{name}: not imported: {text}")
        for path in found.left_out:
            warn(f"{name}: left out: {path}")
    _write(target, yaml.safe_dump({"slas": slas}, sort_keys=False, allow_unicode=True))
    return int(unfit > 0)


def _window_ms(place: Workplace) -> int:
    """The configuration's `window`; its default where there is none, for SLAs may be what it is to begin with."""
    return place.settings.window_ms if place.is_configured else Settings(()).window_ms


def _documents(path: Path) -> list[Any]:
    """The YAML documents of a file; a document that is a list counts as the documents in it, as OpenSLO's Go SDK
    writes them. Times stay the text that they are in the file, for messages."""
    import yaml

    class TextTimesLoader(yaml.SafeLoader):
        """Reads a time as text."""

    TextTimesLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        documents = list(yaml.load_all(path.read_text(), TextTimesLoader))
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise BadRequest(f"{path} is nested too deeply to be an OpenSLO document") from error
    lists = [document if isinstance(document, list) else [document] for document in documents]
    return [document for each in lists for document in each if document is not None]


def _write(target: Path | None, text: str) -> None:
    from kafka_sla.files import write_text

    if target is None:
        sys.stdout.write(text)
        return
    write_text(str(target), text)
