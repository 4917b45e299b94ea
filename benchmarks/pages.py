"""How fast the pages answer with a year published: `make pages`. Builds the year (benchmarks.pages_year), asks
Airflow's own application as a logged-in reader, and prints the times of each kind of request, also into
docs/reference/pages.md."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.requests import Request as HttpRequest

from benchmarks.pages_year import SLAS, Year, build, built
from benchmarks.printed import put
from benchmarks.speed_table import table

SPANS = {"hour": 1 / 24, "6 hours": 0.25, "a day": 1, "a week": 7, "a month": 30, "a quarter": 91, "a year": 365}
LIMIT_MS = 200
Request = tuple[str, str, dict[str, str]]
"""Kind, path, query."""
Taken = tuple[float, float]
"""Milliseconds that the answer took, and of processor time that this process spent meanwhile."""


def main() -> int:
    asked = _arguments()
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="kafka_sla.pages.")
        times = _times(asked.keep or Path(stack.enter_context(temporary)), asked)
    rows = [(kind, *_row(mine)) for kind, mine in times.items()]
    every = [taken for kind, mine in times.items() if not kind.startswith("(") for taken in mine]
    rows.append(("all but those in brackets", *_row(every)))
    found = [
        table(("request", "asked", "median ms", "95 % ms", "max ms", "95 % CPU ms"), rows),
        *(
            f"{sum(taken[number] < LIMIT_MS for taken in every) / len(every):.1%} {name} less than {LIMIT_MS} ms."
            for number, name in enumerate(("answered in", "computed in, by all threads together,"))
        ),
        f"Verdicts of the whole year for {asked.windows} of {SLAS} SLAs; load of the machine {os.getloadavg()[0]:.0f}.",
    ]
    print("\n\n".join(found))
    put("pages.md", "make pages", "\n\n".join(found))
    return 0


def _times(folder: Path, asked: argparse.Namespace) -> dict[str, list[Taken]]:
    started = time.perf_counter()
    year = built(folder) or build(folder, asked.windows)
    print(f"built in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return _measured(_client(folder, year), list(_requests(year, asked.each)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=10, help="SLAs whose verdicts fill the year; 100 need 15 GB")
    parser.add_argument("--keep", type=Path, help="folder to build the year in, or to find it in again; else a new one")
    parser.add_argument("--each", type=int, default=20, help="requests of each kind")
    return parser.parse_args()


def _requests(year: Year, each: int) -> Iterator[Request]:
    dice = random.Random(1)  # noqa: S311  the same requests each time
    for _ in range(each):
        sla = f"sla {dice.randrange(SLAS):03}"
        yield "overview", "/api/v1/slas", {}
        yield "overview of a team", "/api/v1/slas", {"team": f"team {dice.randrange(15)}"}
        for name, days in SPANS.items():
            newest = {"from": _text(year.end - timedelta(days=days)), "to": _text(year.end)}
            yield f"timeline, newest {name}", f"/api/v1/slas/{sla}/timeline", newest
            yield f"partitions, newest {name}", f"/api/v1/slas/{sla}/partitions", newest
        yesterday = year.end.replace(hour=0, minute=0) - timedelta(hours=dice.randrange(6, 18))
        old = {"from": _text(yesterday - timedelta(hours=6)), "to": _text(yesterday)}
        yield "timeline, 6 hours of yesterday", f"/api/v1/slas/{sla}/timeline", old
        early = year.end.replace(hour=0, minute=0) - timedelta(hours=23)
        hour = {"from": _text(early), "to": _text(early + timedelta(hours=1))}
        yield "timeline, an early hour of yesterday", f"/api/v1/slas/{sla}/timeline", hour
        month = year.end - timedelta(days=dice.randrange(60, 330))
        past = {"from": _text(month - timedelta(days=30)), "to": _text(month)}
        yield "timeline, a past month", f"/api/v1/slas/{sla}/timeline", past
        yield "misses of a month", "/api/v1/misses", past
        yield "misses of a year", "/api/v1/misses", {"from": _text(year.end - timedelta(days=365))}
        yield "quality", "/api/v1/quality", {}
        yield "broken expectations of a week", "/api/v1/quality/broken", {"from": _text(year.end - timedelta(days=7))}
        yield "coverage of a month", "/api/v1/coverage", {"from": _text(year.end - timedelta(days=30))}
        yield "missing time of a month", "/api/v1/missing", {"from": _text(year.end - timedelta(days=30))}
        recent = {"from": _text(year.end - timedelta(hours=6)), "to": _text(year.end)}
        day = {"from": _text(year.end - timedelta(days=1)), "to": _text(year.end)}
        yield "consumer status of an SLA, 6 hours", f"/api/v1/slas/{sla}/status", recent
        yield "consumer status of an SLA, a day", f"/api/v1/slas/{sla}/status", day
        yield "members and leaders of an SLA", f"/api/v1/slas/{sla}/readers", recent
        yield "page of the overview", "/", {}
        yield "page of the overview, all SLAs", "/", {"all": "true"}
        yield "page of a team", f"/teams/team {dice.randrange(15)}", {}
        yield "page of an SLA, a day", f"/slas/{sla}", day
        yield "page of an SLA, a year", f"/slas/{sla}", {"from": _text(year.end - timedelta(days=365))}
        yield "page of misses, a month", "/misses", {}
        yield "page of brokers, 6 hours", "/brokers", recent
        yield "page of replication, 6 hours", "/replication", recent
        yield "page of unread records, 6 hours", "/unread", recent
        yield "page of coverage, a month", "/coverage", {}
        yield "page of data quality, a week", "/quality", {}
        yield "page of reports", "/reports", {}
        yield "(metrics without partitions)", "/metrics", {"partitions": "false"}
    yield "(metrics of 10,000 group-partitions)", "/metrics", {}


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%MZ}"


def _client(folder: Path, year: Year) -> Callable[[Request], None]:
    """Airflow as the web server mounts it, asked with the token of a user who may read."""
    os.environ |= {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder / "plugins"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
        "KAFKA_SLA_CONFIG": str(year.config),
        "KAFKA_SLA_STORE": str(folder / "store"),
    }
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.db import initdb
    from starlette.testclient import TestClient

    from kafka_sla.web.app import create_app as create_pages
    from kafka_sla.web.queries.context import open_context

    def at_the_end(request: HttpRequest) -> Any:
        return replace(open_context(request), now=year.end + timedelta(minutes=2))

    initdb()
    airflow, pages = create_app(apps="core"), create_pages()
    pages.dependency_overrides[open_context] = at_the_end  # a year that is kept does not grow old
    next(route for route in airflow.routes if getattr(route, "path", "") == "/kafka-sla").app = pages
    client = TestClient(airflow)
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="reader", role="VIEWER"))

    def get(request: Request) -> None:
        _, path, query = request
        answer = client.get(f"/kafka-sla{path}", params=query, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, f"{path}: {answer.text[:500]}"

    return get


def _measured(get: Callable[[Request], None], requests: list[Request]) -> dict[str, list[Taken]]:
    times: dict[str, list[Taken]] = {}
    get(requests[0])  # modules are imported once per process
    for request in requests:
        started, worked = time.perf_counter(), time.process_time()
        get(request)
        taken = 1000 * (time.perf_counter() - started), 1000 * (time.process_time() - worked)
        times.setdefault(request[0], []).append(taken)
    return times


def _row(times: list[Taken]) -> tuple[Any, ...]:
    waited, worked = sorted(wall for wall, _ in times), sorted(cpu for _, cpu in times)
    return (str(len(times)), _at(waited, 0.5), _at(waited, 0.95), f"{waited[-1]:.0f}", _at(worked, 0.95))


def _at(ranked: list[float], share: float) -> str:
    return f"{ranked[min(len(ranked) - 1, int(share * len(ranked)))]:.0f}"


if __name__ == "__main__":
    sys.exit(main())
