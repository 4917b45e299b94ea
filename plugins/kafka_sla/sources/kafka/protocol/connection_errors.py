"""Why a cluster could not be opened, in words with a cure: tries each address by hand."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterable
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError

from kafka_sla.sources.kafka.login.unavailable import LoginUnavailable
from kafka_sla.sources.kafka.protocol.kafka_python import (
    DNS_FAILURE,
    ApiVersionsRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

_SECONDS = 3.0
_MAX_ANSWER_BYTES = 64 * 1024
"""Of a handshake's answer, which names a handful of mechanisms."""


class UnresolvedAdvertisedName(KafkaConnectionError):  # type: ignore[misc]
    """A broker answers at its bootstrap address and advertises a host name that this machine cannot resolve."""

    remediation = (
        "set advertised.listeners of the broker to an address that this machine can reach, or add the name to DNS or"
        " /etc/hosts"
    )

    def __init__(self, node: int, host: str, port: int) -> None:
        super().__init__()
        self.message = (
            f"broker {node} advertises {host}:{port} (advertised.listeners), and the name {host!r} cannot be resolved"
            " here"
        )


def name_unresolved_broker(error: KafkaError, brokers: Iterable[Any]) -> KafkaError:
    """The same failure naming the first of these brokers whose host cannot be resolved; any other error as it is."""
    if not (isinstance(error, KafkaConnectionError) and DNS_FAILURE in str(error)):
        return error
    for broker in brokers:
        try:
            socket.getaddrinfo(broker.host, broker.port)
        except socket.gaierror:
            return UnresolvedAdvertisedName(broker.node_id, broker.host, broker.port)
    return error


def what_to_do(error: KafkaError, otherwise: str) -> str:
    """How to correct the cause of this error where it says so; `otherwise` for all others."""
    return str(getattr(error, "remediation", otherwise))


def why_unreachable(configuration: dict[str, Any], error: Exception) -> str:
    """One sentence or two: the cause as far as it can be told, and what to do. Never holds a secret."""
    if isinstance(error, LoginUnavailable):
        return error.message
    if isinstance(error, SaslAuthenticationFailedError):
        return _refused(configuration)
    tried = [_try_address(address, configuration) for address in configuration["bootstrap_servers"]]
    return "; ".join(dict.fromkeys(tried))


def words_of(error: KafkaError) -> str:
    """What a broker's error is called in Kafka's documents; for an error of the wire, what happened."""
    return str(getattr(error, "message", None) or error)


def _try_address(address: str, configuration: dict[str, Any]) -> str:
    host, _, port = address.rpartition(":")
    try:
        with _connected(host.strip("[]"), int(port)) as opened:
            return _try_protocol(address, opened, configuration)
    except TimeoutError:
        return (
            f"{address} accepts connections and then says nothing within {_SECONDS:.0f} s: it hangs or is overloaded;"
            " check the broker's log, and name more than one broker in bootstrap.servers"
        )
    except socket.gaierror as error:
        return f"the name {host!r} is not known here ({error.strerror}); check bootstrap.servers or the host"
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        return f"nothing answers at {address} ({reason}); check that the broker runs, the address and the firewall"
    except (ValueError, OverflowError):
        return f"{address[:100]!r} is no address of a broker; write host:port in bootstrap.servers, ports 1 to 65535"


def _connected(host: str, port: int) -> socket.socket:
    """A connection; one that cannot be made in time is no broker that hangs, but no broker."""
    try:
        return socket.create_connection((host, port), _SECONDS)
    except TimeoutError as error:
        raise OSError(f"no connection within {_SECONDS:.0f} s") from error


def _try_protocol(address: str, opened: socket.socket, configuration: dict[str, Any]) -> str:
    protocol = configuration.get("security_protocol", "PLAINTEXT")
    if not protocol.endswith("SSL"):
        return _try_login(address, opened, configuration)
    context: ssl.SSLContext = configuration["ssl_context"]
    try:
        with context.wrap_socket(opened, server_hostname=address.rpartition(":")[0].strip("[]")) as secured:
            return _try_login(address, secured, configuration)
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate of {address} is not trusted ({error.verify_message});"
            " set ssl.ca.location to the authority that signed it, and use a host name that it holds"
        )
    except TimeoutError:
        raise
    except OSError as error:
        if _is_alert(error):
            return _without_certificate(address, error)
        return f"{address} does not talk TLS ({error}); set security.protocol to PLAINTEXT or SASL_PLAINTEXT"


def _is_alert(error: OSError) -> bool:
    """Whether the other side refused us in the words of TLS, at the handshake or at the first read after it."""
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


def _is_final(error: OSError) -> bool:
    """Whether nothing else needs to be tried to know what is wrong."""
    return isinstance(error, TimeoutError) or _is_alert(error)


def _without_certificate(address: str, error: OSError) -> str:
    reason = str(getattr(error, "reason", "")).replace("_", " ").lower()
    return (
        f"{address} ended the TLS handshake ({reason}): it wants a client certificate that it trusts; set"
        " ssl.certificate.location and ssl.key.location, or ssl.certificate.pem and ssl.key.pem"
    )


def _try_login(address: str, opened: socket.socket, configuration: dict[str, Any]) -> str:
    """A broker hangs up with its refusal, and the client may see only that: the handshake is made again by hand."""
    protocol, mechanism = configuration.get("security_protocol", "PLAINTEXT"), configuration.get("sasl_mechanism")
    offered = _mechanisms(opened, mechanism) if mechanism else []
    if mechanism and not offered:
        return f"{address} does not take a login over {protocol}; set security.protocol to what this listener speaks"
    if mechanism and mechanism not in offered:
        return f"{address} does not offer the SASL mechanism {mechanism}; set sasl.mechanism to {' or '.join(offered)}"
    if mechanism:
        return _refused(configuration)
    _greet(opened)
    return (
        f"{address} accepts connections but does not talk Kafka over {protocol};"
        " if it expects TLS or a login, set security.protocol to SSL, SASL_SSL or SASL_PLAINTEXT"
    )


def _mechanisms(opened: socket.socket, mechanism: str) -> list[str]:
    """What the listener offers for logging in; nothing when it does not answer."""
    request = SaslHandshakeRequest(mechanism=mechanism, version=1)
    request.with_header(correlation_id=1, client_id="kafka-sla")
    try:
        opened.settimeout(_SECONDS)
        opened.sendall(request.encode(framed=True, header=True))
        with opened.makefile("rb") as answer:
            size = min(int.from_bytes(answer.read(4)), _MAX_ANSWER_BYTES)
            return [
                str(name) for name in SaslHandshakeResponse.decode(answer.read(size), version=1, header=True).mechanisms
            ]
    except (OSError, ValueError, struct.error, IndexError, TypeError) as error:
        if isinstance(error, OSError) and _is_final(error):
            raise
        return []


def _greet(opened: socket.socket) -> None:
    """Raises TimeoutError when not even the first question of every client is answered, or the door closed."""
    request = ApiVersionsRequest(version=0)
    request.with_header(correlation_id=1, client_id="kafka-sla")
    try:
        opened.settimeout(_SECONDS)
        opened.sendall(request.encode(framed=True, header=True))
        opened.recv(1)
    except OSError as error:
        if _is_final(error):
            raise
        # else it closed the door: no answer in this protocol


def _refused(configuration: dict[str, Any]) -> str:
    mechanism = configuration["sasl_mechanism"]
    if mechanism == "OAUTHBEARER":
        return (
            "the broker refused the token; check what issues it: its subject, scope, audience and life, and that both"
            " clocks agree"
        )
    if mechanism == "GSSAPI":
        return (
            "the broker refused the Kerberos ticket; see its log: it may not have the key of its own principal, or no"
            " rule (sasl.kerberos.principal.to.local.rules) for that of this login"
        )
    return (
        f"the broker refused the login of {configuration.get('sasl_plain_username')!r} with {mechanism};"
        " check sasl.username and sasl.password of the connection"
    )
