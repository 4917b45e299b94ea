"""Web addresses that can be opened. Opens none."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

_MAX_HOST = 253
"""Characters of a host's name (RFC 1035)."""


def split_address(text: str) -> SplitResult:
    """The parts of an http or https address; ValueError says what is wrong with it, without repeating it."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https"):
        raise ValueError("it does not begin with http:// or https://")
    if not parts.hostname:
        raise ValueError("it names no host")
    _ = parts.port  # ValueError where it is out of range or no number
    check_host(parts.hostname)
    return parts


def check_host(host: str) -> None:
    """Raise ValueError unless the name or IP address can be looked up."""
    try:
        encoded = host.encode("idna") if ":" not in host else host.encode("ascii")
    except UnicodeError as error:
        raise ValueError("its host has a part that is empty, too long or not allowed in a name") from error
    if len(encoded) > _MAX_HOST or any(byte <= ord(" ") or byte in b"/?#@[]\\%" for byte in encoded):
        raise ValueError("its host is too long, or has characters that no name has")
