"""The requirement that unread records do not expire soon: the rows to judge it by, and what a miss says of them.

Pure but for the lake that it reads from; judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval, Miss, Sla, SlaWindow
from kafka_sla.model.tables import NON_CONSUMED
from kafka_sla.sla.evaluate import expiry
from kafka_sla.sla.wording import late
from kafka_sla.text.formatting import plural

_COLUMNS = (
    "cluster",
    "group",
    "topic",
    "partition",
    "window_start",
    "window_end",
    "unread_records",
    "oldest_unread_at",
    "unread_expires_in_ms",
    "cleanup_policy",
    "retention_ms",
)


def unread_rows(slas: Sequence[Sla], lake: Lake, interval: Interval) -> pa.Table | None:
    """Published rows of `non_consumed` of the clusters of these SLAs; None where no SLA limits them: nobody needs to
    read them."""
    clusters = sorted({sla.cluster for sla in slas if sla.min_time_to_expiry_ms is not None})
    return lake.published(NON_CONSUMED.name, interval, clusters, _COLUMNS) if clusters else None


def with_expiry(miss: Miss, windows: Sequence[SlaWindow], before: Miss | None = None) -> Miss:
    """The miss, whose evidence says which unread records expire too soon: first when nothing was late, else last.
    `before`: the same miss as it was before these windows, of which none may say so."""
    told = expiry(miss, windows) or (before.evidence.get("unread_expiry") if before else None)
    if not told:
        return miss
    sentences = [f"{told[0].upper()}{told[1:]}."]
    if lost := miss.evidence.get("expired_unread_low"):
        sentences.append(f"At least {plural(lost, 'record')} had expired already.")
    known = miss.evidence.get("sentence")
    if known and late(miss):
        sentences.insert(0, known)
    elif known and miss.evidence.get("cause") not in ("unclear", "records_expired"):
        sentences.append(known)
    return replace(miss, evidence={**miss.evidence, "unread_expiry": told, "sentence": " ".join(sentences)})
