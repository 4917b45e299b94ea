"""The TLS context that a connection's ssl.* keys describe. Opens no connection, and leaves no key on any disk."""

from __future__ import annotations

import contextlib
import errno
import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from kafka_sla.sources.kafka.login.wrong_key import WrongKey

_HINT = "it must be PEM, the key must belong to the certificate, and ssl.key.password must open it"


def tls_context(keys: Mapping[str, str]) -> ssl.SSLContext:
    """For these keys, named as in librdkafka. Raises WrongKey, without the value of any secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = keys.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
    if keys.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with _named("ssl.ca.location or ssl.ca.pem"):
        _trust(context, keys.get("ssl.ca.location"), keys.get("ssl.ca.pem"))
    if revoked := keys.get("ssl.crl.location"):
        with _named("ssl.crl.location"):
            context.load_verify_locations(revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if ciphers := keys.get("ssl.cipher.suites"):
        with _named("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
    _identify(context, keys)
    return context


def _trust(context: ssl.SSLContext, place: str | None, text: str | None) -> None:
    """Those who signed the brokers' certificates; without any, those that this machine trusts."""
    if text:
        context.load_verify_locations(cadata=text)
    elif place in (None, "probe"):
        context.load_default_certs()
    elif Path(place).is_dir():
        context.load_verify_locations(capath=place)
    else:
        context.load_verify_locations(place)


def _identify(context: ssl.SSLContext, keys: Mapping[str, str]) -> None:
    """Who we are, where a certificate is named."""
    certificate, key = _source("certificate", keys), _source("key", keys)
    if not certificate and key:
        raise WrongKey("ssl.key is given without its certificate: add ssl.certificate.location or ssl.certificate.pem")
    if not certificate:
        return
    if not key and b"PRIVATE KEY" not in _content(certificate):
        raise WrongKey("the client certificate has no key: add ssl.key.location or ssl.key.pem")
    with _named("ssl.certificate with ssl.key"), _path(certificate) as first, _path(key or certificate) as second:
        # an empty password keeps OpenSSL from asking for one at the terminal
        context.load_cert_chain(first, second, keys.get("ssl.key.password", ""))


def _source(name: str, keys: Mapping[str, str]) -> str | Path | None:
    """PEM text, or the file that holds it."""
    place = keys.get(f"ssl.{name}.location")
    return keys.get(f"ssl.{name}.pem") or (Path(place) if place else None)


def _content(source: str | Path) -> bytes:
    return source.encode() if isinstance(source, str) else source.read_bytes()


@contextlib.contextmanager
def _path(source: str | Path) -> Iterator[str]:
    """A path from which OpenSSL can read it once; for text a pipe, so that a private key never lies on a disk."""
    if isinstance(source, Path):
        yield str(source)
        return
    reading, writing = os.pipe()
    threading.Thread(target=_write, args=(writing, source.encode()), daemon=True).start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


def _write(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as pipe:
        pipe.write(data)


@contextlib.contextmanager
def _named(keys: str) -> Iterator[None]:
    """OpenSSL's errors with the keys that they concern, and never with their values."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__)
        if getattr(error, "errno", None) == errno.ESPIPE:
            reason = "key and certificate do not match"  # Python reports the pipe instead
        raise WrongKey(f"{keys} cannot be used ({reason.replace('_', ' ').lower()}); {_HINT}") from None
