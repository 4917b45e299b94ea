"""Registers kafka_sla with Airflow, nothing else: it is imported in every task process, so it must stay cheap."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class KafkaSlaPlugin(AirflowPlugin):
    """The plugin by its name; what it adds to Airflow's pages is listed here."""

    name = "kafka_sla"
