"""Facts of a past that nobody snapshotted, imported from files: a record a second, groups that commit every minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from kafka_sla.lake.import_files import import_committed_offsets, import_log_offsets
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval

CLUSTER, TOPIC = "old", "orders"


def import_history(
    lake: Lake, folder: Path, minutes: Sequence[datetime], groups: Mapping[str, Interval | None]
) -> None:
    """The records of these minutes, and the commits of these groups, each but for the time in which it is stopped."""
    log, commits = folder / "log.csv", folder / "commits.csv"
    log.write_text(
        "cluster,topic,partition,at,log_start_offset,log_end_offset,source\n"
        + "".join(f"{CLUSTER},{TOPIC},0,{at:%FT%TZ},0,{60 * n},exporter\n" for n, at in enumerate(minutes))
    )
    commits.write_text(
        "cluster,group,topic,partition,at,committed_offset,source\n"
        + "".join(
            f"{CLUSTER},{group},{TOPIC},0,{at:%FT%TZ},{60 * n},commit_log\n"
            for n, at in enumerate(minutes)
            for group, stopped in groups.items()
            if stopped is None or not stopped.start <= at < stopped.end
        )
    )
    import_log_offsets(lake, log, [CLUSTER])
    import_committed_offsets(lake, commits, [CLUSTER])
