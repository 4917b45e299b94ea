"""Why a Spark application failed, in a sentence: found in what it printed, or left beside its job. Starts nothing."""

from __future__ import annotations

import re
import traceback

from kafka_sla.files import read_text, remove_files, write_text

_CAUSED_BY = re.compile(r"Caused by: (.+)")
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Failed|Interrupt|Exit)\b(?:: .+)?$")
_LONGEST = 500
_NAME = "failed.txt"


def cause_in(printed: str) -> str:
    """The innermost cause that Python or Java named, else the last line; frames of neither are a cause."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    caused = [found[1] for line in lines if (found := _CAUSED_BY.match(line))]
    raised = [found[0] for line in lines if (found := _RAISED.match(line))]
    cause = next(iter([*caused[-1:], *raised[-1:], *lines[-1:]]), "it printed nothing")
    return cause[:_LONGEST].rstrip(".:;")


def clear(output: str) -> None:
    """Forget the cause that an earlier try left."""
    if left(output) is not None:
        remove_files([f"{output}/{_NAME}"])


def leave(output: str, error: BaseException) -> None:
    """Write the cause into the folder that the job writes to."""
    write_text(f"{output}/{_NAME}", cause_in("".join(traceback.format_exception(error))))


def left(output: str) -> str | None:
    """The cause that the job's last application left; None where it was not able to."""
    try:
        return read_text(f"{output}/{_NAME}")
    except OSError:
        return None
