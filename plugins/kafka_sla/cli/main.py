"""The command-line door, `kafka-sla`: parses what was typed, runs one command, and prints one message on failure."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from kafka_sla.cli.console.arguments import parser
from kafka_sla.errors import BadRequest, ConnectionMissing, KafkaSlaError, SettingsError

_MISUSE = (SettingsError, ConnectionMissing, BadRequest)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0: done, 1: failed, 2: asked wrongly."""
    asked = parser().parse_args(arguments)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # what ends at Ctrl-C ends when a supervisor stops it, too
    from kafka_sla.cli.commands import COMMANDS
    from kafka_sla.cli.console import progress
    from kafka_sla.cli.console.context import Workplace

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no dash shows a question mark
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells of folders and fonts that nobody asked for
    progress.QUIET.set(getattr(asked, "quiet", False))
    place = Workplace(getattr(asked, "config", None), getattr(asked, "store", None))
    try:
        code = COMMANDS[asked.action](place, asked)
        if sys.stdout:  # closed by whoever wants no output
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing is left to say
        return 1
    except Exception as error:
        if getattr(asked, "debug", False):
            traceback.print_exception(error)
        for one in error.exceptions if isinstance(error, ExceptionGroup) else [error]:
            print(f"kafka-sla: {_words(one)}", file=sys.stderr)
        return 2 if isinstance(error, _MISUSE) else 1
    except KeyboardInterrupt:
        print("kafka-sla: stopped; what was not published stays invisible, run it again", file=sys.stderr)
        return 130
    return code


def _words(error: Exception) -> str:
    """What to print; of an error that is none of ours, its place in the code."""
    from kafka_sla.spark.needs import without_worker

    if isinstance(error, KafkaSlaError | OSError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (told := without_worker(error.name or "")):
        return told
    *_, last = traceback.extract_tb(error.__traceback__)
    return (
        f"unexpected {type(error).__name__} in {Path(last.filename).name}, line {last.lineno}: {error}; this is a"
        " defect of kafka-sla: run the command again with --debug, and report what it prints"
    )
