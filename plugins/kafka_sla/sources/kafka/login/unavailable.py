"""A login that could not be tried."""

from kafka.errors import SaslAuthenticationFailedError


class LoginUnavailable(SaslAuthenticationFailedError):  # type: ignore[misc]
    """There is nothing to log in with, such as a token or a ticket: `message` says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
