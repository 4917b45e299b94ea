"""Registers kafka_sla with Airflow, nothing else: it is imported in every task process, so it must stay cheap, except
in a scheduler that is asked to import for all of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from airflow.plugins_manager import AirflowPlugin

from kafka_sla.airflow_versions import BaseDeadlineReference, conf
from kafka_sla.tasks.deadlines import ScheduledIntervalEnd
from kafka_sla.tasks.preload import preload

preload()
PREFIX = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
"""Where Airflow lies below its host, such as `/my-deployment`: it takes these addresses as they are."""


class LazyApp:
    """The pages as an ASGI application that is built when the web server first needs it."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            from kafka_sla.web.app import create_app

            self._app = create_app()
        await self._app(scope, receive, send)


class KafkaSlaPlugin(AirflowPlugin):
    """The plugin by its name; what it adds to Airflow's pages is listed here."""

    name = "kafka_sla"
    fastapi_apps = [{"app": LazyApp(), "url_prefix": "/kafka-sla", "name": "kafka_sla"}]  # noqa: RUF012
    deadline_references = [ScheduledIntervalEnd] if BaseDeadlineReference else []
    external_views = [  # noqa: RUF012
        {
            "name": "Kafka SLAs",
            "href": f"{PREFIX}/kafka-sla/",
            "destination": "nav",
            "category": "browse",
            "url_route": "kafka-sla",
        },
        {
            "name": "Kafka SLAs",
            "href": f"{PREFIX}/kafka-sla/dags/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "kafka-sla-dag",
        },
        {
            "name": "Kafka SLAs",
            "href": f"{PREFIX}/kafka-sla/dags/{{DAG_ID}}/runs/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "kafka-sla-run",
        },
    ]
