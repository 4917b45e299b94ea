"""What is said of Kerberos where its library is missing; logins are tested by `make kerberos`."""

from __future__ import annotations

import sys

import pytest

from kafka_sla.model.entities import Connection
from kafka_sla.sources.kafka.login.client_config import client_configuration
from kafka_sla.sources.kafka.login.unavailable import LoginUnavailable
from kafka_sla.sources.kafka.protocol.kerberos_mechanism import KerberosMechanism


def test_a_missing_library_is_told_with_what_it_takes_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    extra = {"bootstrap.servers": "b1:9092", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    configuration = client_configuration("prod", Connection("kafka_prod", extra=extra))

    with pytest.raises(LoginUnavailable, match=r"pip install gssapi, which wants a compiler and Kerberos' headers"):
        KerberosMechanism(host="b1", **configuration)
