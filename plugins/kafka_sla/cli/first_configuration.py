"""The configuration that `kafka-sla init` writes: one cluster, one SLA, and what to do next. Reads nothing."""

from __future__ import annotations

import json

from pydantic import TypeAdapter, ValidationError

from kafka_sla.config.field_types import ClusterName, Pattern
from kafka_sla.errors import BadRequest

_TEXT = """\
# What kafka-sla measures, and which SLAs it judges. Verify it with: kafka-sla check
# No passwords here. The connection is an Airflow connection, or for the command line a variable such as
#   export {variable}='{{"conn_type": "kafka", "extra": {{"bootstrap.servers": "broker1:9092"}}}}'

clusters:
  {cluster}:
    connection: {connection}

slas:
  - name: {name}
    group: {group}              # a name, a glob (orders-*) or a regex (/orders-[0-9]+/)
    topic: {topic}
    max_latency: 30s            # every record is consumed within 30 seconds ...
    for: 5m                     # ... and five bad minutes are a miss
    objective: 99.9%            # of the month
    # team: Payments
    # recipients: [oncall@example.com]
    # runbook: https://wiki.example.com/what-to-do
"""


def first_configuration(cluster: str, group: str, topic: str) -> str:
    """YAML that `load_settings` takes, whatever the names hold; BadRequest names one that no configuration takes."""
    for option, name, kind in (("cluster", cluster, ClusterName), ("group", group, Pattern), ("topic", topic, Pattern)):
        try:
            TypeAdapter(kind).validate_python(name)
        except ValidationError as error:
            raise BadRequest(f"--{option} {name!r} is {error.errors()[0]['ctx']['error']}") from error
    connection = "kafka_" + "".join(char if char.isalnum() and char.isascii() else "_" for char in cluster)
    return _TEXT.format(
        cluster=json.dumps(cluster),
        connection=connection,
        variable=f"AIRFLOW_CONN_{connection.upper()}",
        name=json.dumps(f"{topic} within 30 seconds"),
        group=json.dumps(group),
        topic=json.dumps(topic),
    )
