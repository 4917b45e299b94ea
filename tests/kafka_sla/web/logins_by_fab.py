"""The pages behind Airflow's FAB auth manager, which most large installations use: its roles, its login form and its
public role. `make fab`, since its package is not installed for `make test`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests

from tests.browser.airflow_web import PASSWORD, AirflowWeb, airflow_web, shown
from tests.kafka_sla.web.world import build, whole_minute

ROLES = {"boss": "Admin", "op": "Op", "user": "User", "viewer": "Viewer", "payments-eu.lead": "slas", "guest": "Public"}
"""Users and their roles: those that FAB brings along, and one that may read the DAG `kafka_sla` and nothing else."""


def _users() -> list[list[str]]:
    of_slas = [["roles", "create", "slas"], ["roles", "add-perms", "slas", "-a", "can_read", "-r", "DAG:kafka_sla"]]
    names = [["-u", user, "-r", role, "-e", f"{user}@example.com"] for user, role in ROLES.items()]
    created = [["users", "create", "-f", "First", "-l", "Last", "-p", PASSWORD, *name] for name in names]
    return [["sync-perm", "--include-dags"], *of_slas, *created]


@contextmanager
def served(home: Path, **extra: str) -> Iterator[AirflowWeb]:
    config, _ = build(home / "world", whole_minute(), timedelta(hours=3))
    manager = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
    environment = {"AIRFLOW__CORE__AUTH_MANAGER": manager, **shown(home / "world", config), **extra}
    with airflow_web(home / "airflow", environment, _users()) as found:
        yield found


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowWeb]:
    with served(tmp_path_factory.mktemp("fab")) as found:
        yield found


def browser(token: str = "") -> requests.Session:
    """One that holds this session, or none."""
    one = requests.Session()
    one.trust_env = False
    one.headers["Accept"] = "text/html"
    if token:
        one.cookies.set("_token", token)
    return one


def session(web: AirflowWeb, user: str) -> requests.Session:
    """A browser in which somebody is logged in."""
    return browser(web.token(user))


def miss_page(web: AirflowWeb, who: requests.Session) -> str:
    """The address of the page of a miss that is open."""
    (miss,) = who.get(f"{web.address}/kafka-sla/api/v1/misses", params={"state": "open"}).json()
    return f"{web.address}/kafka-sla/misses/{miss['id']}"


@pytest.mark.parametrize("user", ROLES)
def test_whoever_may_read_the_dag_sees_the_pages(web: AirflowWeb, user: str) -> None:
    paths = ("/", "/misses", "/slas/payments within 30 seconds", "/api/v1/slas")
    statuses = {session(web, user).get(f"{web.address}/kafka-sla{path}").status_code for path in paths}

    assert statuses == ({403} if user == "guest" else {200})


def test_who_may_not_read_the_dag_is_told_the_right_that_is_missing(web: AirflowWeb) -> None:
    assert "It needs the right to read the DAG kafka_sla" in session(web, "guest").get(f"{web.address}/kafka-sla/").text


@pytest.mark.parametrize("user", ["boss", "op", "user"])
def test_whoever_may_edit_the_dag_writes_under_the_name_of_the_login(web: AirflowWeb, user: str) -> None:
    who = session(web, user)
    page = miss_page(web, who)
    assert f"{page.removeprefix(web.address)}/notes" in who.get(page).text

    written = who.post(f"{page}/notes", {"kind": "comment", "text": f"seen by {user}"})

    assert written.status_code == 200
    assert f"<b>{user}</b>" in written.text
    assert f"seen by {user}" in written.text


@pytest.mark.parametrize("user", ["viewer", "payments-eu.lead"])
def test_whoever_may_only_read_has_no_form_and_cannot_write(web: AirflowWeb, user: str) -> None:
    who = session(web, user)
    page = miss_page(web, who)

    assert "Anyone who may edit the DAG" in who.get(page).text
    assert who.post(f"{page}/notes", {"kind": "acknowledged"}).status_code == 403


def test_the_login_form_leads_back_to_the_page(web: AirflowWeb) -> None:
    stranger, wanted = browser(), f"{web.address}/kafka-sla/misses?sla=payments%20within%2030%20seconds&state=open"
    form = stranger.get(urljoin(web.address, _login_link(stranger.get(wanted))))
    (token,) = re.findall(r'name="csrf_token"[^>]*value="([^"]+)"', form.text)
    fields = {"username": "viewer", "password": PASSWORD, "csrf_token": token}
    seen = stranger.post(form.url, fields, headers={"Referer": form.url})

    assert (seen.status_code, seen.url) == (200, wanted)
    assert "<h1>Misses</h1>" in seen.text


def test_who_has_a_session_that_another_secret_signed_is_shown_the_way_to_the_login(web: AirflowWeb) -> None:
    assert "/auth/login/" in _login_link(browser("a.b.c").get(f"{web.address}/kafka-sla/"))


def test_the_menu_has_the_entry_for_who_may_read_plugins(web: AirflowWeb) -> None:
    """As `docs/how-to/use-the-pages.md` says."""
    answers = {user: session(web, user).get(f"{web.address}/api/v2/plugins") for user in ("op", "user", "viewer")}

    assert {user: answer.status_code for user, answer in answers.items()} == {"op": 200, "user": 403, "viewer": 403}
    assert "/kafka-sla/" in answers["op"].text


def test_a_public_role_reads_without_a_login_and_does_not_write(tmp_path: Path) -> None:
    with served(tmp_path, AIRFLOW__FAB__AUTH_ROLE_PUBLIC="Viewer") as web:
        stranger = browser()
        page = miss_page(web, stranger)

        assert "Anyone who may edit the DAG" in stranger.get(page).text
        assert stranger.post(f"{page}/notes", {"kind": "acknowledged"}).status_code == 403
        assert stranger.get(f"{web.address}/kafka-sla/metrics").status_code == 200


def _login_link(answer: requests.Response) -> str:
    (link,) = re.findall(r'class="button" href="([^"]+)"', answer.text)
    return html.unescape(link)
