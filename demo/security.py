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
    """Logins over TLS: SASL/PLAIN, SCRAM (for users given such credentials), unsecured OAUTHBEARER tokens, and, at a
    listener of its own, client certificates. What no list allows is denied."""

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
        """Write a fresh authority, a broker certificate for this machine's loopback names, and one for each user."""
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA(organization_name="kafka_sla demo")
        authority.cert_pem.write_to_path(str(self.authority))
        _write_key_first(self._keystore, authority.issue_cert("127.0.0.1", "localhost"))
        for user in self.passwords:
            _write_key_first(self._certificate(user), authority.issue_cert(f"{user}.invalid", common_name=user))

    def _certificate(self, user: str) -> Path:
        return self.folder / f"user-{user}.pem"

    def broker_properties(self) -> dict[str, str]:
        """What a broker needs to serve its clients over SASL_SSL and to check what they may do."""
        users = " ".join(f'user_{user}="{password}"' for user, password in self.passwords.items())
        own = f'username="{ADMIN}" password="{self.passwords[ADMIN]}"'
        return {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_LOGIN.format('plain', 'Plain')} {own} {users};",
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{_LOGIN.format('scram', 'Scram')};",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_LOGIN.format('scram', 'Scram')};",
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{_LOGIN.format('oauthbearer', 'OAuthBearer')};",
            # sessions end with their token, as at Confluent Cloud and MSK
            "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": "3600000",
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*),.*$/$1/,DEFAULT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            # ANONYMOUS is whoever reaches the controller's own loopback listener: the broker itself
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
        }

    def certified_client(self, user: str = ADMIN) -> dict[str, str]:
        """Client settings for one user who shows a certificate."""
        own = str(self._certificate(user))
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority),
            "ssl.certificate.location": own,
            "ssl.key.location": own,
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


def _write_key_first(path: Path, issued: trustme.LeafCert) -> None:
    """The key and its certificates in one file; the key as PKCS#8, for Kafka reads no other."""
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
