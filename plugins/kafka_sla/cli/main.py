"""The command-line door, `kafka-sla`: parses what was typed, runs one command, and prints one message on failure."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from kafka_sla.cli.arguments import parser
from kafka_sla.errors import BadRequest, ConnectionMissing, KafkaSlaError, SettingsError

_MISUSE = (SettingsError, ConnectionMissing, BadRequest)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0: done, 1: failed, 2: asked wrongly."""
    asked = parser().parse_args(arguments)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # what ends at Ctrl-C ends when a supervisor stops it, too
    from kafka_sla.cli import progress
    from kafka_sla.cli.commands import COMMANDS
    from kafka_sla.cli.context import Workplace

    progress.QUIET.set(getattr(asked, "quiet", False))
    place = Workplace(getattr(asked, "config", None), getattr(asked, "store", None))
    try:
        code = COMMANDS[asked.action](place, asked)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing is left to say
        return 1
    except (KafkaSlaError, OSError) as error:
        print(f"kafka-sla: {error}", file=sys.stderr)
        return 2 if isinstance(error, _MISUSE) else 1
    except ExceptionGroup as several:
        if several.split((KafkaSlaError, OSError))[1]:
            raise
        for one in several.exceptions:
            print(f"kafka-sla: {one}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kafka-sla: stopped; what was not published stays invisible, run it again", file=sys.stderr)
        return 130
    return code
