"""What Airflow's OpenLineage provider tells of this project's assets. Knows their addresses, not who publishes them.

Airflow reads `provider_info` in every process, so it imports nothing of weight; without the provider nobody asks more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from kafka_sla.model.tables import TABLES, Table

if TYPE_CHECKING:
    from airflow.sdk import Asset

SCHEME = "kafka-sla"
_HERE = "kafka_sla.tasks.events.lineage"


def provider_info() -> dict[str, Any]:
    """What makes Airflow understand `kafka-sla://` addresses; an entry point of the package names this function."""
    return {
        "package-name": "kafka-sla",
        "name": "Kafka SLAs",
        "description": "SLA reports for Kafka consumers.",
        "asset-uris": [
            {"schemes": [SCHEME], "handler": f"{_HERE}.sanitize", "to_openlineage_converter": f"{_HERE}.dataset"}
        ],
    }


def sanitize(uri: SplitResult) -> SplitResult:
    """The address as it is; ValueError, which fails the DAG that names it, unless it is of a table or of an SLA."""
    name = unquote(uri.path.strip("/"))
    if uri.netloc == "tables" and name not in TABLES:
        raise ValueError(f"{uri.geturl()}: no such table; there are {', '.join(TABLES)}")
    if uri.netloc not in ("tables", "misses", "burns") or not name:
        raise ValueError(
            f"{uri.geturl()}: use kafka-sla://tables/<table>, kafka-sla://misses/<SLA> or kafka-sla://burns/<SLA>"
        )
    return uri


def dataset(asset: Asset, context: Any) -> Any:
    """The OpenLineage dataset of an asset, a table with its columns."""
    from airflow.providers.common.compat.openlineage.facet import (
        Dataset,
        DocumentationDatasetFacet,
        SchemaDatasetFacet,
        SchemaDatasetFacetFields,
    )

    namespace, name, table = named(asset.uri)
    facets: dict[str, Any] = {}
    if table:
        fields = [SchemaDatasetFacetFields(c.name, c.type, c.comment) for c in table.columns]
        facets = {"schema": SchemaDatasetFacet(fields), "documentation": DocumentationDatasetFacet(table.doc)}
    return Dataset(namespace=namespace, name=name, facets=facets)


def named(uri: str) -> tuple[str, str, Table | None]:
    """Namespace and name of the dataset at an address, and its contract if it is a table."""
    address = urlsplit(uri)
    name = unquote(address.path.strip("/"))
    return f"{SCHEME}://{address.netloc}", name, TABLES.get(name) if address.netloc == "tables" else None
