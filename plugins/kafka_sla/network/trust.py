"""Whose certificates are believed: those that this machine trusts."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

from requests.adapters import HTTPAdapter

_UNKNOWN_AUTHORITY = "install the authority that signed it on this machine, or name its file in SSL_CERT_FILE"
_OTHER_NAME, _OTHER_TIME = "use a name that it holds", "have it renewed, or correct the clock"
_CURES = {9: _OTHER_TIME, 10: _OTHER_TIME, 62: _OTHER_NAME, 64: _OTHER_NAME}
"""By OpenSSL's number of what is wrong: not valid yet, expired, for another host, for another address."""


class TrustingAdapter(HTTPAdapter):
    """Believes whom this machine trusts (its own store, SSL_CERT_FILE, SSL_CERT_DIR) beside the list that requests
    brings along or REQUESTS_CA_BUNDLE names: a company installs its authority on its machines, where requests alone
    does not look."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, ssl_context=ssl.create_default_context(), **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=ssl.create_default_context(), **options)


def why_untrusted(error: BaseException) -> str | None:
    """In words, where a certificate was not believed; None where something else happened."""
    found = next((one for one in causes(error) if isinstance(one, ssl.SSLCertVerificationError)), None)
    if found is None:
        return None
    cure = _CURES.get(found.verify_code, _UNKNOWN_AUTHORITY)
    return f"its certificate is not trusted ({found.verify_message.rstrip('.')}): {cure}"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what libraries have wrapped in it."""
    while error is not None:
        yield error
        inner = [getattr(error, "reason", None), *error.args]
        error = next((one for one in inner if isinstance(one, BaseException)), None)
