"""TLS certificates, SASL users and access lists of a secured demonstration broker. Knows properties, starts nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

ADMIN = "admin"
_LOGIN = "org.apache.kafka.common.security.{}.{}LoginModule required"


@dataclass(frozen=True, slots=True)
class Security:
    """SASL/PLAIN and (for users given such credentials) SCRAM-SHA-512 over TLS; what no list allows is denied."""

    folder: Path
    passwords: dict[str, str] = field(
        default_factory=lambda: {ADMIN: "admin-secret", "reader": "reader-secret"}, repr=False
    )
    """By user. `admin` may do everything; all others need access-control entries."""

    @property
    def authority(self) -> Path:
        """The certificate that clients must trust."""
        return self.folder / "authority.pem"

    @property
    def _keystore(self) -> Path:
        return self.folder / "broker.pem"

    def issue(self) -> None:
        """Write a fresh authority and a broker certificate for this machine's loopback names."""
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA(organization_name="kafka_sla demo")
        authority.cert_pem.write_to_path(str(self.authority))
        issued = authority.issue_cert("127.0.0.1", "localhost")
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        # Kafka reads PKCS#8 keys only
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._keystore.touch(mode=0o600)
        self._keystore.write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))

    def broker_properties(self) -> dict[str, str]:
        """What a broker needs to serve its clients over SASL_SSL and to check what they may do."""
        users = " ".join(f'user_{user}="{password}"' for user, password in self.passwords.items())
        own = f'username="{ADMIN}" password="{self.passwords[ADMIN]}"'
        return {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_LOGIN.format('plain', 'Plain')} {own} {users};",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_LOGIN.format('scram', 'Scram')};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            # ANONYMOUS is whoever reaches the controller's own loopback listener: the broker itself
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
        }

    def client(self, user: str = ADMIN, mechanism: str = "PLAIN") -> dict[str, str]:
        """Client settings, by confluent-kafka's names, for one user."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self.passwords[user],
            "ssl.ca.location": str(self.authority),
        }
