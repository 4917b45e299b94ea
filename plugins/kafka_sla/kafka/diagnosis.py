"""Why a cluster could not be opened, in words with a cure: tries each address by hand. Knows no Kafka requests."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from kafka.errors import KafkaError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError

_SECONDS = 3.0


def why_unreachable(configuration: dict[str, Any], error: Exception) -> str:
    """One sentence or two: the cause as far as it can be told, and what to do. Never holds a secret."""
    if isinstance(error, SaslAuthenticationFailedError):
        return (
            f"the broker refused the login of {configuration.get('sasl_plain_username')!r};"
            " check sasl.mechanism, sasl.username and sasl.password of the connection"
        )
    if isinstance(error, UnsupportedSaslMechanismError):
        return f"the broker does not offer the SASL mechanism {configuration['sasl_mechanism']}; set sasl.mechanism"
    tried = [_try_address(address, configuration) for address in configuration["bootstrap_servers"]]
    return "; ".join(dict.fromkeys(tried))


def words_of(error: KafkaError) -> str:
    """What a broker's error is called in Kafka's documents; for an error of the wire, what happened."""
    return str(getattr(error, "message", None) or error)


def _try_address(address: str, configuration: dict[str, Any]) -> str:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS) as opened:
            return _try_protocol(address, opened, configuration)
    except socket.gaierror as error:
        return f"the name {host!r} is not known here ({error.strerror}); check bootstrap.servers or the host"
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        return f"nothing answers at {address} ({reason}); check that the broker runs, the address and the firewall"


def _try_protocol(address: str, opened: socket.socket, configuration: dict[str, Any]) -> str:
    protocol = configuration.get("security_protocol", "PLAINTEXT")
    if not protocol.endswith("SSL"):
        return (
            f"{address} accepts connections but does not talk Kafka over {protocol};"
            " if it expects TLS or a login, set security.protocol to SSL or SASL_SSL"
        )
    context = ssl.create_default_context(cafile=configuration.get("ssl_cafile"))
    context.check_hostname = configuration.get("ssl_check_hostname", True)
    try:
        with context.wrap_socket(opened, server_hostname=address.rpartition(":")[0].strip("[]")):
            return f"{address} accepts TLS but did not answer as a Kafka broker; if it wants a login, set SASL_SSL"
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate of {address} is not trusted ({error.verify_message});"
            " set ssl.ca.location to the authority that signed it, and use a host name that it holds"
        )
    except (ssl.SSLError, OSError) as error:
        return f"{address} does not talk TLS ({error}); set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
