"""The words of the command line: commands, options and their help, parsed to values. Does nothing with them."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kafka_sla import __version__
from kafka_sla.model.tables import TABLES
from kafka_sla.text.durations import DURATION, parse_duration
from kafka_sla.text.timestamps import parse_instant

CONFIG_VARIABLE = "KAFKA_SLA_CONFIG"
STORE_VARIABLE = "KAFKA_SLA_STORE"
CONFIG_FILE = "kafka_sla.yml"
STORE_FOLDER = "kafka_sla_store"
_LEAST_MEGABYTES = 512
_EPILOG = f"""\
The configuration is the file that --config names, else {CONFIG_VARIABLE}, else ./{CONFIG_FILE}.
The store is the folder that --store names, else the connection that the configuration names (store_connection) where
AIRFLOW_CONN_... defines it, else the folder {STORE_VARIABLE}, else ./{STORE_FOLDER}.
Times are ISO-8601 in UTC (2026-11-01, 2026-11-01T02:00Z), or how long ago (2h, 1d12h), or now.
Exit codes: 0 done; 1 failed (a broker, Spark, the store, a validation; a check that found a problem; a miss of an SLA
with on_miss: fail); 2 usage error (command line, configuration, connection); 130 stopped.
NO_COLOR is honored. --quiet leaves results, warnings and errors, --debug adds tracebacks to errors."""


def parser() -> argparse.ArgumentParser:
    """The parser of `kafka-sla`; `action` is the command's name."""
    made = argparse.ArgumentParser(
        "kafka-sla",
        description="Scheduled SLA reports for Kafka consumers, without a browser.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_places()],
    )
    made.add_argument("--version", action="version", version=f"kafka-sla {__version__}")
    commands = made.add_subparsers(dest="action", required=True, metavar="COMMAND")
    _init(_command(commands, "init", "write a first configuration to start from"))
    _check(
        _command(commands, "check", "check configuration, connections, permissions and versions, and say what to do")
    )
    _command(commands, "schema", "print the JSON Schema of the configuration, for editors")
    _import(_command(commands, "import", "bring facts from CSV or Parquet files"))
    _run(_command(commands, "run", "measure, publish and judge an interval, without Airflow"))
    _sample(_command(commands, "sample", "poll committed offsets between runs, where the commit log may not be read"))
    _spark_server(_command(commands, "spark-server", "run a Spark Connect server for measuring, until it is stopped"))
    _status(_command(commands, "status", "show what is published, the state of each SLA, and the last validation"))
    _misses(_command(commands, "misses", "show misses with their evidence"))
    _exclusions(_command(commands, "exclusions", "exclude past time of an SLA, with a reason, or take that back"))
    _report(_command(commands, "report", "write an HTML report of the SLAs in an interval"))
    _digest(_command(commands, "digest", "make a digest of the configuration, as a file or a mail"))
    _suggest(_command(commands, "suggest", "propose SLAs that fit what was published, as entries of a configuration"))
    _export(_command(commands, "export", "write published rows of a table"))
    _import_slo(_command(commands, "import-slo", "print the SLAs of OpenSLO documents as entries of a configuration"))
    _export_slo(_command(commands, "export-slo", "write the SLAs of the configuration as OpenSLO documents"))
    _store(_command(commands, "store", "check, repair, copy or move the store"))
    _command(commands, "completion", 'print what completes words in bash and zsh: eval "$(kafka-sla completion)"')
    return made


def _places() -> argparse.ArgumentParser:
    """Options that are understood before and after the command."""
    places = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    places.add_argument("--config", type=Path, metavar="FILE", help="the configuration")
    places.add_argument("--store", type=_folder, metavar="FOLDER", help="folder of the embedded store")
    places.add_argument("--quiet", action="store_true", help="no progress and no notes; warnings stay")
    places.add_argument("--debug", action="store_true", help="with an error, the traceback of the code")
    return places


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_places()],
    )
    return made


def _init(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--output", type=Path, default=Path(CONFIG_FILE), metavar="FILE", help=f"file to write ({CONFIG_FILE})"
    )
    command.add_argument("--cluster", default="prod", metavar="NAME", help="name of the Kafka cluster (prod)")
    command.add_argument("--group", default="payments-service", metavar="NAME", help="a consumer group to measure")
    command.add_argument("--topic", default="payments", metavar="NAME", help="a topic that it reads")
    _json(command, "where it was written")


def _status(command: argparse.ArgumentParser) -> None:
    command.add_argument("--wide", action="store_true", help="every figure, in lines of any length")
    _json(command, "all of it")


def _json(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--json", action="store_true", help=f"{what}, as JSON")


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--connection",
        metavar="ID",
        help="check this Kafka connection only, without a configuration, and print the cluster entry that fits it",
    )
    _json(command, "what was checked")


def _sample(command: argparse.ArgumentParser) -> None:
    _repeated(command, "--cluster", "sample this cluster only (repeat for more)")
    command.add_argument("--every", type=_duration, default=5_000, metavar="TIME", help="between polls (5s)")
    command.add_argument("--land-every", type=_duration, default=60_000, metavar="TIME", help="between batches (1m)")
    command.add_argument("--for", dest="lasting", type=_duration, metavar="TIME", help="end by itself after this time")
    _json(command, "rows landed")


def _spark_server(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=_port, default=15002, help="where it listens (15002)")
    command.add_argument("--address", default="127.0.0.1", help="on which address (127.0.0.1)")
    command.add_argument("--master", default="local[*]", metavar="URL", help="the master of its application (local[*])")
    _memory_of(command, "its JVM")


def _import(command: argparse.ArgumentParser) -> None:
    for table in ("log-offsets", "committed-offsets"):
        command.add_argument(
            f"--{table}",
            type=Path,
            metavar="FILE",
            nargs="+",
            action="extend",
            default=[],
            help=f"rows of {table.replace('-', '_')}, .csv or .parquet; several files and repeats are fine",
        )
    _json(command, "new rows of each file")


def _run(command: argparse.ArgumentParser) -> None:
    _interval(command, required=True)
    _repeated(command, "--cluster", "measure this cluster only (repeat for more)")
    _repeated(command, "--sla", "judge this SLA only (repeat for more)")
    command.add_argument("--notify", action="store_true", help="mail opened and recovered misses, each once")
    _memory_of(command, "the Spark driver")
    _json(command, "verdicts and misses of each SLA")


def _misses(command: argparse.ArgumentParser) -> None:
    _interval(command, required=False)
    command.add_argument("--sla", metavar="NAME", help="of this SLA only")
    command.add_argument("--open", action="store_true", help="only those that are still open")
    _json(command, "all fields and raw figures")


def _exclusions(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="what", required=True, metavar="ACTION")
    add = _command(actions, "add", "exclude the windows that a past time touches; nothing measured changes")
    add.add_argument("--sla", required=True, metavar="NAME", help="of this SLA")
    _interval(add, required=True)
    listed = _command(actions, "list", "show what was excluded, by whom and why, and what was undone")
    _interval(listed, required=False)
    listed.add_argument("--sla", metavar="NAME", help="of this SLA only")
    undo = _command(actions, "undo", "let an excluded time count again")
    undo.add_argument("id", metavar="ID", help="of the exclusion, as list shows it")
    for one, required in ((add, True), (undo, False)):
        one.add_argument("--reason", required=required, default="", metavar="TEXT", help="why; kept with it")
        one.add_argument("--author", metavar="NAME", help="who; left out: the user of the shell")
    for one, what in ((add, "the exclusion"), (listed, "all fields"), (undo, "the exclusion")):
        _json(one, what)


def _report(command: argparse.ArgumentParser) -> None:
    _interval(command, required=True)
    _repeated(command, "--sla", "of this SLA only (repeat for more)")
    command.add_argument("--output", type=Path, required=True, metavar="FILE", help="HTML file to write")
    _json(command, "where it was written")


def _digest(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME", help="a digest of the configuration")
    command.add_argument("--day", metavar="DAY", help="a day of its period, such as 2026-11-21; left out: the last one")
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="HTML file to write; else the archive of the store"
    )
    command.add_argument("--mail-to", metavar="ADDRESS", help="mail it to this address, and to nobody else")
    _json(command, "its period, summary and file")


def _suggest(command: argparse.ArgumentParser) -> None:
    _interval(command, required=False)
    _repeated(command, "--cluster", "of this cluster only (repeat for more)")
    for option, what in (("--group", "consumer groups"), ("--topic", "topics")):
        command.add_argument(
            option,
            action="append",
            default=[],
            metavar="NAME",
            help=f"of these {what} only: a name, a glob, a regex between slashes, or !name (repeat for more)",
        )
    command.add_argument(
        "--level",
        choices=("strict", "balanced", "relaxed"),
        action="append",
        default=[],
        help="proposals that become entries of the YAML (repeat for more; default: balanced)",
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="where to write the YAML; else it is the output, tables as remarks"
    )
    command.add_argument("--plots", type=Path, metavar="FOLDER", help="folder for a PNG of each group and topic")
    _json(command, "all proposals and their figures")


def _export(command: argparse.ArgumentParser) -> None:
    command.add_argument("table", choices=sorted(TABLES), metavar="TABLE", help=", ".join(sorted(TABLES)))
    _interval(command, required=False)
    _repeated(command, "--cluster", "of this cluster only (repeat for more)")
    command.add_argument("--format", choices=("csv", "json", "parquet"), help="as --output ends, else csv")
    command.add_argument("--output", type=Path, metavar="FILE", help="file to write; else the output stream")
    command.add_argument(
        "--by",
        choices=("partition", "topic", "group"),
        default="partition",
        help="sum consumer_latency up: maxima, counts and histograms per topic or group",
    )


def _import_slo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file", type=Path, metavar="FILE", help="YAML with openslo/v1 documents of the kinds SLO and SLI"
    )
    command.add_argument(
        "--window",
        type=_duration,
        metavar="TIME",
        help="width of windows (default: the configuration's `window`, or 1m)",
    )
    command.add_argument("--output", type=Path, metavar="FILE", help="where to write them (default: standard output)")


def _export_slo(command: argparse.ArgumentParser) -> None:
    _repeated(command, "--sla", "this SLA only (repeat for more)")
    command.add_argument("--output", type=Path, metavar="FILE", help="where to write them (default: standard output)")


def _store(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="what", required=True, metavar="ACTION")
    check = _command(actions, "check", "read every file, and say what is damaged, what it touches and how to mend it")
    repair = _command(actions, "repair", "mend what check finds, with nothing else using the store; asks first")
    repair.add_argument("--yes", action="store_true", help="do not ask")
    repair.add_argument(
        "--without-measuring",
        action="store_true",
        help="measure nothing again: what is damaged is no longer published, all else is readable",
    )
    copy = _command(actions, "copy", "copy all of it, as it is now, to where nothing is yet; others may go on using it")
    copy.add_argument("target", nargs="?", type=Path, metavar="FOLDER", help="folder of the new embedded store")
    copy.add_argument("--to-connection", metavar="ID", help="connection of the new store, as store_connection")
    move = _command(actions, "move", "let tables name the files where they are now")
    for action, what in (
        (check, "what is damaged"),
        (repair, "what was damaged, and what still is"),
        (copy, "what was copied"),
        (move, "what was moved"),
    ):
        _json(action, what)


def _interval(command: argparse.ArgumentParser, *, required: bool) -> None:
    more = "" if required else "; left out: everything"
    command.add_argument(
        "--from", dest="start", type=_instant, required=required, metavar="TIME", help=f"first instant{more}"
    )
    command.add_argument(
        "--to", dest="end", type=_instant, required=required, metavar="TIME", help=f"end, exclusive{more}"
    )


def _repeated(command: argparse.ArgumentParser, option: str, text: str) -> None:
    command.add_argument(option, action="append", default=[], metavar="NAME", help=text)


def _memory_of(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--driver-memory", type=_memory, default="2g", metavar="SIZE", help=f"memory of {what} (2g)")


def _memory(text: str) -> str:
    """As Spark and Java write it, and as much as Spark asks for at least."""
    found = re.fullmatch(r"(\d{1,9})([mgt])", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of memory; allowed: a whole number and m, g or t")
    if int(found[1]) * {"m": 1, "g": 1024, "t": 1024**2}[found[2]] < _LEAST_MEGABYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is less than Spark starts with; allowed: 512m and more")
    return text


def _folder(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("names no folder")
    return Path(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; allowed: a whole number from 1 to 65535")
    return int(text)


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def _instant(text: str) -> datetime:
    """A relative time is a whole minute: the edge of windows of a minute or less."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    if text == "now":
        return now
    try:
        if re.match(DURATION, text, re.ASCII):
            return (now - timedelta(milliseconds=parse_duration(text))).replace(second=0, microsecond=0)
        return parse_instant(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is {error}") from error
