"""How a connection of kafka-python logs in with Kerberos."""

from __future__ import annotations

from typing import Any

from kafka_sla.sources.kafka.login.kerberos import Kerberos, context, in_words
from kafka_sla.sources.kafka.protocol.kafka_python import SaslMechanismGSSAPI


class KerberosMechanism(SaslMechanismGSSAPI):  # type: ignore[misc]
    """The library's, but for how it begins: it knows no keytab. The setting by which it takes a service's name holds
    who logs in. Raises LoginUnavailable."""

    def __init__(self, *, sasl_kerberos_name: Kerberos, host: str, **_: Any) -> None:
        self._login = sasl_kerberos_name
        self._is_done = self._is_authenticated = False
        self.auth_id = f"{self._login.service}@{host}"
        with in_words(self._login, self.auth_id):
            self._client_ctx = context(self._login, self.auth_id)
            self._next_token = self._client_ctx.step(None)

    def receive(self, auth_bytes: bytes) -> None:
        with in_words(self._login, self.auth_id):
            super().receive(auth_bytes)
