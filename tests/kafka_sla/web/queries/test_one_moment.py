"""What is written while a page is made is in all of it or in none."""

import tests.airflow_home  # noqa: F401  isort: skip  before anything of airflow

import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI
from starlette.testclient import TestClient

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.web.app import create_app
from kafka_sla.web.queries.one_moment import OneMoment
from tests.kafka_sla.ledger.test_verdicts import SLA, put


@dataclass(frozen=True)
class Context:
    ledger: Ledger


def test_a_write_in_the_middle_of_an_answer_is_in_the_next_one(tmp_path: Path) -> None:
    ledger = Ledger(Store.embedded(tmp_path))
    put(ledger, "10:00", "10:05", "ggggg")
    router = APIRouter(route_class=OneMoment)

    def context() -> Context:
        return Context(ledger)

    @router.get("/misses/{about}")
    def misses(about: str, context: Annotated[Context, Depends(context)]) -> list[int]:
        before = len(ledger.verdicts.misses(SLA))
        with ThreadPoolExecutor(1) as somebody:
            somebody.submit(put, ledger, "10:00", "10:05", "bbggg").result()
        return [before, len(ledger.verdicts.misses(SLA))]

    app = FastAPI()
    app.include_router(router)
    client = TestClient(app)

    assert [client.get("/misses/a").json(), client.get("/misses/b").json()] == [[0, 0], [1, 1]]


def test_all_answers_that_are_read_from_a_store_are_of_one_moment() -> None:
    reading = [
        route
        for route in create_app().routes
        if "GET" in getattr(route, "methods", ()) and "context" in inspect.signature(route.endpoint).parameters
    ]

    assert len(reading) > 30
    assert [route.path for route in reading if not isinstance(route, OneMoment)] == []
