"""Airflow's own web server, in this process, over a small world; and who asks it."""

import tests.airflow_home  # noqa: F401  isort: skip  before anything of airflow

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from kafka_sla.config.store import Store
from tests.kafka_sla.web.world import archive, build, whole_minute


@dataclass(frozen=True)
class Served:
    """Airflow's application with the plugin mounted as Airflow mounts it, and what it shows."""

    application: Any
    config: Path
    store: Store


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Made once for all modules; `asgi` makes it find its world."""
    from airflow.api_fastapi.app import create_app
    from airflow.utils.db import initdb

    initdb()
    config, store = build(tmp_path_factory.mktemp("world"), whole_minute(), timedelta(hours=3))
    archive(config, store)
    with found(config, store):
        return Served(create_app(apps="core"), config, store)


@pytest.fixture(scope="module")
def asgi(served: Served) -> Iterator[Any]:
    """The application while its configuration and its store are those of this process: no longer than a module, for
    other tests of the process have their own."""
    with found(served.config, served.store):
        yield served.application


@contextmanager
def found(config: Path, store: Store) -> Iterator[None]:
    """The configuration and the store where Airflow's web server looks for them."""
    with pytest.MonkeyPatch.context() as environment, store_connection(store):
        environment.setenv("KAFKA_SLA_CONFIG", str(config))
        environment.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")  # as Airflow's web server says when it starts
        yield


@contextmanager
def store_connection(store: Store, conn_id: str = "kafka_sla_store") -> Iterator[None]:
    """The store where people define it: under Admin > Connections."""
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    mine = Connection(conn_id=conn_id, conn_type="sqlite", host=store.url.database)
    with create_session() as session:
        session.add(mine)
    try:
        yield
    finally:
        with create_session() as session:
            session.execute(delete(Connection).where(Connection.conn_id == conn_id))


@dataclass(frozen=True)
class Asker:
    """Somebody with a browser or a script."""

    client: Any
    token: str | None

    def get(self, path: str, **params: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return self.client.get(f"/kafka-sla{path}", params=params or None, headers=headers, follow_redirects=False)

    def json(self, path: str, **params: Any) -> Any:
        answer = self.get(path, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()


def asker(asgi: Any, role: str | None) -> Asker:
    """A user of that role, with the token that Airflow's login gives."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from starlette.testclient import TestClient

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="somebody", role=role))
    return Asker(TestClient(asgi), token)


@pytest.fixture(scope="module")
def reader(asgi: Any) -> Asker:
    """A user who may read DAGs, and nothing else."""
    return asker(asgi, "VIEWER")


@pytest.fixture(scope="module")
def outsider(asgi: Any) -> Asker:
    """A user who is logged in and has no right."""
    return asker(asgi, None)


@pytest.fixture(scope="module")
def stranger(asgi: Any) -> Asker:
    """Nobody that Airflow knows."""
    from starlette.testclient import TestClient

    return Asker(TestClient(asgi), None)
