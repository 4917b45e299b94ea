"""Iceberg tables as their contracts declare them: schemas, partitions, properties and branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestamptzType,
)
from sqlalchemy.exc import OperationalError

from kafka_sla.ledger.storage.database import retrying
from kafka_sla.model.tables import Column, Table

NAMESPACE = "kafka_sla"
MAIN, LOADS = "main", "loads"
"""Branches of a metric table: what is published, for everybody; and all loads, for ourselves."""
_PROPERTIES = {
    "commit.retry.num-retries": "0",  # repeating is ours: what to add depends on what the other writer added
    "commit.manifest-merge.enabled": "true",  # else a year of five-minute runs is a hundred thousand manifests
    "commit.manifest.target-size-bytes": "65536",  # else one manifest tells of a year: all reads would read all of it
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",  # each tells all snapshots: together they outgrow the rows
}
_TYPES: dict[str, IcebergType] = {
    "STRING": StringType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "BOOLEAN": BooleanType(),
    "TIMESTAMP": TimestamptzType(),
}
_NAME_MAPPING = "schema.name-mapping.default"
"""Property: by which names files, which carry no ids, hold the columns."""
_OF_LOADS = (
    Column("interval_start", "TIMESTAMP", False, "start of the load's interval"),
    Column("load_id", "STRING", False, "load that measured the row"),
)


def branch_of(table: Table) -> str:
    """The branch that names all files of a table."""
    return LOADS if table.kind == "metric" else MAIN


def location_of(warehouse: str, table: Table) -> str:
    """Where the own files of a table lie: its metadata, not its rows."""
    return f"{warehouse}/{NAMESPACE}/{table.name}"


def new_table(catalog: Catalog, name: tuple[str, str], table: Table, location: str) -> IcebergTable:
    """An empty table of this contract, whose own files lie below the location."""
    schema = _schema(table)
    properties = {**_PROPERTIES, _NAME_MAPPING: schema.name_mapping.model_dump_json()}
    if not catalog.namespace_exists(NAMESPACE):
        with suppress(NamespaceAlreadyExistsError):  # another process or thread was faster
            catalog.create_namespace(NAMESPACE)
    try:
        return catalog.create_table(name, schema, location, _partitions(table, schema), properties=properties)
    except TableAlreadyExistsError:  # another process was faster
        return retrying(lambda: catalog.load_table(name), (NoSuchTableError, OperationalError))


def with_all_columns(there: IcebergTable, table: Table) -> IcebergTable:
    """The table with all columns of its contract. PyIceberg's schema evolution adds missing ones; they are null in
    existing rows."""
    wanted, known = _schema(table), {field.name for field in there.schema().fields}
    if {field.name for field in wanted.fields} <= known:
        return there
    with there.update_schema() as change:
        change.union_by_name(wanted)
    return there


def with_properties(there: IcebergTable) -> IcebergTable:
    """The table with the properties that new ones have, unless somebody gave it others."""
    missing = {name: value for name, value in _PROPERTIES.items() if name not in there.properties}
    if wanted := missing | _true_names(there):
        with there.transaction() as transaction:
            transaction.set_properties(wanted)
    return there


def _true_names(there: IcebergTable) -> dict[str, str]:
    """A name mapping whose ids of keys, values and elements match the schema. Some catalogs assign their own ids; with
    others, Iceberg's reader for Spark finds no such column."""
    named = there.name_mapping() or ()
    of_schema = {field.field_id: field for field in there.schema().name_mapping}
    true = [
        field.model_copy(update={"fields": of_schema[field.field_id].fields}) if field.field_id in of_schema else field
        for field in named
    ]
    return {} if true == list(named) else {_NAME_MAPPING: NameMapping(true).model_dump_json()}


def with_loads(there: IcebergTable, table: Table) -> IcebergTable:
    """The table with a branch of all loads. A branch needs a snapshot, so a new table gets one without files."""
    if table.kind != "metric" or LOADS in there.metadata.refs:
        return there
    if not there.current_snapshot():
        with there.transaction() as transaction, transaction.update_snapshot().fast_append():
            pass
    head = there.metadata.current_snapshot_id
    assert head is not None
    there.manage_snapshots().create_branch(head, LOADS).commit()
    return there.refresh()


def _schema(table: Table) -> Schema:
    """Every column optional: Spark writes nullable columns, which a required one would refuse."""
    columns = (*table.columns, *(_OF_LOADS if table.kind == "metric" else ()))
    nested = count(len(columns) + 1)
    return Schema(*(NestedField(i, c.name, _type(c.type, nested), required=False) for i, c in enumerate(columns, 1)))


def _type(name: str, nested: Iterator[int]) -> IcebergType:
    """Keys, values and elements are fields too, each with an id of its own from `nested`."""
    if name.startswith("ARRAY<"):
        return ListType(next(nested), _TYPES[name[6:-1]], element_required=False)
    if name.startswith("MAP<"):
        key, value = name[4:-1].split(", ")
        return MapType(next(nested), _TYPES[key], next(nested), _TYPES[value], value_required=False)
    return _TYPES[name]


def _partitions(table: Table, schema: Schema) -> PartitionSpec:
    if table.kind == "metric":
        field = PartitionField(
            schema.find_field("interval_start").field_id, 1000, IdentityTransform(), "interval_start"
        )
    else:
        field = PartitionField(schema.find_field(table.time).field_id, 1000, DayTransform(), "day")
    return PartitionSpec(field)
