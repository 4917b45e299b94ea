"""SLAs that fit what was published, as YAML to paste, as JSON and as pictures. Chooses and judges nothing."""

from __future__ import annotations

import argparse
import re
import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.console.progress import note, step
from kafka_sla.cli.console.requested import interval_of, output_file
from kafka_sla.cli.console.results import aligned, show_json
from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Interval, Miss, Patterns
from kafka_sla.spark.needs import need_worker
from kafka_sla.text.durations import duration_text
from kafka_sla.text.formatting import plural, share, span
from kafka_sla.text.name_patterns import parse_patterns
from kafka_sla.text.timestamps import instant_text

if TYPE_CHECKING:
    from kafka_sla.pipeline.suggestions import JudgedProposal, Suggestion, Wanted

_HEADER = ("", "threshold", "for", "objective", "attainment", "misses", "longest", "budget spent", "unknown")
_CHOSEN = ("balanced",)


def command(place: Workplace, asked: argparse.Namespace) -> int:
    """Print or write what fits, of all groups and topics that are wanted and published."""
    target = asked.output and output_file(asked.output)
    _check_plots(asked.plots)
    found = list(_found(place, asked))
    if not found:
        raise BadRequest(_nothing(asked))
    if asked.json:
        show_json([_values(one) for one in found])
    levels = asked.level or _CHOSEN
    if target:
        from kafka_sla.files import write_text

        write_text(str(target), _yaml(found, levels, tables=False))
        note(f"{asked.output}: {plural(sum(bool(one.judged) for one in found) * len(set(levels)), 'SLA')}")
    if not asked.json:
        print("\n\n".join(map(_text, found)) if asked.output else _yaml(found, levels, tables=True).rstrip("\n"))
    return 0


def _found(place: Workplace, asked: argparse.Namespace) -> Iterator[Suggestion]:
    """One after the other: what only their pictures need of them is not kept."""
    from dataclasses import replace

    from kafka_sla.lake.lake import Lake
    from kafka_sla.ledger.ledger import Ledger
    from kafka_sla.pipeline.suggestions import suggestions

    settings, lake, ledger = place.settings, Lake(place.known_store), Ledger(place.known_store)
    taken = {sla.name for sla in settings.slas}
    for wanted in _wanted(place, asked):
        with step(f"suggest for {wanted.cluster}") as say:
            for one in suggestions(settings, lake, ledger, wanted, place.supposed, place.defaults, taken):
                say(f"{one.group} on {one.topic}")
                if asked.plots and one.judged:
                    _draw(asked.plots, one)
                yield replace(one, windows=())


def _wanted(place: Workplace, asked: argparse.Namespace) -> list[Wanted]:
    from kafka_sla.pipeline.suggestions import Wanted

    names = asked.cluster or [cluster.name for cluster in place.settings.clusters]
    interval, groups, topics = interval_of(asked), _patterns(asked.group), _patterns(asked.topic)
    return [Wanted(interval, place.settings.cluster(name).name, groups, topics) for name in dict.fromkeys(names)]


def _patterns(texts: Sequence[str]) -> Patterns:
    try:
        return parse_patterns(texts) if texts else Patterns()
    except ValueError as error:
        raise BadRequest(f"--group or --topic: {error}") from error


def _nothing(asked: argparse.Namespace) -> str:
    if asked.group or asked.topic:
        return (
            "nothing is published of such groups and topics in this time; kafka-sla export consumer_latency --by topic"
            " shows which there are"
        )
    return "nothing is published of this time; measure it first: kafka-sla run --from TIME --to TIME"


def _yaml(found: Sequence[Suggestion], levels: Sequence[str], *, tables: bool) -> str:
    from kafka_sla.config.suggested_slas import yaml_text

    entries = []
    for one in found:
        chosen = [judged for judged in one.judged if judged.proposal.level in levels]
        for number, judged in enumerate(chosen):
            text = _text(one) if tables and number == 0 else ""
            entries.append((text, judged.entry))
    left_out = [_text(one) for one in found if not one.judged] if tables else []
    return yaml_text("\n".join(left_out), entries)


def _text(one: Suggestion) -> str:
    """What a person reads of one group and topic."""
    place = f"{one.group} on {one.topic}, cluster {one.cluster}, {_times(one.span)}"
    if not one.judged:
        return "\n".join([f"{place}: no suggestion: {one.reason}", *_rare_commits(one)])
    return "\n".join([place, aligned(_HEADER, [_row(judged) for judged in one.judged]), *_rare_commits(one)])


def _rare_commits(one: Suggestion) -> Iterator[str]:
    """That the group's commits decide which threshold can be met, where they do."""
    strict_ms = min((judged.proposal.max_latency_ms for judged in one.judged), default=0)
    if one.commit_spacing_ms and strict_ms <= 2 * one.commit_spacing_ms:
        yield f"It commits every {span(one.commit_spacing_ms)}: a shorter threshold can be neither met nor shown."


def _times(of: Interval) -> str:
    return f"{of.start:%Y-%m-%d %H:%M} to {of.end:%Y-%m-%d %H:%M} UTC"


def _row(judged: JudgedProposal) -> tuple[str, ...]:
    proposal, attainment = judged.proposal, judged.attainment
    longest = max((_length_ms(miss, attainment.at) for miss in judged.misses), default=None)
    return (
        proposal.level,
        duration_text(proposal.max_latency_ms),
        duration_text(proposal.for_ms),
        share(proposal.objective),
        share(attainment.attainment),
        str(len(judged.misses)),
        span(longest) if longest is not None else "",
        share(_spent(judged)),
        share(1 - attainment.coverage),
    )


def _length_ms(miss: Miss, until: Any) -> float:
    """An open one lasts until the end of the time."""
    return ((miss.end or until) - miss.start) / timedelta(milliseconds=1)


def _spent(judged: JudgedProposal) -> float | None:
    """Share of the error budget of the span, as if it were the period."""
    allowed = judged.attainment.allowed
    return judged.attainment.counted.bad / allowed if allowed > 0 else None


def _values(one: Suggestion) -> dict[str, Any]:
    return {
        "cluster": one.cluster,
        "group": one.group,
        "topic": one.topic,
        "partitions": one.partitions,
        "from": instant_text(one.span.start),
        "to": instant_text(one.span.end),
        "reason": one.reason or None,
        "commit_spacing_ms": one.commit_spacing_ms,
        "proposals": [_proposal_values(judged) for judged in one.judged],
    }


def _proposal_values(judged: JudgedProposal) -> dict[str, Any]:
    proposal, attainment = judged.proposal, judged.attainment
    return {
        "level": proposal.level,
        "max_latency_ms": proposal.max_latency_ms,
        "for_ms": proposal.for_ms,
        "objective": proposal.objective,
        "attainment": attainment.attainment,
        "good_ms": attainment.good_ms,
        "bad_ms": attainment.bad_ms,
        "excluded_ms": attainment.excluded_ms,
        "unknown_ms": attainment.unknown_ms,
        "coverage": attainment.coverage,
        "budget_ms": attainment.allowed,
        "budget_left_ms": attainment.left,
        "budget_spent": _spent(judged),
        "misses": [
            {
                "start": instant_text(miss.start),
                "end": miss.end and instant_text(miss.end),
                "length_ms": _length_ms(miss, attainment.at),
                "bad_windows": miss.bad_windows,
                "worst_latency_ms": miss.worst_latency_ms,
                "is_certain": miss.is_certain,
            }
            for miss in judged.misses
        ],
        "sla": judged.entry,
    }


def _check_plots(folder: Path | None) -> None:
    if folder is None:
        return
    need_worker("matplotlib")
    if folder.exists() and not folder.is_dir():
        raise BadRequest(f"--plots {folder} is a file; name a folder")
    if not folder.absolute().parent.is_dir():
        raise BadRequest(f"the folder of --plots {folder} does not exist; make it first")
    folder.mkdir(exist_ok=True)


def _draw(folder: Path, one: Suggestion) -> None:
    from kafka_sla.reporting.charts import proposal_plot

    proposed: dict[str, int] = {judged.proposal.level: judged.proposal.max_latency_ms for judged in one.judged}
    title = f"{one.group} on {one.topic}, cluster {one.cluster}"
    (folder / _file_name(one)).write_bytes(proposal_plot(title, one.windows, proposed))


def _file_name(one: Suggestion) -> str:
    """Readable and unique, whatever the names hold."""
    whole = "\n".join((one.cluster, one.group, one.topic))
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{one.group}-{one.topic}").lstrip(".")
    return f"{plain[:150]}-{zlib.crc32(whole.encode()):08x}.png"
