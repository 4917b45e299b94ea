"""When the consumers of SLAs will have caught up, as of the newest published window of their cluster. Draws nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from kafka_sla.lake.queries.pace_rows import published_catch_ups
from kafka_sla.model.entities import Sla
from kafka_sla.sla.catch_up import CatchUp
from kafka_sla.sla.wording import catching_up
from kafka_sla.web.queries import schemas
from kafka_sla.web.queries.context import Context


def newest_catch_ups(context: Context, slas: Sequence[Sla]) -> dict[str, CatchUp]:
    """Those of these SLAs whose cluster has published windows."""
    return published_catch_ups(context.lake, slas, published_until(context, slas), context.settings.window_ms)


def published_until(context: Context, slas: Sequence[Sla]) -> dict[str, datetime]:
    """The end of the newest published window of each cluster of these SLAs that has one."""
    tomorrow = context.now + timedelta(days=1)
    newest = {name: context.ledger.publications.latest(name, tomorrow) for name in {sla.cluster for sla in slas}}
    return {cluster: one.interval.end for cluster, one in newest.items() if one}


def answer(found: CatchUp) -> schemas.CatchUp:
    """The same as the API has it."""
    return schemas.CatchUp(**asdict(found), text=catching_up(found))
