"""What the stages of chains add, as of the newest published window of their cluster. Draws nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from kafka_sla.model.entities import Sla
from kafka_sla.pipeline.chain_rows import newest_chains
from kafka_sla.sla.chains import ChainState
from kafka_sla.sla.wording import chained
from kafka_sla.web.queries import schemas
from kafka_sla.web.queries.catching_up import published_until
from kafka_sla.web.queries.context import Context


def chains_now(context: Context, slas: Sequence[Sla]) -> dict[str, ChainState]:
    """Of those of these SLAs that have a chain, and whose cluster has published windows."""
    own = [sla for sla in slas if sla.chain]
    until = published_until(context, own)
    return context.spared(lambda lake: newest_chains(lake, own, until, context.settings.window_ms))


def answer(found: ChainState) -> schemas.ChainStatus:
    """The same as the API has it."""
    return schemas.ChainStatus(**asdict(found), text=chained(found))
