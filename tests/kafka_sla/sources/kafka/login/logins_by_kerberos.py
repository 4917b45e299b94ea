"""Kerberos logins at a real broker, with tickets of a real KDC: `make kerberos`, since Python's gssapi package has to
be compiled, and needs Kerberos' headers."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import k5test
import pytest

from demo.broker import Cluster as Broker
from demo.broker import free_ports
from kafka_sla.model.entities import Connection
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.kafka_python import MetadataRequest
from tests.kafka_sla.sources.kafka.login.test_logins import CLUSTER, look, positions, problem
from tests.kafka_sla.sources.kafka.traffic import commit, produce, topic

REALM = "EXAMPLE.COM"
BROKER, USER = f"kafka/localhost@{REALM}", f"airflow-eu.1@{REALM}"
PASSWORD = "s3cret"
_LIFE_S = 6
_PORTS = 10
"""That k5test takes, one after the other."""


class Kdc:
    """A KDC that knows the broker and one user, whose keytab is at `keytab`."""

    def __init__(self) -> None:
        self.realm = k5test.K5Realm(
            realm=REALM,
            portbase=_ports_in_a_row(),
            create_user=False,
            create_host=False,
            kdc_conf={"realms": {REALM: {"max_life": f"{_LIFE_S}s"}}},
        )
        self.keytab = Path(self.realm.tmpdir) / "airflow.keytab"
        self.realm.addprinc(USER, PASSWORD)
        self.realm.extract_keytab(USER, str(self.keytab))
        self.add_keys(BROKER)
        self.realm.extract_keytab(BROKER, self.realm.keytab)

    def add_keys(self, principal: str) -> None:
        self.realm.run([self.realm.kadmin_local, "-q", f"addprinc -randkey {principal}"])

    def new_keys(self, principal: str) -> None:
        self.realm.run([self.realm.kadmin_local, "-q", f"cpw -randkey {principal}"])

    def get_ticket(self, cache: Path) -> None:
        self.realm.run(["kinit", "-c", str(cache), USER], input=f"{PASSWORD}\n")


def _ports_in_a_row() -> int:
    """The first of so many that nobody listens on at this moment."""
    while True:
        (first,) = free_ports(1)
        with suppress(OSError, OverflowError), ExitStack() as held:
            for port in range(first, first + _PORTS):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


@pytest.fixture
def kdc() -> Iterator[Kdc]:
    kdc = Kdc()
    yield kdc
    kdc.realm.stop()


@pytest.fixture
def cache(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process looks for tickets: there are none."""
    for name in [name for name in os.environ if name.startswith("KRB5")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KRB5_CONFIG", kdc.realm.env["KRB5_CONFIG"])
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "tickets"))
    return tmp_path / "tickets"


@pytest.fixture
def orders(kdc: Kdc) -> Iterator[tuple[str, dict[str, str]]]:
    """A topic of which a group has read 4 of 10 records, and how to reach its broker with Kerberos: sessions end with
    their ticket."""
    (port,) = free_ports(1)
    broker = Broker()
    (node,) = broker.nodes
    jaas = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
        f' keyTab="{kdc.realm.keytab}" principal="{BROKER}";'
    )
    for name, more in {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"SASL_PLAINTEXT://localhost:{port}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT",
    }.items():
        node.properties[name] += f",{more}"
    node.properties |= {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "connections.max.reauth.ms": str(1_000 * _LIFE_S),
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas,
    }
    node.java_options = (f"-Djava.security.krb5.conf={kdc.realm.env['KRB5_CONFIG']}",)
    with broker:
        name = topic(broker)
        produce(broker, name, [int(time.time() * 1000) - 60_000 + second for second in range(10)])
        commit(broker, f"billing.{name}-v2", name, 4)
        how = {"bootstrap.servers": f"localhost:{port}", "security.protocol": "SASL_PLAINTEXT"}
        yield name, how | {"sasl.mechanism": "GSSAPI"}


def test_a_ticket_of_the_cache_is_a_login_until_it_expires(
    kdc: Kdc, cache: Path, orders: tuple[str, dict[str, str]]
) -> None:
    name, how = orders
    assert f"gives no ticket for kafka@localhost: No Kerberos credentials available (default cache: {cache})" in (
        problem(how)
    )

    kdc.get_ticket(cache)
    assert positions(look(how, name)) == {4}

    time.sleep(_LIFE_S + 1)
    told = problem(how)
    assert "Ticket expired; get a ticket for the user that runs this (kinit, or `airflow kerberos`;" in told
    assert "or set sasl.kerberos.keytab and sasl.kerberos.principal" in told


@pytest.mark.parametrize("named", [{}, {"sasl.kerberos.principal": USER}])
@pytest.mark.usefixtures("cache")
def test_a_keytab_is_a_login_for_longer_than_a_ticket_lives(
    kdc: Kdc, orders: tuple[str, dict[str, str]], named: dict[str, str]
) -> None:
    """The broker ends sessions with their ticket; the pass logs in again, and so do the next ones."""
    name, how = orders
    extra = {**how, "sasl.kerberos.keytab": str(kdc.keytab), **named}
    end = time.monotonic() + 3 * _LIFE_S
    with Client(CLUSTER, Connection("kafka_eu", extra=extra)) as client:
        while time.monotonic() < end:
            assert client.ask_one(MetadataRequest(topics=None)).brokers
            client.sleep(0.2)

    assert positions(look(extra, name)) == {4}


@pytest.mark.usefixtures("cache")
def test_what_kerberos_refuses_is_told_with_its_cure(kdc: Kdc, orders: tuple[str, dict[str, str]]) -> None:
    _, how = orders
    keytab = {**how, "sasl.kerberos.keytab": str(kdc.keytab)}
    whose = f"keytab {kdc.keytab}, principal"

    told = problem({**keytab, "sasl.kerberos.principal": f"nobody@{REALM}"})
    assert f"kafka@localhost ({whose} nobody@{REALM})" in told
    assert "check sasl.kerberos.keytab, whose keys `klist -k` lists, and sasl.kerberos.principal" in told

    told = problem({**keytab, "sasl.kerberos.service.name": "kafka-eu"})
    assert "Server kafka-eu/localhost@EXAMPLE.COM not found in Kerberos database; check sasl.kerberos.service" in told

    kdc.new_keys(BROKER)
    assert "the broker refused the Kerberos ticket; see its log" in problem(keytab)

    kdc.new_keys(USER)
    assert f"({whose} {USER}): " in problem({**keytab, "sasl.kerberos.principal": USER})

    kdc.realm.stop_kdc()
    told = problem({**keytab, "sasl.kerberos.principal": USER})
    assert "Cannot contact any KDC for realm 'EXAMPLE.COM'; check the realm's servers in krb5.conf" in told
